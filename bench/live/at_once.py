"""22 TPC-H queries of one scale at once: Queryard with an empty and with a warm history.

Peer: plain DuckDB, one cursor per query, on as many threads. The parameters of the queries differ
from seed to seed. The warm history is that of one run before all others, with other parameters.

python -m bench.live.at_once [--scale 5] [--seeds 5]: about 25 s per run on two cores,
three runs per seed.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random

from queryard.load import Ground, Played, Request, run
from queryard.workload import tpch

from .setting import OURS, PLAIN, Setting, checked, in_turn, schema, setting
from .verdict import Figure, show

SCALE = 5.0
EMPTY, WARM = "empty history", "warm history"


def requests(scale: float, seed: int | str) -> tuple[Request, ...]:
    """All 22, in the order of their numbers, at time 0."""
    draw = Random(f"at once/{seed}")
    place = schema(scale)
    return tuple(
        Request(
            f"q{number:02d}",
            0.0,
            "default",
            f"{place}.q{number:02d}",
            tpch.in_schema(tpch.draw_query(number, draw), place),
        )
        for number in tpch.queries()
    )


def mean_s(played: Played) -> float:
    """The mean response."""
    return statistics.fmean(outcome.response_s or 0.0 for outcome in played.outcomes)


def bench(chosen: Setting) -> None:
    scale = chosen.given.scale or chosen.scale(SCALE)
    ground = chosen.ground(scale)
    with tempfile.TemporaryDirectory(prefix="queryard-bench-") as temporary:
        past = Path(temporary) / "past.sqlite"
        print("a run before all others, for the warm history", flush=True)
        checked({OURS: run(requests(scale, "past"), OURS, ground, {}, history=past)})
        found = [_one_seed(seed, scale, ground, past) for seed in range(chosen.seeds)]
    ratios = {name: [_ratio(played, name, mean_s) for played in found] for name in (EMPTY, WARM)}
    last = {name: [_ratio(played, name, _last_s) for played in found] for name in (EMPTY, WARM)}
    figures = [
        Figure("mean response, warm history, of plain DuckDB's", ratios[WARM], 0.65),
        Figure("mean response, empty history, of plain DuckDB's", ratios[EMPTY], 0.80),
        Figure("last finish, warm history, of plain DuckDB's", last[WARM], 1.05),
        Figure("last finish, empty history, of plain DuckDB's", last[EMPTY], 1.05),
        Figure("plain DuckDB: mean response", [mean_s(p[PLAIN]) for p in found], unit="s"),
        Figure("plain DuckDB: last finish", [_last_s(p[PLAIN]) for p in found], unit="s"),
    ]
    show(f"22 TPC-H queries of SF {scale:g} at once", figures, chosen)


def _one_seed(seed: int, scale: float, ground: Ground, past: Path) -> dict[str, Played]:
    asked = requests(scale, seed)
    own = past.with_name(f"warm-{seed}.sqlite")
    shutil.copy(past, own)
    runs = {
        PLAIN: partial(run, asked, PLAIN, ground, {}),
        EMPTY: partial(run, asked, OURS, ground, {}),
        WARM: partial(run, asked, OURS, ground, {}, history=own),
    }
    played = in_turn(seed, runs)
    checked(played)
    for name, one in played.items():
        by = Counter(outcome.predicted_by for outcome in one.outcomes if outcome.predicted_by)
        told = ", ".join(f"{count} by {how}" for how, count in by.most_common())
        print(
            f"  seed {seed}: {name:13} mean {mean_s(one):6.2f} s, last {_last_s(one):6.2f} s, "
            f"CPU {one.cpu_s:6.1f} s{'; predicted ' + told if told else ''}",
            flush=True,
        )
    return played


def _last_s(played: Played) -> float:
    return played.span_s


def _ratio(played: dict[str, Played], name: str, figure: Callable[[Played], float]) -> float:
    return figure(played[name]) / figure(played[PLAIN])


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", type=float, help=f"default: {SCALE:g}")


def main(arguments: Sequence[str] | None = None) -> None:
    bench(setting("at_once", __doc__, arguments, _options))


if __name__ == "__main__":
    main()

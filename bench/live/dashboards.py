"""Twenty dashboards ask the same five queries at once: how much is computed?

100 requests, five distinct texts. The CPU time of the whole process, with all that it costs to take
100 requests and to hand out 100 answers, is divided by that of the same five texts asked once, in a
session of the same kind; and by that of plain DuckDB, which also answers the five once.

python -m bench.live.dashboards [--seeds 5]: about 20 s per seed on two cores.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random

from queryard.load import Played, Request, run
from queryard.workload import tpch

from .setting import OURS, PLAIN, Setting, checked, in_turn, schema, setting
from .verdict import Figure, show

DASHBOARDS, DISTINCT, SCALE = 20, 5, 5.0
# What is computed once costs once; handing it to twenty costs a little.
MOST = 1.1
ONCE = "the five once"


def requests(scale: float, seed: int) -> tuple[Request, ...]:
    """Five queries of the 22, with parameters of the seed's."""
    rng = Random(f"dashboards/{seed}")
    place = schema(scale)
    return tuple(
        Request(
            f"q{number:02d}",
            0.0,
            "default",
            f"{place}.q{number:02d}",
            tpch.in_schema(tpch.draw_query(number, rng), place),
        )
        for number in sorted(rng.sample(list(tpch.queries()), DISTINCT))
    )


def bench(chosen: Setting) -> None:
    scale = chosen.given.scale or chosen.scale(SCALE)
    ground = chosen.ground(scale)
    found: list[dict[str, Played]] = []
    for seed in range(chosen.seeds):
        once = requests(scale, seed)
        asked = [
            replace(ask, id=f"{ask.id}/{board}", tenant=f"board{board}")
            for board in range(DASHBOARDS)
            for ask in once
        ]
        played = in_turn(
            seed,
            {
                ONCE: partial(run, once, OURS, ground, {}),
                OURS: partial(run, asked, OURS, ground, {}),
                PLAIN: partial(run, once, PLAIN, ground, {}),
            },
        )
        checked(played)
        found.append(played)
        told = ", ".join(
            f"{name} {one.cpu_s:.2f} s in {one.span_s:.2f} s" for name, one in played.items()
        )
        shared = sum(outcome.shared for outcome in played[OURS].outcomes)
        print(f"  seed {seed}: CPU of {told}; {shared} of {len(asked)} shared", flush=True)
    figures = [
        Figure("work, of the five once", _cpu(found, OURS, ONCE), MOST),
        Figure("work, of the five once on plain DuckDB", _cpu(found, OURS, PLAIN)),
        Figure("last finish, of the five once on plain DuckDB", _span(found, OURS, PLAIN)),
    ]
    title = f"{DASHBOARDS} dashboards ask the same {DISTINCT} queries of SF {scale:g} at once"
    show(title, figures, chosen)


def _cpu(found: Sequence[dict[str, Played]], name: str, of: str) -> list[float]:
    return [played[name].cpu_s / played[of].cpu_s for played in found]


def _span(found: Sequence[dict[str, Played]], name: str, of: str) -> list[float]:
    return [played[name].span_s / played[of].span_s for played in found]


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scale", type=float, help=f"default: {SCALE:g}")


def main(arguments: Sequence[str] | None = None) -> None:
    bench(setting("dashboards", __doc__, arguments, _options))


if __name__ == "__main__":
    main()

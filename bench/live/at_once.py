"""All queries of a family at once: Queryard with an empty and with a warm history.

Peer: plain DuckDB, one cursor per query, on as many threads. The family is TPC-H (22 queries of
one scale) unless `--family` names another. The parameters of TPC-H's queries differ from seed to
seed, and those of the run that makes the warm history; the queries of another family come in an
order that differs, and the warm history has seen them.

Of another family it is also shown what is possible (`possible.py`), and slot-seconds leased over
real work, measured before (`--work` takes it from a file of `bench.foreseen`).

python -m bench.live.at_once [--scale 5] [--seeds 5]: about 25 s per run on two cores,
three runs per seed.
python -m bench.live.at_once --family ssb --data DIR: four runs per seed.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from queryard.core.errors import QueryardError
from queryard.load import Ground, Played, Request, run
from queryard.workload import tpch

from ..families import family
from ..real_work import real_work
from .possible import POSSIBLE, shortest_first
from .setting import OURS, PLAIN, Setting, checked, in_turn, read_once, schema, setting
from .verdict import Figure, show

SCALE = 5.0
# Runs alone for the real work of a query, and how much more than it may be leased.
REPEATS = 3
LEASED = 1.15
EMPTY, WARM = "empty history", "warm history"


@dataclass(frozen=True)
class Targets:
    """What a family is to reach, as ratios of plain DuckDB's."""

    warm_mean: float
    empty_mean: float
    warm_last: float
    empty_last: float


@dataclass(frozen=True)
class Case:
    """What is asked: requests for a seed, where, and the real work of each template, if known."""

    title: str
    ground: Ground
    requests: Callable[[int | str], tuple[Request, ...]]
    targets: Targets
    work_s: Mapping[str, float]


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


def tpch_case(chosen: Setting) -> Case:
    """TPC-H at a scale."""
    scale = chosen.given.scale or chosen.scale(SCALE)
    return Case(
        f"22 TPC-H queries of SF {scale:g}",
        chosen.ground(scale),
        partial(requests, scale),
        Targets(0.56, 0.62, 1.04, 1.04),
        {},
    )


def family_case(chosen: Setting) -> Case:
    """All queries of a family, in an order drawn from the seed."""
    given = chosen.given
    asked = family(given.family)
    asked.check_frozen(given.frozen)
    folder = chosen.data
    ground = Ground(None, asked.places(folder), chosen.slots, chosen.memory_bytes)
    for file in asked.files(folder).values():
        read_once(file)
    queries = asked.queries(folder)
    texts = {query.name: query.sql for query in queries}
    work_s = real_work(ground.catalog(), texts, 1 if chosen.quick else REPEATS, given.work)

    def shuffled(seed: int | str) -> tuple[Request, ...]:
        order = Random(f"at once/{seed}").sample(queries, len(queries))
        return tuple(Request(one.name, 0.0, "default", one.name, one.sql) for one in order)

    title = f"{len(queries)} queries of {asked.name}"
    return Case(title, ground, shuffled, Targets(0.48, 0.60, 1.00, 1.05), work_s)


def mean_s(played: Played) -> float:
    """The mean response."""
    return statistics.fmean(outcome.response_s or 0.0 for outcome in played.outcomes)


def bench(chosen: Setting) -> None:
    try:
        case = family_case(chosen) if chosen.given.family else tpch_case(chosen)
    except QueryardError as error:
        raise SystemExit(f"error: {error}") from error
    with tempfile.TemporaryDirectory(prefix="queryard-bench-") as temporary:
        past = Path(temporary) / "past.sqlite"
        print("a run before all others, for the warm history", flush=True)
        checked({OURS: run(case.requests("past"), OURS, case.ground, {}, history=past)})
        found = [_one_seed(seed, case, past) for seed in range(chosen.seeds)]
    ratios = {name: [_ratio(played, name, mean_s) for played in found] for name in (EMPTY, WARM)}
    last = {name: [_ratio(played, name, _last_s) for played in found] for name in (EMPTY, WARM)}
    targets = case.targets
    figures = [
        Figure("mean response, warm history, of plain DuckDB's", ratios[WARM], targets.warm_mean),
        Figure(
            "mean response, empty history, of plain DuckDB's", ratios[EMPTY], targets.empty_mean
        ),
        Figure("last finish, warm history, of plain DuckDB's", last[WARM], targets.warm_last),
        Figure("last finish, empty history, of plain DuckDB's", last[EMPTY], targets.empty_last),
        *_of_known_work(case, found),
        Figure("plain DuckDB: mean response", [mean_s(p[PLAIN]) for p in found], unit="s"),
        Figure("plain DuckDB: last finish", [_last_s(p[PLAIN]) for p in found], unit="s"),
    ]
    show(f"{case.title} at once", figures, chosen)


def _of_known_work(case: Case, found: Sequence[dict[str, Played]]) -> list[Figure]:
    """What is possible, and leased slot-seconds over real work, where that is known."""
    if not case.work_s:
        return []
    total_s = sum(case.work_s.values())
    means, lasts = (
        [_ratio(played, POSSIBLE, figure) for played in found] for figure in (mean_s, _last_s)
    )
    leased = {
        name: [leased_s(played[name]) / total_s for played in found] for name in (WARM, EMPTY)
    }
    # On a machine that is busy with other things, both are held for longer.
    possible = {
        name: [leased_s(played[name]) / leased_s(played[POSSIBLE]) for played in found]
        for name in leased
    }
    return [
        Figure("possible: mean response, of plain DuckDB's", means),
        Figure("possible: last finish, of plain DuckDB's", lasts),
        *(
            Figure(f"leased over worked slot-seconds, {name}", values, LEASED)
            for name, values in leased.items()
        ),
        *(
            Figure(f"leased slot-seconds, {name}, of the possible's", values)
            for name, values in possible.items()
        ),
        Figure("real work", [total_s], unit="s"),
    ]


def leased_s(played: Played) -> float:
    """Slot-seconds that queries held."""
    return sum(outcome.held_s or 0.0 for outcome in played.outcomes)


def _one_seed(seed: int, case: Case, past: Path) -> dict[str, Played]:
    asked = case.requests(seed)
    own = past.with_name(f"warm-{seed}.sqlite")
    shutil.copy(past, own)
    runs = {
        PLAIN: partial(run, asked, PLAIN, case.ground, {}),
        EMPTY: partial(run, asked, OURS, case.ground, {}),
        WARM: partial(run, asked, OURS, case.ground, {}, history=own),
    }
    if case.work_s:
        runs[POSSIBLE] = partial(shortest_first, asked, case.work_s, case.ground)
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
    parser.add_argument("--scale", type=float, help=f"of TPC-H; default: {SCALE:g}")
    parser.add_argument("--family", help="another than TPC-H; --data is the folder of its tables")
    parser.add_argument("--work", type=Path, help="a file that bench.foreseen kept of it")
    parser.add_argument("--frozen", help="for a family for reporting: the model's commit")


def main(arguments: Sequence[str] | None = None) -> None:
    bench(setting("at_once", __doc__, arguments, _options))


if __name__ == "__main__":
    main()

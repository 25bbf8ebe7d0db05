"""Twelve online queries with Poisson arrivals: ReLAQS beside fair sharing, both live.

python -m bench.online.arrivals [--scale 5] [--seeds 10] [--gaps 0.3,1,3]: about half a minute per
run, two runs per seed and gap.

The error is the true one of the answers that were given: the median relative error over groups and
columns. A reduction of 70 % is reached once the error stays below 30 % of that of the first answer.
Gaps are in mean times of the exact queries alone.
"""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import duckdb
from rich.console import Console
from rich.table import Table

import queryard

from .answers import Truth
from .questions import LINEITEM, question
from .setting import options, tables

QUERIES = 12
MIX = (*(question(name) for name in ("q1", "q6", "q14", "q3total", "q5")), *LINEITEM[:8])
POLICIES = ("fair", "relaqs")
REDUCTIONS = (0.7, 0.9)


@dataclass(frozen=True)
class Told:
    """One answer: when it came after the submission, and how wrong it was."""

    time_s: float
    error: float


def reached_s(answers: Sequence[Told], reduction: float) -> float:
    """When the error has fallen by a share for good.

    >>> reached_s([Told(1.0, 0.1), Told(2.0, 0.02), Told(3.0, 0.05), Told(4.0, 0.0)], 0.7)
    4.0
    """
    most = (1.0 - reduction) * answers[0].error
    found = answers[-1].time_s
    for answer in reversed(answers):
        if answer.error > most:
            break
        found = answer.time_s
    return found


def played(
    folder: Path,
    policy: str,
    asked: Sequence[tuple[float, str]],
    truths: Mapping[str, Truth],
    slots: int,
) -> list[list[Told]]:
    """All answers of all queries under a policy."""
    found: list[list[Told]] = [[] for _ in asked]
    with queryard.connect(folder, slots=slots, history=False, profile=policy) as qy:
        for _ in qy.online(LINEITEM[0]):
            pass
        began = time.perf_counter()

        def one(place: int) -> None:
            due, sql = asked[place]
            time.sleep(max(0.0, due - (time.perf_counter() - began)))
            for answer in qy.online(sql, every=0):
                at = time.perf_counter() - began - due
                found[place].append(Told(at, truths[sql].error_of(answer)))

        threads = [threading.Thread(target=one, args=(place,)) for place in range(len(asked))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return found


def bench(folder: Path, seeds: int, gaps: Sequence[float], slots: int) -> None:
    plain = duckdb.connect(config={"threads": slots})
    for file in folder.glob("*.parquet"):
        plain.execute(f"CREATE VIEW {file.stem} AS FROM read_parquet('{file}')")
    truths, times = {}, []
    for sql in MIX:
        began = time.perf_counter()
        truths[sql] = Truth(plain, sql)
        times.append(time.perf_counter() - began)
    plain.close()
    with queryard.connect(folder, slots=slots, history=False) as qy:
        qy.shuffle("lineitem")
    mean_s = statistics.fmean(times)
    table = Table(title=f"{QUERIES} online queries, {slots} slots, mean exact time {mean_s:.2f} s")
    for column in ("gap", "reduction", "fair", "relaqs", "ratio", "worst query"):
        table.add_column(column, justify="right")
    for gap in gaps:
        runs: dict[str, list[list[Told]]] = {policy: [] for policy in POLICIES}
        for seed in range(seeds):
            draw = Random(f"arrivals/{gap}/{seed}")
            at, asked = 0.0, []
            for _ in range(QUERIES):
                asked.append((at, draw.choice(MIX)))
                at += draw.expovariate(1.0 / (gap * mean_s))
            for policy in POLICIES if seed % 2 else POLICIES[::-1]:
                runs[policy] += played(folder, policy, asked, truths, slots)
        for reduction in REDUCTIONS:
            fair, ours = (
                [reached_s(answers, reduction) for answers in runs[policy]] for policy in POLICIES
            )
            ratio = statistics.fmean(ours) / statistics.fmean(fair)
            worst = max(o / f for o, f in zip(ours, fair, strict=True))
            table.add_row(
                f"{gap:g}",
                f"{reduction:.0%}",
                f"{statistics.fmean(fair):.2f} s",
                f"{statistics.fmean(ours):.2f} s",
                f"{ratio:.2f}",
                f"{worst:.1f}",
            )
        crossing = _crossing(runs)
        table.add_row(f"{gap:g}", "crossing", "", "", f"{crossing:.0%}", "")
    Console(width=110).print(table)


def _crossing(runs: Mapping[str, list[list[Told]]]) -> float:
    """The least reduction from which fair sharing is sooner; nan if there is none."""
    for percent in range(50, 101):
        fair, ours = (
            statistics.fmean(reached_s(answers, percent / 100) for answers in runs[policy])
            for policy in POLICIES
        )
        if fair < ours:
            return percent / 100
    return math.nan


def main(arguments: Sequence[str] | None = None) -> None:
    parser = options(__doc__, "one seed, one gap")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--gaps", default="0.3,1,3")
    given = parser.parse_args(arguments)
    folder = tables(given)
    gaps = [1.0] if given.quick else [float(gap) for gap in given.gaps.split(",")]
    bench(folder, 1 if given.quick else given.seeds, gaps, given.slots)


if __name__ == "__main__":
    main()

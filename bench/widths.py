"""How wide queries run on 64 slots, with speed-up curves known and not, in simulation.

The curves are of the family that was measured with plain DuckDB 2.0 on two threads of a two-core
machine: the 22 queries of TPC-H at SF 0.1, 0.3 and 1, 16 ms to 1 s of work, medians of five runs.
The threads divide what is parallel evenly, so what the first computes more than the second is
serial. The serial share was 0.15, 0.07 and 0.04 in the median (0.01 to 0.4), about 6 ms per query
and 2 % of its work. Assumed beyond two threads: Amdahl's law, and that a query can use one slot per
8 ms of work at most, which is a row group of the largest table.

Beside the policies stand ideal processor sharing and clairvoyant SRPT. They are fluids without
idle slots (`queryard.sim.references`), hence bounds that no policy with whole slots reaches.

python -m bench.widths [--queries 500] [--seeds 3]: about five minutes.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from rich.console import Console
from rich.table import Table

from queryard.core.commands import Command
from queryard.core.events import Event
from queryard.core.model import Divisible, Job, Node, Query
from queryard.core.scheduler import Scheduler
from queryard.core.speedup import Speedup
from queryard.metrics import summarise
from queryard.sim import alone_times
from queryard.sim.references import IDEALS, demands_of
from queryard.sim.run import build, run_to_end
from queryard.workload.model import Arrival, JobTruth, Workload

SLOTS = 64
SERIAL_S, SERIAL_SHARE, SPREAD = 0.006, 0.02, 0.7
ROW_GROUP_S = 0.008
LOADS = (0.5, 0.7, 0.85, 0.95)
LONG_S = 1.0
# Median core-seconds of short and long queries, the spread of their logarithm, and the share of
# long ones.
SHORT, LONG = (0.1, 0.8), (6.0, 0.8)
MIXES = {"short": 0.0, "mixed": 0.1, "long": 1.0}
# Profile and source of estimates.
SYSTEMS = {
    "equal sharing": ("fair", "oracle:no-curves"),
    "shortest first": ("swrd", "oracle:no-curves"),
    "shortest first, curves": ("swrd", "oracle"),
    "marshal": ("marshal", "oracle:no-curves"),
    "marshal, curves": ("marshal", "oracle"),
}


# The columns of a table, and their digits.
FIELDS = {"mean_s": 3, "short": 2, "long": 2, "leased": 2, "step_ms": 2}


@dataclass(frozen=True, slots=True)
class Row:
    """One system on one mix at one load; slowdowns are responses over times alone."""

    mean_s: float
    short: float
    long: float
    leased: float
    # Milliseconds of processor time per step of the kernel.
    step_ms: float


class Timed(Scheduler):
    """A kernel that counts its steps, and the processor time that they take."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.steps, self.spent_s = 0, 0.0

    def handle(self, *events: Event) -> list[Command]:
        began_s = time.thread_time()
        commands = super().handle(*events)
        self.spent_s += time.thread_time() - began_s
        self.steps += 1
        return commands


def curve(work_s: float, draw: Random) -> Speedup:
    """A curve of the measured family."""
    usual = SERIAL_SHARE + SERIAL_S / work_s
    serial = min(1.0, usual * math.exp(draw.gauss(0.0, SPREAD)))
    return Speedup(serial, max(1.0, math.ceil(work_s / ROW_GROUP_S)))


def workload(long_share: float, load: float, queries: int, seed: int) -> Workload:
    """Poisson arrivals of queries that any number of slots can serve, each with its own curve."""
    draw = Random(f"widths/{seed}")
    works, curves = [], []
    for _ in range(queries):
        median_s, spread = LONG if draw.random() < long_share else SHORT
        works.append(median_s * math.exp(draw.gauss(0.0, spread)))
        curves.append(curve(works[-1], draw))
    gap_s = statistics.fmean(works) / (load * SLOTS)
    arrivals, at_s = [], 0.0
    for number, (work_s, bent) in enumerate(zip(works, curves, strict=True)):
        at_s += draw.expovariate(1.0 / gap_s)
        query = Query(f"q{number}", (Job("j", divisible=Divisible(SLOTS)),), submit_s=at_s)
        arrivals.append(Arrival(query, {"j": JobTruth(work_s=work_s, speedup=bent)}))
    return Workload("widths", tuple(arrivals))


def measure(given: Workload) -> Iterator[tuple[str, Row]]:
    """Every system and every ideal on one workload."""
    nodes = [Node("n", SLOTS)]
    alone_s = alone_times(given, nodes)
    works = {arrival.query.id: arrival.work_s for arrival in given.arrivals}
    for name, (profile, estimates) in SYSTEMS.items():
        driver = build(given, nodes, profile, estimates=estimates, kernel=Timed)
        run = run_to_end(driver)
        kernel = driver.scheduler
        assert isinstance(kernel, Timed)
        step_ms = kernel.spent_s / kernel.steps * 1e3
        summary = summarise(run.journal, work_s=works)
        submits = {arrival.query.id: arrival.query.submit_s for arrival in given.arrivals}
        responses = {query: end_s - submits[query] for query, end_s in run.ends.items()}
        yield name, _row(responses, alone_s, works, summary.leased_per_work or 0.0, step_ms)
    for name, ideal in IDEALS.items():
        yield name, _row(ideal(demands_of(given, alone_s), SLOTS), alone_s, works, 1.0, math.nan)


def _row(
    responses: dict[str, float],
    alone_s: dict[str, float],
    works: dict[str, float],
    leased: float,
    step_ms: float,
) -> Row:
    slowdowns: dict[bool, list[float]] = {False: [], True: []}
    for query, response_s in responses.items():
        slowdowns[works[query] >= LONG_S].append(response_s / alone_s[query])
    short, long = (statistics.fmean(found) if found else math.nan for found in slowdowns.values())
    return Row(statistics.fmean(responses.values()), short, long, leased, step_ms)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.widths",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--mix", choices=tuple(MIXES), action="append")
    given = parser.parse_args(arguments)
    console = Console()
    for mix in given.mix or MIXES:
        for load in LOADS:
            found: dict[str, list[Row]] = {}
            for seed in range(given.seeds):
                for name, row in measure(workload(MIXES[mix], load, given.queries, seed)):
                    found.setdefault(name, []).append(row)
            console.print(_table(f"{mix} queries, load {load:g}, {SLOTS} slots", found))


def _table(title: str, found: dict[str, list[Row]]) -> Table:
    """Medians over the seeds."""
    table = Table(title=title)
    shares = ("slowdown, short", "slowdown, long", "leased over worked", "ms per step")
    headers = ("", "mean response", *shares)
    for column in headers:
        table.add_column(column, justify="right" if column else "left")
    for name, rows in found.items():
        shown = [
            f"{statistics.median(getattr(row, field) for row in rows):.{digits}f}"
            for field, digits in FIELDS.items()
        ]
        table.add_row(name, f"{shown[0]} s", *("-" if v == "nan" else v for v in shown[1:]))
    return table


if __name__ == "__main__":
    main()

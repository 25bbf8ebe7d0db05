"""Three TPC-H queries as Pig runs them: each a chain of five jobs.

The scripts for Pig (PIG-2397) group or join first, then aggregate, and end with an order by of two
jobs, of which the first takes samples. The paper prints neither the number of reduces nor any
time of a task; what was chosen is said below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean

from queryard.core.model import Job, Phase, Query
from queryard.workload import Arrival, Workload

from .jobs import BENCHMARKS, BLOCK_BYTES, job_truth

DATABASE_BYTES = 4 * 2.0**30
# Megabytes of the tables at scale 1 (TPC-H, §4.2.5); the smallest two are left out.
TABLES_MB = {
    "lineitem": 641,
    "orders": 149,
    "partsupp": 110,
    "part": 30,
    "customer": 26,
    "supplier": 2,
}
# Half as many as the benchmarks have, for half the data.
REDUCES = 40


@dataclass(frozen=True, slots=True)
class Step:
    """A job: the tables it reads, whether it also reads the job before, its reduces."""

    tables: tuple[str, ...] = ()
    follows: bool = True
    has_one_reduce: bool = False

    def maps(self) -> int:
        """A map a block of a table, and one for what the job before has left."""
        total_mb = sum(TABLES_MB.values())
        of_tables = (
            math.ceil(DATABASE_BYTES * TABLES_MB[table] / total_mb / BLOCK_BYTES)
            for table in self.tables
        )
        return sum(of_tables) + self.follows


_SAMPLE, _ORDER = Step(has_one_reduce=True), Step()
QUERIES = {
    "Q15": (
        Step(("lineitem",), follows=False),
        Step(has_one_reduce=True),
        Step(("supplier",)),
        _SAMPLE,
        _ORDER,
    ),
    "Q16": (
        Step(("partsupp", "supplier"), follows=False),
        Step(("part",)),
        Step(),
        _SAMPLE,
        _ORDER,
    ),
    "Q18": (
        Step(("lineitem", "orders"), follows=False),
        Step(("customer",)),
        Step(),
        _SAMPLE,
        _ORDER,
    ),
}


def tpch_batch(reduces: int = REDUCES) -> Workload:
    """The three queries, submitted together.

    Tasks of the first job take as long as those of a benchmark do on average. Later jobs read
    little: their tasks take as long as the shortest of a benchmark.
    """
    mean = job_truth(
        fmean(kind.map_s for kind in BENCHMARKS), fmean(kind.reduce_s for kind in BENCHMARKS)
    )
    short = job_truth(
        min(kind.map_s for kind in BENCHMARKS), min(kind.reduce_s for kind in BENCHMARKS)
    )
    arrivals = []
    for name, steps in QUERIES.items():
        jobs = []
        for number, step in enumerate(steps, start=1):
            jobs.append(
                Job(
                    f"s{number}",
                    upstream=(f"s{number - 1}",) if step.follows else (),
                    map=Phase(step.maps()),
                    reduce=Phase(1 if step.has_one_reduce else reduces),
                )
            )
        truth = {job.name: short if job.upstream else mean for job in jobs}
        arrivals.append(Arrival(Query(name, tuple(jobs)), truth, size_bin=name))
    return Workload("tpch", tuple(arrivals))

"""Staged queries of TPC-H, task by task on one core: sizes as planned, as they were, and times.

A split is a row group of about 7 MB where the paper has a block of 256 MB, and a table is joined
within maps below a tenth of it, as in Hive.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from random import Random
from statistics import fmean
from typing import NamedTuple

from queryard.core.model import MAP, REDUCE, Kind, TaskId
from queryard.engine.staged.instance import open_instance
from queryard.engine.staged.local_exchange import LocalExchange
from queryard.engine.staged.node import StagedNode
from queryard.engine.staged.query import StagedQuery
from queryard.engine.staged.times import planned_sizes, sizes_of
from queryard.estimate.jobs import JobSizes
from queryard.sql.catalog import Catalog, open_catalog
from queryard.sql.planner import NotStageable, StagedPlan, plan_staged
from queryard.sql.statistics.analyse import analyze
from queryard.workload import tpch

# One row group per map task; a tenth of one is Hive's bound for joins within maps.
SPLIT_BYTES, BROADCAST_BYTES = 1.0, 0.7e6
MEMORY_BYTES = 2 << 30


class Task(NamedTuple):
    """One task: its kind, what it left, and its CPU seconds."""

    kind: Kind
    left_bytes: float
    cpu_s: float


class RanJob(NamedTuple):
    """One job of a run: its sizes as planned and as they were, and its tasks."""

    planned: JobSizes
    real: JobSizes
    tasks: tuple[Task, ...]

    @property
    def cpu_s(self) -> float:
        return sum(task.cpu_s for task in self.tasks)

    @property
    def mean_cpu_s(self) -> dict[Kind, float]:
        """Of a map task, and of a reduce task if there are any."""
        by_kind: dict[Kind, list[float]] = {}
        for task in self.tasks:
            by_kind.setdefault(task.kind, []).append(task.cpu_s)
        return {kind: fmean(of_kind) for kind, of_kind in by_kind.items()}


class RanQuery(NamedTuple):
    """One query at one scale, with literals of its own."""

    number: int
    scale: float
    jobs: tuple[RanJob, ...]


class Yard:
    """The tables of one scale in a folder, analysed."""

    def __init__(self, folder: Path, scale: float) -> None:
        self.scale = scale
        tpch.generate(folder, scale)
        self._catalog: Catalog = open_catalog(folder)
        self._temp = folder / "temp"
        analyze(self._catalog)

    def run(self, number: int, rng: Random) -> RanQuery | None:
        """A query with literals that are drawn; None if it cannot be staged."""
        text = tpch.draw_query(number, rng)
        try:
            plan = plan_staged(text, self._catalog, SPLIT_BYTES, BROADCAST_BYTES)
        except NotStageable:
            return None
        with ExitStack() as opened:
            instance = opened.enter_context(open_instance(MEMORY_BYTES, self._temp))
            exchange = LocalExchange(MEMORY_BYTES, self._temp)
            opened.callback(exchange.close)
            node = opened.enter_context(StagedNode(instance, exchange))
            tasks = _run_tasks(StagedQuery(plan, "q", MEMORY_BYTES), node)
        return RanQuery(number, self.scale, tuple(_ran_jobs(plan, tasks)))


def _run_tasks(query: StagedQuery, node: StagedNode) -> dict[TaskId, Task]:
    """All tasks of a query, one after another, on this thread alone."""
    found = {}
    for job in query.plan.jobs:
        for kind, count in ((MAP, job.map_tasks), (REDUCE, job.partitions)):
            for index in range(count):
                task = TaskId(job.name, kind, index)
                spec = query.spec(task, 1)
                began_s = time.process_time()
                outcome = node.run(spec)
                cpu_s = time.process_time() - began_s
                query.done(task, outcome)
                found[task] = Task(kind, outcome.output_bytes, cpu_s)
    return found


def _ran_jobs(plan: StagedPlan, tasks: Mapping[TaskId, Task]) -> Iterator[RanJob]:
    planned = planned_sizes(plan)
    left: dict[str, float] = {}
    for job in plan.jobs:
        mine = {task: found for task, found in tasks.items() if task.job == job.name}
        last = REDUCE if job.partitions else MAP
        left[job.name] = sum(found.left_bytes for found in mine.values() if found.kind == last)
        sides = [0.0] * job.sides
        for task, found in mine.items():
            if job.partitions and task.kind == MAP:
                sides[job.branch_of(task.index)[0].side] += found.left_bytes
        yield RanJob(planned[job.name], sizes_of(job, left, sides), tuple(mine.values()))

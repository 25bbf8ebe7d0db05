"""The smallest executor of staged plans, and the comparison of its answers with DuckDB's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

from queryard.core.model import TaskId
from queryard.engine.staged.local_exchange import LocalExchange
from queryard.engine.staged.node import StagedNode
from queryard.engine.staged.query import StagedQuery
from queryard.engine.staged.task import TaskOutcome
from queryard.sql.planner import StagedPlan


def ready_tasks(query: StagedQuery) -> tuple[TaskId, ...]:
    """The tasks that are needed and find all their inputs."""
    return tuple(task for task in query.needed() if not query.missing(task))


class LocalRun:
    """Driver and node of a query in one process; `memory_bytes` are for the rows between tasks."""

    def __init__(
        self,
        plan: StagedPlan,
        instance: duckdb.DuckDBPyConnection,
        memory_bytes: float,
        temp: str | Path | None = None,
    ) -> None:
        self.plan = plan
        self.query = StagedQuery(plan, "q", 2 * memory_bytes)
        self.exchange = LocalExchange(memory_bytes, temp)
        self.store = self.exchange.store
        self.node = StagedNode(instance, self.exchange)
        self._attempts = itertools.count(1)
        self.query.publish(self.exchange)

    def run(self, task: TaskId) -> TaskOutcome:
        outcome = self.node.run(self.query.spec(task, next(self._attempts)))
        self.query.done(task, outcome)
        found = self.query.fold_spec(task.job, next(self._attempts))
        if found is not None:
            folded = self.node.run(found.spec)
            self.exchange.drop(self.query.folded(found, folded))
        return outcome

    def result(self) -> pa.RecordBatchReader:
        return self.query.result(self.exchange)

    def __enter__(self) -> LocalRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.node.close()
        self.exchange.close()


def run_one_by_one(run: LocalRun, rng: Random | None = None) -> pa.Table:
    """Run all tasks in one thread: in order, or in any order the DAG allows."""
    plan = run.plan
    done: set[str] = set()
    left: dict[str, list[TaskId]] = {}
    reduces: dict[str, list[TaskId]] = {}
    for job in plan.jobs:
        left[job.name] = [TaskId(job.name, "map", i) for i in range(job.map_tasks)]
        reduces[job.name] = [TaskId(job.name, "reduce", i) for i in range(job.partitions)]
    upstream = {job.name: set(job.upstream) for job in plan.jobs}
    while left:
        ready = [
            (name, task) for name, tasks in left.items() if upstream[name] <= done for task in tasks
        ]
        name, task = ready[0] if rng is None else rng.choice(ready)
        run.run(task)
        left[name].remove(task)
        if not left[name]:
            if reduces[name]:
                left[name], reduces[name] = reduces[name], []
            else:
                done.add(name)
                del left[name]
    return run.result().read_all()


def assert_same(mine: pa.Table, theirs: pa.Table, ordered: bool) -> None:
    """Equal schemas and rows; floats within 1e-9, rows in any order unless `ordered`."""
    assert mine.schema.names == theirs.schema.names
    assert mine.schema.types == theirs.schema.types
    left, right = _rows(mine), _rows(theirs)
    assert len(left) == len(right), f"{len(left)} rows instead of {len(right)}"
    if not ordered:
        left.sort(key=_rank)
        right.sort(key=_rank)
    for one, other in zip(left, right, strict=True):
        assert all(map(_close, one, other)), f"{one} instead of {other}"


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _rank(row: Sequence[Any]) -> tuple[Any, ...]:
    # Floats that differ by rounding must rank alike.
    return tuple(f"{float(f'{v:.7g}') + 0.0!r}" if isinstance(v, float) else repr(v) for v in row)


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return type(one) is type(other) and bool(one == other)

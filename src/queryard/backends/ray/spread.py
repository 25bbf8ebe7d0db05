"""The driver's side of a staged query of which the tasks run at nodes."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from queryard.backends.protocol import Ready, Spread
from queryard.core.model import Node, TaskId
from queryard.engine.errors import QueryCancelled, QueryFailed
from queryard.engine.sealing.access import Reach
from queryard.engine.staged.actuals import JobActuals
from queryard.engine.staged.exchange import PieceLost
from queryard.engine.staged.query import StagedQuery
from queryard.engine.staged.store import MissingRows
from queryard.sql.planner.plan import StagedPlan

from .exchange import RayExchange
from .node_tasks import Opening

# So often a task may find its inputs gone before its query fails.
MOST_LOSSES = 20

# Outputs up to this size are fetched whole before any row is given out: if their node is lost, they
# are made again. Of larger ones the driver holds a part at a time.
WHOLE_BYTES = 64 << 20

Found = TypeVar("Found")

MakeAgain = Callable[[str, TaskId], None]
"""Runs a task of a query once more, beside its slots, and returns when it has run."""


class SpreadTasks:
    """Says what to run and keeps where rows lie. Any thread may call it."""

    at_nodes = True

    def __init__(
        self,
        exchange: RayExchange,
        plan: StagedPlan,
        query: str,
        memory_bytes: int,
        nodes: Sequence[Node],
        reach: Reach,
        make_again: MakeAgain,
    ) -> None:
        """`memory_bytes` is what the query reserves; each node uses a part of it, in proportion to
        its memory. `nodes` are those that there are when it is planned.
        """
        share = max(1, memory_bytes // max(1, len(nodes)))
        # Rows of build sides are never dropped early: a node may join that needs them.
        self._query = StagedQuery(plan, query, share, nodes=max(2, len(nodes)))
        self._memory_bytes = memory_bytes
        self._access = reach.access
        self._reach = reach
        self._make_again = make_again
        self._lock = threading.RLock()
        self._losses: Counter[TaskId] = Counter()
        # Tasks whose rows are gone, which the kernel does not know: from a node that is not gone,
        # or from one where it does not look for them.
        self._unknown: set[TaskId] = set()
        # Tasks whose rows were made beside the kernel: it takes them to lie elsewhere.
        self._beside: set[TaskId] = set()
        self._closed = False
        self._exchange = exchange
        self._query.publish(self._exchange)

    # --- for the session ----------------------------------------------------------------------

    def for_backend(self) -> Spread:
        return Spread(self)

    def actuals(self) -> dict[str, JobActuals]:
        return self._query.actuals()

    def result(self) -> pa.RecordBatchReader:
        """The answer, fetched output by output as it is read.

        An output that was lost with its node is made again if no row of it was read yet.
        """
        first = self._query.result_tasks()[0]
        schema = self._query.result_schema(self._fetched(first, self._query.result_columns))
        return pa.RecordBatchReader.from_batches(schema, self._batches(schema))

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for task in self._query.result_tasks():
            try:
                for rows in self._fetched(task, partial(self._begun, task)):
                    for batch in rows.to_batches():
                        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
            except PieceLost as error:
                raise QueryFailed(
                    f"node {', '.join(error.holders)} was lost after a part of the rows of task "
                    f"{task} had been given out; run the query again"
                ) from None

    def _begun(self, task: TaskId, exchange: RayExchange) -> Iterator[pa.Table]:
        """The output of a task: whole; or the first part, and the others as they are read."""
        pieces = self._query.pieces(task)
        if sum(piece.bytes for piece in pieces) <= WHOLE_BYTES:
            return iter([exchange.fetch(pieces)])
        parts = exchange.in_turn(pieces)
        return itertools.chain([next(parts)], parts)

    def _fetched(self, task: TaskId, fetch: Callable[[RayExchange], Found]) -> Found:
        why = ""
        for _ in range(MOST_LOSSES):
            if self._closed:
                raise QueryCancelled("cancelled")
            if not self._query.has(task):
                self._make_again(self._query.query, task)
                continue
            try:
                return fetch(self._exchange)
            except PieceLost as error:
                self._forget_pieces(error)
                why = f" ({self._reach.hide(error.why)})" if error.why else ""
            except MissingRows:
                pass  # they were lost just now
        raise QueryFailed(
            f"the rows of task {task} were lost {MOST_LOSSES} times with their nodes, before they "
            f"could be read{why}; run the query again"
        )

    def close(self) -> None:
        self._closed = True
        self._exchange.close()

    # --- for the backend ----------------------------------------------------------------------

    def opening(self, cluster_bytes: float) -> Opening:
        return Opening(self._query.plan, self._memory_bytes, self._access, cluster_bytes)

    def next_for(
        self, task: TaskId, attempt: int, making: Container[TaskId], beside: bool
    ) -> Ready | None:
        with self._lock:
            found = self._to_run(task, "" if beside else task.job, making)
            if found is None:
                return None
            return Ready(found, self._query.spec(found, attempt).without_text())

    def _to_run(self, task: TaskId, launched: str, making: Container[TaskId]) -> TaskId | None:
        """The task, or one whose rows it lacks; those of the launched job are the kernel's.

        Where the kernel has launched none (""), it makes none.
        """
        missing = self._query.missing(task)
        if not missing:
            return task
        for each in missing:
            is_kernels = each.job == launched and each not in self._unknown
            if not is_kernels and each not in making:
                found = self._to_run(each, launched, making)
                if found is not None:
                    return found
        return None

    def done(self, task: TaskId, outcome: Any, beside: bool) -> None:
        with self._lock:
            self._unknown.discard(task)
            if self._query.done(task, outcome):
                (self._beside.add if beside else self._beside.discard)(task)

    def lose_place(self, place: str) -> None:
        self._exchange.lose(place)
        with self._lock:
            lost = self._query.lost(place)
            self._unknown.difference_update(lost)
            self._unknown.update(self._beside.intersection(lost))
            self._beside.difference_update(lost)

    def lose_pieces(self, task: TaskId, error: BaseException) -> BaseException:
        if not isinstance(error, PieceLost):
            return error
        self._forget_pieces(error)
        self._losses[task] += 1
        if self._losses[task] < MOST_LOSSES:
            return error
        told = (
            f"task {task} lost the rows that it reads {MOST_LOSSES} times, the last time: {error}"
        )
        return QueryFailed(self._reach.hide(told))

    def _forget_pieces(self, error: PieceLost) -> None:
        with self._lock:
            self._unknown.update(self._query.lost_outputs(error.outputs))

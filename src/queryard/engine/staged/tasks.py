"""The tasks of one staged query on this machine, by launch."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa

from queryard.core.errors import QueryardError
from queryard.core.model import MAP, TaskId
from queryard.engine.errors import QueryCancelled, QueryFailed
from queryard.engine.instances.pool import InstancePool
from queryard.engine.sealing.access import Reach
from queryard.engine.sealing.links import Links
from queryard.sql.planner.plan import StagedPlan

from .actuals import JobActuals
from .cancellation import Cancellation, Together
from .instance import open_instance
from .launched import Launched
from .local_exchange import LocalExchange
from .node import StagedNode
from .query import StagedQuery
from .reads import SegmentReads
from .task_graph import SegmentRead
from .times import task_seconds


class StagedTasks:
    """Both sides of a staged query in one process; any thread may call any method."""

    def __init__(
        self,
        plan: StagedPlan,
        query: str,
        memory_bytes: int,
        pool: InstancePool,
        temp: Path,
        reads: SegmentReads | None = None,
        reach: Reach | None = None,
    ) -> None:
        """`reads` are the segments of text that the plan scans, if it scans any.

        The tasks read the files within the `reach` of a sealed client, and the segments that they
        are given.
        """
        self._query = StagedQuery(plan, query, memory_bytes)
        self._reads = reads
        self._reach = reach
        self._seal = None if reach is None else reach.seal()
        self._links = Links(temp, copies=True)
        self._costs = task_seconds(plan)
        self._temp = temp
        self.launched = Launched(pool, memory_bytes, self._open_node)
        # Where the rows are, while the instance is open.
        self._exchange: LocalExchange | None = None

    @contextmanager
    def reading(
        self, launch: int, riders: Sequence[tuple[object, TaskId]]
    ) -> Iterator[Sequence[str]]:
        """Parse the segment of text that the riders of a launch read, once for all of them.

        It is stopped when no rider is left. Other splits are read by each rider for itself: to
        decode a columnar file together costs more than it saves.
        """
        sets = [tasks for tasks, _ in riders if isinstance(tasks, StagedTasks)]
        reads = [
            read
            for tasks, (_, task) in zip(sets, riders, strict=True)
            if (read := tasks.segment(task)) is not None
        ]
        if self._reads is None or len(reads) < len(riders):
            yield [""] * len(riders)
            return
        stop = Together([tasks.launched.cancellation(launch) for tasks in sets])
        try:
            with self._reads.reading(reads, stop) as sources:
                yield sources
        finally:
            for tasks in sets:
                tasks.launched.over(launch)

    def segment(self, task: TaskId) -> SegmentRead | None:
        """The segment of text that a task reads."""
        return self._query.segment(task)

    def cost_s(self, task: TaskId) -> float:
        map_s, reduce_s = self._costs[task.job]
        return map_s if task.kind == MAP else reduce_s or 0.0

    def run(self, launch: int, task: TaskId, source: str = "") -> float:
        """Run one task of a launch on the calling thread; the bytes it made.

        `source` is what `reading` gave. The task's job has the plan's name. A reduce that was
        launched before all maps of its job have ended makes its build sides, then sleeps until they
        have. Rows of maps that have ended stay in the exchange meanwhile: a reference to them would
        keep in memory what is spilled.
        """
        with ExitStack() as linked:
            if self._seal is not None and source:
                source = linked.enter_context(self._links.over(source))
            try:
                return self._run(launch, task, source)
            except QueryardError as error:
                told = error if self._reach is None else self._reach.told(error)
                raise told from None

    def _run(self, launch: int, task: TaskId, source: str) -> float:
        cancelled = self.launched.cancellation(launch)
        try:
            node = self.launched.node()
            if self._query.is_early(task):
                node.prepare(task, self._query.builds(task), cancelled)
                self._query.wait_for_maps(task.job, cancelled)
            began_s = time.thread_time()
            outcome = node.run(self._query.spec(task, launch, source=source), cancelled)
            if self._reads is not None and (read := self.segment(task)) is not None:
                self._reads.rode(read, time.thread_time() - began_s)
            self._query.done(task, outcome)
            self._fold(task.job, launch, cancelled)
        finally:
            self.launched.over(launch)
        return outcome.output_bytes

    def _fold(self, job: str, launch: int, cancelled: Cancellation) -> None:
        """Put partial results of a job together, if enough have come."""
        found = self._query.fold_spec(job, launch)
        if found is None:
            return
        node, exchange = self.launched.node(), self._rows()
        try:
            outcome = node.run(found.spec, cancelled)
        except QueryFailed:
            # The outputs are there as they were; if memory is short, the reduce phase will tell.
            self._query.unfolded(found)
            cancelled.check()
            return
        exchange.drop(self._query.folded(found, outcome))

    def kill(self, launch: int) -> None:
        """Stop the task of one launch; returns when it has stopped."""
        self.launched.kill(launch)

    def cancel(self, error: BaseException) -> None:
        """Stop all tasks, and let none begin."""
        self.launched.cancel()

    def result(self) -> pa.RecordBatchReader:
        """The answer; all tasks must have ended well."""
        return self._query.result(self._rows())

    def _rows(self) -> LocalExchange:
        exchange = self._exchange
        if exchange is None:
            raise QueryCancelled("cancelled")
        return exchange

    def actuals(self) -> dict[str, JobActuals]:
        """What every job has done so far."""
        return self._query.actuals()

    def close(self) -> None:
        """Free everything, once no task runs."""
        self._exchange = None
        self.launched.close()

    def _open_node(self, opening: ExitStack, half: int) -> StagedNode:
        seal = self._seal
        if seal is not None:
            seal = seal.with_folders([str(self._links.folder)])
            opening.callback(self._links.close)
        instance = opening.enter_context(open_instance(half, self._temp, seal))
        if self._reads is not None:
            # Texts that were taken out of files come one after another under one path.
            instance.execute("SET GLOBAL enable_external_file_cache = false")
        exchange = LocalExchange(half, self._temp)
        opening.callback(exchange.close)
        self._query.publish(exchange)
        node = opening.enter_context(StagedNode(instance, exchange))
        self._exchange = exchange
        return node

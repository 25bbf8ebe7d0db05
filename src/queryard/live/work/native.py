"""Native work: DuckDB plans and runs a query; to the kernel it is one divisible job.

Identical queries that are active at the same time share one execution. Each keeps its rank in the
kernel, with its own tenant, priority and deadline, and the slots it is granted work on the shared
execution, which is thus as urgent as the most urgent of them. The memory of the execution is
reserved by the query that was granted the first slot; if that query is cancelled, another reserves
it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from queryard.backends.protocol import NATIVE_JOB, Leased, Usage
from queryard.core.events import MemoryChanged
from queryard.core.fitting import WORTH
from queryard.core.model import Divisible, Job, Table
from queryard.core.speedup import Speedup
from queryard.engine.errors import OutOfMemory
from queryard.estimate.widths import NOTHING_SEEN, Idling
from queryard.estimate.work import Prediction
from queryard.results.streams import ResultStream

from ..request import QueryRequest
from .base import Moved
from .leased import LeasedWork

# Core-seconds; a query that needs no more ends before its slot could be revoked.
MOMENT_S = 0.1
# A query begun as a short one saves about 4 ms. If it is not short, about LOST_S are lost: until
# then its slots are not called back, and it begins again. So it must be short with a probability of
# 1 - 0.004 / LOST_S = 98.7 %. Half of all queries are within the spread; if errors have a normal
# distribution in the logarithm, 98.7 % are below the spread to the power of 3.3.
LOST_S = 0.3
SURE = 3.3
# Functions that make rows without a table: their work cannot be predicted from bytes.
_MAKERS = frozenset({"generate_series", "range", "recursive", "repeat", "unnest"})


class SharedExecution:
    """One execution, and the queries it answers."""

    def __init__(
        self,
        first: str,
        key: Hashable | None,
        memory_bytes: int,
        most_bytes: int,
        narrow: bool = False,
    ) -> None:
        """A `narrow` one begins on one slot: see `needs_one_slot`."""
        self.name = first
        self.key = key
        self.memory_bytes = memory_bytes
        self.narrow = narrow
        # The query that reserves the memory it uses.
        self.holder: str | None = None
        # The queries that want its answer, the earliest first; and those that are in the kernel.
        self.queries: list[str] = [first]
        self.entered: list[str] = []
        self.ended = False
        # Core-seconds by query, those of queries that have left included.
        self.usage: dict[str, Usage] = {}
        self._most_bytes = most_bytes
        # That of the node on which it runs.
        self.speed = 1.0

    @property
    def usual_s(self) -> float:
        """Core-seconds so far, as on a node of the speed 1: predictions are for such a node."""
        return self.work_s * self.speed

    @property
    def work_s(self) -> float:
        """Core-seconds so far, on the slots of all its queries."""
        return sum(usage.work_s for usage in self.usage.values())

    @property
    def idling(self) -> Idling:
        """What was seen of its slots, of all its queries."""
        seen = NOTHING_SEEN
        for usage in self.usage.values():
            seen = seen.plus(usage.idling)
        return seen

    def needs_more(self, error: BaseException, rows_out: bool) -> bool:
        """Whether to run it again: its memory reservation was a guess and too small, and no reader
        has got a row yet.
        """
        guessed = self.memory_bytes < self._most_bytes
        return isinstance(error, OutOfMemory) and guessed and not rows_out


class SharedExecutions:
    """Active executions, by name and by key (queries with one key have the same answer)."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._by_name: dict[str, SharedExecution] = {}
        self._by_key: dict[Hashable, SharedExecution] = {}

    def new(
        self,
        query: str,
        statement: Any,
        key: Hashable | None,
        memory_bytes: int,
        most_bytes: int,
        reads: Table | None = None,
        narrow: bool = False,
    ) -> NativeWork:
        """A new execution for a query, which identical queries may join by its key.

        On a cluster, `reads` is the largest table that it reads. A `narrow` one begins on one slot.
        """
        run = SharedExecution(query, key, memory_bytes, most_bytes, narrow)
        self._by_name[query] = run
        if key is not None:
            self._by_key[key] = run
        return NativeWork(query, run, self, statement, reads)

    def joined(self, query: str, key: Hashable | None) -> NativeWork | None:
        """Let a query join the active execution with its key; None if there is none."""
        run = None if key is None else self._by_key.get(key)
        if run is None or run.ended or not run.queries:
            return None
        run.queries.append(query)
        return NativeWork(query, run, self, None)

    def is_active(self, key: Hashable) -> bool:
        """Whether an execution with this key is under way."""
        run = self._by_key.get(key)
        return run is not None and not run.ended and bool(run.queries)

    def get(self, name: str) -> SharedExecution | None:
        return self._by_name.get(name)

    def over(self, run: SharedExecution) -> None:
        """An execution has ended; no further query joins it."""
        run.ended = True
        if run.key is not None and self._by_key.get(run.key) is run:
            del self._by_key[run.key]

    def drop(self, run: SharedExecution) -> None:
        """No query needs it any more."""
        self.over(run)
        if self._by_name.get(run.name) is run:
            del self._by_name[run.name]

    def __len__(self) -> int:
        return len(self._by_name)


class NativeWork(LeasedWork):
    """One query's part in a shared execution."""

    def __init__(
        self,
        query: str,
        run: SharedExecution,
        runs: SharedExecutions,
        statement: Any,
        reads: Table | None = None,
    ) -> None:
        super().__init__(query, Divisible(width=1 if run.narrow else runs.width))
        self._reads = reads
        self.run = run
        self._runs = runs
        self._statement = statement

    def jobs(self) -> tuple[Job, ...]:
        scans = () if self._reads is None else (self._reads.name,)
        return (Job(NATIVE_JOB, divisible=self._divisible, scans=scans, scans_alone=bool(scans)),)

    def tables(self) -> Mapping[str, tuple[str, Table]]:
        return {} if self._reads is None else {self._reads.name: ("", self._reads)}

    @property
    def memory_bytes(self) -> int:
        return self.run.memory_bytes if self.run.holder is None else 0

    def for_backend(self, output: ResultStream) -> Leased:
        run = self.run
        return Leased(run.name, self._runs.width, output, self._statement, run.narrow)

    def entered(self) -> Moved:
        self.run.entered.append(self._query)
        if self.run.holder is None:
            return Moved((), ())
        # The execution has begun, and another query reserves its memory.
        return Moved((self._query,), (MemoryChanged(0.0, self._query, 0.0),))

    def granted(self) -> Moved:
        run = self.run
        if run.holder is not None or not run.entered:
            return Moved((self._query,), ())
        run.holder = self._query if self._query in run.entered else run.entered[0]
        moved = [MemoryChanged(0.0, other, 0.0) for other in run.entered if other != run.holder]
        if run.holder != self._query:  # the former holder has left meanwhile
            moved.append(MemoryChanged(0.0, run.holder, float(run.memory_bytes)))
        return Moved(tuple(run.entered), moved)

    def left(self) -> Sequence[MemoryChanged]:
        run = self.run
        if self._query in run.queries:
            run.queries.remove(self._query)
        if self._query in run.entered:
            run.entered.remove(self._query)
        if not run.queries:
            self._runs.drop(run)
        if run.holder != self._query or not run.queries or run.ended:
            return ()
        # A query that is about to join reserves the memory itself when it enters the kernel.
        run.holder = run.entered[0] if run.entered else None
        if run.holder is None:
            return (MemoryChanged(0.0, self._query, 0.0),)
        return (
            MemoryChanged(0.0, self._query, 0.0),
            MemoryChanged(0.0, run.holder, float(run.memory_bytes)),
        )


def takes_a_moment(request: QueryRequest, prediction: Prediction) -> bool:
    """Whether a query is expected to be very short, the upper end of its prediction included.

    >>> short = QueryRequest("", (), (), "native")
    >>> [takes_a_moment(short, Prediction(0.05, None, "plan", s)) for s in (1.15, 1.5, 2.0)]
    [True, True, False]
    """
    if prediction.work_s > MOMENT_S or prediction.work_s * prediction.spread**SURE > LOST_S:
        return False
    return prediction.by == "template" or request.names.isdisjoint(_MAKERS)


def needs_one_slot(curve: Speedup) -> bool:
    """Whether a query that takes a moment begins on one slot: a further one would hardly speed it
    up, and to wake its thread and to take it back costs as much as the query.

    >>> from queryard.estimate.widths import expected_speedup
    >>> [needs_one_slot(expected_speedup(work_s)) for work_s in (0.002, 0.007, 0.01, 0.1)]
    [True, True, False, False]
    """
    return curve.gain(1) < WORTH


def plain_key(parameters: Any) -> Hashable | None:
    """Parameters that can be compared; None if some cannot.

    >>> plain_key([1, "a"]) == plain_key((1, "a")), plain_key([1]) == plain_key([True])
    (True, False)
    >>> plain_key([0.0]) == plain_key([-0.0]), plain_key([[1]])
    (False, None)
    """
    named = parameters.items() if isinstance(parameters, Mapping) else enumerate(parameters)
    values = list(named)
    if not all(type(value) in _PLAIN for _, value in values):
        return None
    return tuple((key, type(value), repr(value)) for key, value in values)


_PLAIN = (str, int, float, bool, bytes, type(None))

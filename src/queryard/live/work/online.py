"""Online work: one divisible job that answers after every batch of its sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from queryard.backends.protocol import NATIVE_JOB, Leased
from queryard.core.events import EstimateChanged, MemoryChanged, Retry
from queryard.core.model import Divisible, Job, JobId, Split, Table
from queryard.core.speedup import Speedup
from queryard.engine.online.statement import OnlineStatement
from queryard.engine.program import Program
from queryard.engine.sampling import Sample
from queryard.estimate.tasks.planned import PlannedQuery
from queryard.results.explanation import Explanation
from queryard.results.streams import ResultStream

from .base import Moved


class OnlineWork:
    """It runs on leased slots like a native query, and may end before all is read.

    An iterative program of the user's runs the same way, on one slot, with a batch per step.
    """

    hands_over = False

    def __init__(
        self,
        query: str,
        statement: OnlineStatement | Program,
        width: int,
        batches: int,
        memory_bytes: int = 0,
        sample: Sample | None = None,
    ) -> None:
        self.memory_bytes = memory_bytes
        self._query = query
        self._statement = statement
        self._width = width
        self._batches = batches
        self._sample = sample

    def jobs(self) -> tuple[Job, ...]:
        divisible = Divisible(width=self._width, batches=self._batches)
        return (Job(NATIVE_JOB, divisible=divisible, scans=tuple(self.tables())),)

    def tables(self) -> Mapping[str, tuple[str, Table]]:
        """The sample that it goes round, which is not cut as the table itself is."""
        if self._sample is None:
            return {}
        name = f"{self._sample.table} ({self._sample.kind})"
        splits = tuple(Split(part.bytes) for part in self._sample.parts)
        return {name: (self._sample.fingerprint, Table(name, splits))}

    def estimates(self, expected_s: float, speedup: Speedup) -> list[EstimateChanged]:
        job = str(JobId(self._query, NATIVE_JOB))
        return [EstimateChanged(0.0, job, work_s=expected_s, speedup=speedup)]

    def planned(self) -> PlannedQuery | None:
        return None

    def for_backend(self, output: ResultStream) -> Leased:
        return Leased(self._query, self._width, output, self._statement)

    def entered(self) -> Moved:
        return Moved((), ())

    def granted(self) -> Moved:
        return Moved((self._query,), ())

    def left(self) -> Sequence[MemoryChanged]:
        return ()

    def on_failure(self, error: BaseException) -> Retry:
        return "never"

    def needs_more(self, error: BaseException, most_bytes: int) -> bool:
        return False

    def hand_over(self, output: ResultStream) -> None:
        raise AssertionError("an online query puts its last answer out itself")

    def close(self) -> None:
        pass

    def explanation(self) -> Explanation | None:
        return None

"""What native and online work have in common: to the kernel both are one divisible job."""

from __future__ import annotations

from collections.abc import Mapping

from queryard.backends.protocol import NATIVE_JOB
from queryard.core.events import EstimateChanged, Retry
from queryard.core.model import Divisible, Job, JobId, Table
from queryard.core.speedup import Speedup
from queryard.estimate.tasks.planned import PlannedQuery
from queryard.results.explanation import Explanation
from queryard.results.streams import ResultStream


class LeasedWork:
    """It has no tasks, runs on leased slots, and its rows go to the reader as they are made."""

    hands_over = False

    def __init__(self, query: str, divisible: Divisible) -> None:
        self._query = query
        self._divisible = divisible

    def jobs(self) -> tuple[Job, ...]:
        return (Job(NATIVE_JOB, divisible=self._divisible, scans=tuple(self.tables())),)

    def tables(self) -> Mapping[str, tuple[str, Table]]:
        """What it goes round with others."""
        return {}

    def estimates(self, expected_s: float, speedup: Speedup) -> list[EstimateChanged]:
        job = str(JobId(self._query, NATIVE_JOB))
        return [EstimateChanged(0.0, job, work_s=expected_s, speedup=speedup)]

    def planned(self) -> PlannedQuery | None:
        return None

    def moved_bytes(self, nodes: int) -> float:
        return 0.0

    def on_failure(self, error: BaseException) -> Retry:
        return "never"

    def needs_more(self, error: BaseException, most_bytes: int) -> bool:
        return False

    def hand_over(self, output: ResultStream) -> None:
        raise AssertionError("the rows of leased work go to the reader as they are made")

    def close(self) -> None:
        pass

    def explanation(self) -> Explanation | None:
        return None

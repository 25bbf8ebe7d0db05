"""What a query consists of for the kernel, the backend and the person who asks about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from queryard.backends.local import NATIVE_JOB
from queryard.core.events import EstimateChanged
from queryard.core.model import Divisible, Job
from queryard.results.streams import ResultStream

if TYPE_CHECKING:
    from queryard.results.explanation import Explanation

    from .record import Record
    from .runs import Run
    from .session import Session


class Work(Protocol):
    """One query on its way."""

    output: ResultStream

    @property
    def started(self) -> bool:
        """Whether a slot has worked on it."""

    @property
    def ended(self) -> bool:
        """Whether the engine is done with it."""

    @property
    def error(self) -> BaseException | None:
        """Why the engine gave up."""

    def jobs(self) -> tuple[Job, ...]:
        """The jobs, as the kernel sees them."""

    def estimates(self, query: str) -> list[EstimateChanged]:
        """What is expected of each job, as far as it is known."""

    def progress(self) -> float:
        """Share done."""

    def finish(self) -> None:
        """The kernel says that all is done: hand over the rows."""

    def cancel(self, error: BaseException) -> None:
        """Stop it."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not staged although that was asked for."""

    def explain(self, session: Session) -> Explanation:
        """How it is run."""


class NativeWork:
    """A query that DuckDB plans and runs; to the kernel it is one divisible job."""

    def __init__(self, record: Record, run: Run, slots: int, reasons: Sequence[str] = ()) -> None:
        self.run = run
        self.output = record.output
        self.reasons = tuple(reasons)
        self._record = record
        self._slots = slots
        # Why its user has left, while others stay.
        self._left: BaseException | None = None

    @property
    def started(self) -> bool:
        return self.run.native.started

    @property
    def ended(self) -> bool:
        return self._left is not None or (self.run.native.ended and not self.run.again)

    @property
    def error(self) -> BaseException | None:
        return self._left or self.run.native.error

    def jobs(self) -> tuple[Job, ...]:
        return (Job(NATIVE_JOB, divisible=Divisible(width=self._slots)),)

    def estimates(self, query: str) -> list[EstimateChanged]:
        job = f"{query}/{NATIVE_JOB}"
        return [EstimateChanged(0.0, job, work_s=self._record.expected_s)]

    def progress(self) -> float:
        return self.run.native.progress()

    def finish(self) -> None:
        pass  # the rows are on their way since they were made

    def cancel(self, error: BaseException) -> None:
        if self.ended:
            return
        self._left = error
        if self.run.leave(self._record):
            self.run.native.cancel(error)
        self.output.fail(error)

    def explain(self, session: Session) -> Explanation:
        from .explanation import native_explanation

        statement, parameters = self.run.native.asked
        return native_explanation(session, statement, parameters, self.reasons)

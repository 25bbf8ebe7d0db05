"""What a query consists of for the kernel, the backend and the person who asks about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from queryard.core.model import Divisible, Job
from queryard.engine.native import NativeQuery
from queryard.engine.results import ResultStream

if TYPE_CHECKING:
    from .explanation import Explanation
    from .session import Session

NATIVE_JOB = "native"


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

    def __init__(self, query: NativeQuery, slots: int, reasons: Sequence[str] = ()) -> None:
        self.query = query
        self.output = query.output
        self.reasons = tuple(reasons)
        self._slots = slots

    @property
    def started(self) -> bool:
        return self.query.started

    @property
    def ended(self) -> bool:
        return self.query.ended

    @property
    def error(self) -> BaseException | None:
        return self.query.error

    def jobs(self) -> tuple[Job, ...]:
        return (Job(NATIVE_JOB, divisible=Divisible(width=self._slots)),)

    def progress(self) -> float:
        return self.query.progress()

    def finish(self) -> None:
        pass  # the rows are on their way since they were made

    def cancel(self, error: BaseException) -> None:
        self.query.cancel(error)

    def explain(self, session: Session) -> Explanation:
        from .explanation import native_explanation

        statement, parameters = self.query.asked
        return native_explanation(session, statement, parameters, self.reasons)

"""How a query is run: its jobs or operators, what is expected of them, and what came of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from queryard.core.readable import several

from .estimate import Estimate
from .job_tree import ExplainedJob, as_text, job_table

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["ExplainedJob", "Explanation"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Jobs in an order in which they can run; the last one gives the answer.

    `reasons` say why a query that was to be staged is not.
    """

    sql: str
    plan: Literal["native", "staged"]
    jobs: tuple[ExplainedJob, ...]
    reasons: tuple[str, ...] = ()
    seconds: float | None = None
    notes: tuple[str, ...] = field(default=())
    estimate: Estimate | None = None

    @property
    def analyzed(self) -> bool:
        """Whether it was run, so that there are real figures."""
        return any(job.rows is not None for job in self.jobs)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        found = asdict(self)
        for name in ("sql", "plan", "jobs", "reasons"):
            if self.estimate is not None:
                del found["estimate"][name]  # they stand above
        return found

    def summary(self) -> str:
        """In a line: how, and how long it took."""
        if self.plan == "native":
            text = "native: one job that DuckDB plans and runs"
        else:
            tasks = sum((job.map_tasks or 0) + (job.reduce_tasks or 0) for job in self.jobs)
            text = f"staged: {several(len(self.jobs), 'job')}, {several(tasks, 'task')}"
        return text if self.seconds is None else f"{text}; took {self.seconds:.3g} s"

    def table(self) -> Table:
        """For a console of rich's: a tree, the answer on top, with figures beside it."""
        return job_table(self.jobs, self.plan, self.analyzed)

    def lines(self) -> tuple[str, ...]:
        """What is told of the whole, below the summary."""
        told = () if self.estimate is None else (f"expected: {self.estimate.summary()}",)
        return (*told, *self.notes)

    def text(self) -> str:
        """All of it, for a file or a terminal without colours."""
        reasons = (f"not staged: {reason}" for reason in self.reasons)
        return as_text(self.summary(), *reasons, *self.lines(), self.table())

    def __str__(self) -> str:
        return self.text()

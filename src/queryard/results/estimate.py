"""What is expected of a query that has not run."""

from __future__ import annotations

import html
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from queryard.core import readable
from queryard.estimate.expected import Expected
from queryard.estimate.work import By

from .job_tree import (
    ExplainedJob,
    as_text,
    job_table,
    seconds_text,
    several_rows,
    size_text,
    time_text,
)

if TYPE_CHECKING:
    from rich.table import Table

_BY: dict[By, str] = {
    "template": "by what earlier queries of its template took",
    "plan": "by its plan",
    "bytes": "by the bytes it reads",
    "guess": "a guess: it names no table",
}


@dataclass(frozen=True, slots=True, repr=False)
class Estimate:
    """What is expected of a query, as a whole and of each operator (native) or job (staged).

    Intervals hold 90 of 100 such queries. `work_s` are core-seconds; `alone_s` is how long it takes
    if it has all `slots` of the session, of which it can use `useful_slots` well. `by` says how it
    was predicted: by its template's past, its plan or its bytes, or as a guess.
    """

    sql: str
    plan: Literal["native", "staged"]
    by: By
    rows: Expected | None
    bytes_read: float
    work_s: Expected
    memory_bytes: Expected | None
    slots: int
    useful_slots: int
    alone_s: Expected
    jobs: tuple[ExplainedJob, ...] = ()
    reasons: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def summary(self) -> str:
        """In a line: the work, how it was predicted, the memory, and the time alone."""
        parts = [f"{seconds_text(self.work_s)} of work, {_BY[self.by]}"]
        if self.memory_bytes is not None:
            parts.append(f"memory {size_text(self.memory_bytes)}")
        slots = readable.several(self.slots, "slot")
        useful = "" if self.useful_slots >= self.slots else f", {self.useful_slots} of use"
        parts.append(f"{time_text(self.alone_s.value)} alone on {slots}{useful}")
        return "; ".join(parts)

    def answer(self) -> str:
        """In a line: what it reads and gives."""
        rows = "" if self.rows is None else f", gives {several_rows(self.rows)}"
        return f"reads {readable.size(self.bytes_read)}{rows}"

    def table(self) -> Table:
        """For a console of rich's: the operators or jobs."""
        return job_table(self.jobs, self.plan, analyzed=False)

    def text(self) -> str:
        """All of it, for a file or a terminal without colours."""
        told = (f"not staged: {reason}" for reason in self.reasons)
        lines = (f"{self.plan}: {self.summary()}", *told, self.answer())
        return as_text(*lines, self.table()) if self.jobs else as_text(*lines)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Estimate {self.plan}: {self.summary()}>"

    def _repr_html_(self) -> str:
        rows = [
            ("work", seconds_text(self.work_s), _BY[self.by]),
            ("alone", seconds_text(self.alone_s), readable.several(self.slots, "slot")),
            ("memory", size_text(self.memory_bytes), ""),
            ("reads", readable.size(self.bytes_read), ""),
            ("gives", several_rows(self.rows) if self.rows is not None else "", ""),
        ]
        cells = "".join(
            f"<tr><th>{name}</th><td>{html.escape(value)}</td><td>{html.escape(note)}</td></tr>"
            for name, value, note in rows
            if value
        )
        tree = html.escape(as_text(self.table())) if self.jobs else ""
        return f"<table>{cells}</table><pre>{tree}</pre>"

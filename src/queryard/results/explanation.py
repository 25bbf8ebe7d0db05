"""How a query is run: its jobs or operators, what is expected of them, and what came of it."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from queryard.core.amounts import several
from queryard.core.model import Operator

if TYPE_CHECKING:
    from rich.table import Table

LONGEST = 60  # of what is said about a job, in text


@dataclass(frozen=True, slots=True)
class ExplainedJob:
    """A job of a staged plan, or an operator of DuckDB's; what is not known is None."""

    name: str
    operator: Operator
    what: str
    inputs: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    map_tasks: int | None = None
    reduce_tasks: int | None = None
    rows_expected: float | None = None
    bytes_expected: float | None = None
    rows: float | None = None
    bytes: float | None = None
    seconds: float | None = None
    """Of work, over all slots."""


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

    @property
    def analyzed(self) -> bool:
        """Whether it was run, so that there are real figures."""
        return any(job.rows is not None for job in self.jobs)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

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
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
        table.add_column("operator" if self.plan == "native" else "job", no_wrap=True)
        table.add_column("class", no_wrap=True, min_width=7)
        for place, title in enumerate(self._titles()):
            # Where it is narrow, titles break and the first column is cut, but never a number.
            widest = max((len(self._row(job)[place]) for job in self.jobs), default=0)
            least = max(widest, *map(len, title.split()))
            table.add_column(title, justify="right", min_width=least)
        for before, job, again in self._tree():
            label = Text(before, style="dim")
            label.append(job.name if self.plan == "staged" else "", style="bold")
            text = f" {job.what}" if self.plan == "staged" else job.what
            label.append(" (see above)" if again else _crop(text, LONGEST - len(before)))
            table.add_row(label, "" if again else job.operator, *([] if again else self._row(job)))
        return table

    def _titles(self) -> list[str]:
        titles = ["tasks"] if self.plan == "staged" else []
        titles += ["rows expected", "size expected"]
        return titles + (["rows", "size", "slot time"] if self.analyzed else [])

    def _row(self, job: ExplainedJob) -> list[str]:
        cells = []
        if self.plan == "staged":
            cells.append(
                f"{job.map_tasks or 0}+{job.reduce_tasks}"
                if job.reduce_tasks
                else f"{job.map_tasks or 0}"
            )
        cells += [_rows(job.rows_expected), _size(job.bytes_expected)]
        if self.analyzed:
            cells += [_rows(job.rows), _size(job.bytes), _seconds(job.seconds)]
        return cells

    def _tree(self) -> Iterator[tuple[str, ExplainedJob, bool]]:
        """Every job behind what its lines look like, and whether it was there before."""
        by_name = {job.name: job for job in self.jobs}
        seen: set[str] = set()

        def walk(name: str, before: str, beside: str) -> Iterator[tuple[str, ExplainedJob, bool]]:
            job = by_name[name]
            again = name in seen
            yield before, job, again
            if again:
                return
            seen.add(name)
            for place, inner in enumerate(job.inputs):
                is_last = place == len(job.inputs) - 1
                yield from walk(
                    inner,
                    beside + ("└─ " if is_last else "├─ "),
                    beside + ("   " if is_last else "│  "),
                )

        if self.jobs:
            yield from walk(self.jobs[-1].name, "", "")

    def text(self) -> str:
        """All of it, for a file or a terminal without colours."""
        from rich.console import Console

        out = io.StringIO()
        # In a notebook rich would show the text instead of writing it.
        console = Console(
            file=out, width=10_000, color_system=None, highlight=False, force_jupyter=False
        )
        console.print(self.summary(), markup=False)
        for line in (*(f"not staged: {reason}" for reason in self.reasons), *self.notes):
            console.print(line, markup=False)
        console.print(self.table())
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines())

    def __str__(self) -> str:
        return self.text()


# --- figures as text -----------------------------------------------------------------------------


def _rows(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _size(value: float | None) -> str:
    if value is None:
        return ""
    if value < 1000:
        return f"{value:.0f} B"
    power = min(4, int(math.log10(value) // 3))
    return f"{value / 1000**power:.1f} {' kMGT'[power]}B"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f} s"


def _crop(text: str, length: int) -> str:
    return text if len(text) <= length else text[: max(length - 1, 8)] + "…"

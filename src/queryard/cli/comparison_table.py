"""Policies side by side, as a table for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from . import readable
from .scores import ERROR_CUT, Scores

BEST = "bold green"
IDEAL = "italic dim"


@dataclass(frozen=True, slots=True)
class _Column:
    """A score, its title, how it is written, and which end of it is the better one."""

    title: str
    field: str
    write: Callable[[Any], str]
    best: Callable[[list[float]], float]

    def value(self, row: Scores) -> float | None:
        value: float | None = getattr(row, self.field)
        return value

    def text(self, row: Scores) -> str:
        return self.write(self.value(row))


COLUMNS = (
    _Column("mean\nresp.\n[s]", "mean_response_s", readable.seconds, min),
    _Column("p95\nresp.\n[s]", "p95_response_s", readable.seconds, min),
    _Column("mean\nslow-\ndown", "mean_slowdown", readable.ratio, min),
    _Column("max\nslow-\ndown", "max_slowdown", readable.ratio, min),
    _Column(f"error\n−{ERROR_CUT:.0%}\n[s]", "mean_error_cut_s", readable.seconds, min),
    _Column("late\nof\n{deadlines}", "deadlines_missed", readable.count, min),
    _Column("make-\nspan\n[s]", "makespan_s", readable.seconds, min),
    _Column("slots\nused\n[%]", "utilisation", readable.hundredths, max),
    _Column("fair-\nness\nJain", "fairness", readable.index, max),
)


def comparison_table(
    title: str, rows: Sequence[Scores], references: Sequence[Scores] = ()
) -> Group:
    """Policies, then the ideals; the best policy of a column stands out, unless all are alike.

    A column in which no policy has a number is left out.
    """
    columns = [c for c in COLUMNS if any(c.value(row) is not None for row in rows)]
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 0, 0, 1),  # so that ten columns fit into 80 characters
        pad_edge=False,
    )
    table.add_column("policy", overflow="fold", vertical="bottom")
    for column in columns:
        heading = column.title.format(deadlines=max(row.deadlines for row in rows))
        table.add_column(Text(heading), justify="right", no_wrap=True, vertical="bottom")
    best = [_best_text(column, rows) for column in columns]
    for row in rows:
        texts = [column.text(row) for column in columns]
        cells = [
            Text(text, style=BEST if text == winner else "")
            for text, winner in zip(texts, best, strict=True)
        ]
        table.add_row(Text(row.name), *cells)
    if references:
        table.add_section()
    for row in references:
        table.add_row(Text(row.name), *(column.text(row) for column in columns), style=IDEAL)
    return Group(Text(title, style="bold"), table)  # which may be longer than the table is wide


def _best_text(column: _Column, rows: Sequence[Scores]) -> str | None:
    """The best value as it is written, so that what looks equal is treated as equal."""
    texts = {value: column.text(row) for row in rows if (value := column.value(row)) is not None}
    if len(set(texts.values())) < 2:
        return None
    return texts[column.best(list(texts))]

"""Outcomes of experiments in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from queryard.experiments.sections import Section


def show(console: Console, section: Section) -> None:
    """What came out, or why nothing did."""
    from queryard.experiments.report import findings_table

    outcome = section.outcome
    title = f"\n[bold]{escape(section.title)}[/bold] ({escape(section.source)})"
    console.print(title, highlight=False)
    if section.failure:
        console.print(Text(f"Failed: {section.failure}", style="red"))
    tables = [findings_table(outcome.findings)] if outcome.findings else []
    for table in (*tables, *outcome.tables):
        console.print(table_of(table.title, table.columns, table.rows))
    for note in outcome.notes:
        console.print(Text(f"Note: {note}.", style="dim"))


def table_of(
    title: str,
    columns: tuple[str, ...],
    rows: tuple[tuple[str, ...], ...],
    numbers: bool = True,
) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if numbers and place else "left")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table

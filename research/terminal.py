"""Outcomes of experiments in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from .outcome import Table as Content
    from .sections import Section


def show(console: Console, section: Section) -> None:
    """What came out, or why nothing did."""
    from .pictures import picture_of
    from .report import findings_table

    outcome = section.outcome
    title = f"\n[bold]{escape(section.title)}[/bold] ({escape(section.source)})"
    console.print(title, highlight=False)
    if section.failure:
        console.print(Text(f"Failed: {section.failure}", style="red"))
    tables = [findings_table(section)] if outcome.findings else []
    for table in (*tables, *outcome.tables):
        for part in parts_of(console, table):
            console.print(part)
    for chart in outcome.charts:
        console.print()
        for line in picture_of(console, chart):
            console.print(line)
    if outcome.charts:
        console.print()
    for note in outcome.notes:
        console.print(Text(f"Note: {note}.", style="dim"))


def parts_of(console: Console, table: Content) -> Iterator[Table]:
    """The table, one below the other in as many parts as it takes to cut no word short.

    Each begins with the first column.
    """
    title = table.title
    rest = list(range(1, len(table.columns)))
    while True:
        count = len(rest)
        while count > 1 and not _fits(console, _chosen(table, title, rest[:count])):
            count -= 1
        yield _chosen(table, title, rest[:count])
        rest = rest[count:]
        if not rest:
            return
        title = f"{table.title}, continued"


def _fits(console: Console, table: Table) -> bool:
    # Within the width of the console every table would seem to fit.
    least = console.measure(table, options=console.options.update_width(10_000)).minimum
    return least <= console.width


def _chosen(table: Content, title: str, places: Sequence[int]) -> Table:
    """Some columns of a table, after the first one."""

    def chosen(cells: tuple[str, ...]) -> tuple[str, ...]:
        return (cells[0], *(cells[place] for place in places))

    return table_of(title, chosen(table.columns), tuple(chosen(row) for row in table.rows))


def table_of(
    title: str,
    columns: tuple[str, ...],
    rows: tuple[tuple[str, ...], ...],
    numbers: bool = True,
) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    for place, column in enumerate(columns):
        justify: Literal["left", "right"] = "right" if numbers and place else "left"
        # Names are there to be copied: they are folded rather than cut, those of a list never.
        is_name = not numbers and not place
        table.add_column(column, justify=justify, overflow="fold", no_wrap=is_name)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table

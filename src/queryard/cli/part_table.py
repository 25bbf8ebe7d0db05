"""Parts as a table for the terminal: what each decides, and by which rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich import box
from rich.table import Table
from rich.text import Text

from .policy_details import PartDetail


def part_table(parts: Iterable[PartDetail], questions: Mapping[str, str] | None = None) -> Table:
    """A row a part; `questions` say at the head of its parts what a decision is about."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("decision", no_wrap=True)
    table.add_column("part", no_wrap=True)
    table.add_column("rule", overflow="fold")
    before = ""
    for part in parts:
        decision = Text("" if part.decision == before else part.decision)
        if decision and questions:
            table.add_section()
            table.add_row(decision, "", Text(questions[part.decision], style="italic"))
            decision = Text()
        before = part.decision
        settings = [f"{key} = {value!r}" for key, value in part.settings.items()]
        name = Text("\n").join([Text(part.name, style="bold"), *map(Text, settings)])
        source = Text(f" [{part.citation}]" if part.citation else "", style="dim")
        table.add_row(decision, name, Text(part.rule) + source)
    return table

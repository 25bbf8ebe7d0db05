"""Rows and columns between two operators of a plan, as far as they are known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from queryard.sql.statistics import position

from .filters import Range
from .plans import WIDTH_BYTES
from .tables import TableFacts

_REFERENCE = re.compile(r"#(\d+)")


@dataclass(frozen=True, slots=True)
class Column:
    """A column between two operators."""

    name: str = ""
    width: float = WIDTH_BYTES
    distinct: float | None = None
    is_text: bool = False
    range: Range | None = None
    # Values in a row, if it is a list.
    length: float | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """What an operator gives: rows as expected here, and what that is times DuckDB's number."""

    rows: float
    correction: float
    columns: Sequence[Column]


def of_table(facts: TableFacts, name: str) -> Column:
    """A column of a table, with what the catalog knows of it."""
    known = facts.columns.get(name)
    if known is None:
        return Column(name, length=facts.lengths.get(name))
    low, high = position(known.min), position(known.max)
    return Column(
        name,
        known.average_width_bytes,
        known.distinct,
        name in facts.texts,
        None if low is None or high is None else (low, high),
        facts.lengths.get(name),
    )


def source(text: str, columns: Sequence[Column]) -> Column | None:
    """The column that an expression hands on, be it in another type; None if it computes."""
    inner = text.removeprefix("CAST(")
    if inner != text:
        inner = inner.partition(" AS ")[0]
    elif text.startswith("__internal_"):
        inner = text.partition("(")[2].removesuffix(")")
    if (found := _REFERENCE.fullmatch(inner)) is not None:
        place = int(found[1])
        return columns[place] if place < len(columns) else Column()
    if inner.startswith("#[") and len(columns) == 1:
        return columns[0]
    name = inner.strip('"').lower()
    return next((column for column in columns if column.name == name), None)

"""Rows and columns between two operators of a plan, as far as they are known."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from queryard.sql.statistics import position
from queryard.sql.statistics.distinct import remaining
from queryard.sql.statistics.distribution import Distribution

from .filters import Range
from .tables import TableFacts
from .tree import WIDTH_BYTES

# Rows that DuckDB hands on together.
VECTOR_ROWS = 2_048
_REFERENCE = re.compile(r"#(\d+)")
_CALL = re.compile(r"__internal_\w+\((.*?)(?:, -?\d+)?\)")


@dataclass(frozen=True, slots=True)
class Column:
    """A column between two operators.

    `text` is what it is over the columns of the one table it comes from, if that is so: a sample
    of the table can tell more of it. `domain` is how many values there are before any filter.
    """

    name: str = ""
    width: float = WIDTH_BYTES
    distinct: float | None = None
    domain: float | None = None
    is_text: bool = False
    is_whole: bool = False
    range: Range | None = None
    # The range before any filter.
    whole_range: Range | None = None
    # Values in a row, if it is a list.
    length: float | None = None
    table: str = ""
    text: str = ""
    # What holds for all rows of that table here; `own` is the part that reads this column only.
    where: str = ""
    own: str = ""
    # Of keys: the share of rows that have a value, how values are spread, what share of these
    # rows is here, and the range that a filter has left.
    present: float = 1.0
    spread: Distribution | None = None
    left: float = 1.0
    bounds: Range | None = None
    # Shares of frequent values, where they are not those of the table.
    frequent: Mapping[Any, float] | None = None
    # Whether rows were grouped by it.
    grouped: bool = False
    # Of what an aggregate or a window makes: the call, the rows of a group or a partition, and
    # the column that a sum adds up.
    call: str = ""
    group_rows: float = 0.0
    added: Column | None = None
    # Joins above that have dropped rows without a partner, and the shares of rows they have left.
    sifted: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stream:
    """What an operator gives: rows as expected here, and what that is times DuckDB's number.

    `doubt` is the expected squared error of the logarithm of the rows. If all rows are rows of one
    table for which `conditions` hold, `table` names it; of such rows the share `sifted` is there.
    """

    rows: float
    correction: float
    columns: Sequence[Column]
    doubt: float = 0.0
    table: str = ""
    conditions: tuple[str, ...] = ()
    sifted: float = 1.0
    # Slots that can make rows at once: each takes a row group at a time.
    lanes: float = math.inf
    # Columns by which rows were grouped: no two rows have the same values of all of them.
    unique: frozenset[str] = frozenset()
    # In how many pieces the rows come, if that is more than there need be.
    pieces: float = 0.0

    @property
    def vectors(self) -> float:
        """In how many pieces rows are handed on: filters leave many small ones."""
        return max(1.0, self.pieces, self.rows / VECTOR_ROWS)

    @property
    def bytes(self) -> float:
        """What the rows take in memory."""
        return self.rows * sum(column.width for column in self.columns)

    def thinned(self, rows: float, doubt: float = 0.0) -> Stream:
        """Fewer of these rows, taken evenly; of the values of a column some may be gone."""
        share = min(1.0, rows / max(1.0, self.rows))
        columns = [
            column
            if column.distinct is None or share >= 1
            else replace(
                column,
                distinct=max(1.0, remaining(column.distinct, self.rows, share)),
                left=column.left * share,
            )
            for column in self.columns
        ]
        correction = self.correction * rows / max(1.0, self.rows)
        pieces = self.vectors * touched(share, max(1.0, self.rows / self.vectors))
        return replace(
            self,
            rows=rows,
            correction=correction,
            columns=columns,
            doubt=self.doubt + doubt,
            table="",
            conditions=(),
            pieces=pieces,
        )


def touched(share: float, together: float) -> float:
    """The share of pieces of so many rows of which some are left.

    >>> touched(1.0, 2048), touched(0.5, 1.0), round(touched(0.001, 2048), 2)
    (1.0, 0.5, 0.87)
    """
    return 1.0 if share >= 1 else -math.expm1(together * math.log1p(-share))


def of_table(facts: TableFacts, name: str) -> Column:
    """A column of a table, with what the catalog knows of it."""
    known = facts.columns.get(name)
    if known is None:
        return Column(name, length=facts.lengths.get(name), table=facts.key, text=_quoted(name))
    low, high = position(known.min), position(known.max)
    values = None if low is None or high is None else (low, high)
    return Column(
        name,
        known.average_width_bytes,
        known.distinct,
        known.distinct,
        name in facts.texts,
        name in facts.wholes,
        values,
        values,
        facts.lengths.get(name),
        facts.key,
        _quoted(name),
        present=1.0 - known.null_share,
    )


def source(text: str, columns: Sequence[Column]) -> Column | None:
    """The column that an expression hands on, be it in another type; None if it computes."""
    inner = bare(text)
    if (found := _REFERENCE.fullmatch(inner)) is not None:
        place = int(found[1])
        return columns[place] if place < len(columns) else Column()
    if inner.startswith("#[") and len(columns) == 1:
        return columns[0]
    name = inner.strip('"').lower()
    return next((column for column in columns if column.name == name), None)


def bare(text: str) -> str:
    """An expression without casts and the like around it, which keep its values apart.

    >>> bare("CAST(#0 AS INTEGER)"), bare('__internal_compress_integral_utinyint("year"(d), 1992)')
    ('#0', '"year"(d)')
    """
    while True:
        if (found := _CALL.fullmatch(text)) is not None:
            text = found[1]
        elif text.startswith("CAST(") and text.endswith(")"):
            text = text.removeprefix("CAST(").rpartition(" AS ")[0]
        else:
            return text


def computed(text: str, columns: Sequence[Column]) -> Column:
    """What an expression makes of some columns, where all are of one table."""
    inner = bare(text)
    named = set(_words(inner))
    used = [column for column in columns if column.name and column.name in named]
    places = [int(place) for place in _REFERENCE.findall(inner)]
    used += [columns[place] for place in places if place < len(columns)]
    if not used and not places and "#" not in inner and not inner.isidentifier():
        return Column(distinct=1.0, domain=1.0, is_text=inner.startswith("'"))
    tables = {column.table for column in used if column.text}
    if len(tables) != 1 or any(not column.text for column in used):
        return Column()
    written = _REFERENCE.sub(
        lambda found: columns[int(found[1])].text if int(found[1]) < len(columns) else "NULL", inner
    )
    for column in used:
        if column.text != _quoted(column.name) and column.name:
            written = re.sub(rf"\b{re.escape(column.name)}\b", f"({column.text})", written)
    return Column(table=tables.pop(), text=written, where=used[0].where)


def kept(columns: Iterable[Column], used: frozenset[str]) -> list[Column]:
    """Those that operators above name; a join hands on no others."""
    return [column for column in columns if not column.name or column.name in used]


def _words(text: str) -> list[str]:
    return [word.lower() for word in re.findall(r"\w+", re.sub(r"'(?:[^']|'')*'", "", text))]


def _quoted(name: str) -> str:
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'

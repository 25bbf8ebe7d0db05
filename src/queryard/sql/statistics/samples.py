"""A sample of a table: some of its rows as they are, on which conditions are judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from queryard.sql.catalog.model import Column
from queryard.sql.catalog.quoting import identifier

PIECE = "queryard: piece"
"""A column of the sample's own: a bit for the piece that a row is from.

A piece is rows that lie beside each other.
"""

PIECES_SEEN = f"bit_count(bit_or({identifier(PIECE)}))"
"""How many pieces some rows are from; many times as fast as counting different ones."""

BITS = 62

How = Literal["whole", "spread", "first"]


@dataclass(frozen=True, slots=True)
class TableSample:
    """Rows of a table, of the state of its files that `version` names.

    `how` says which: "whole" all of them, "spread" pieces from all over the table, "first" those at
    its beginning, which may be unlike the rest.
    """

    key: str
    version: str
    columns: tuple[Column, ...]
    rows: int
    rows_of_table: float
    how: How
    frame: Callable[[], Any]
    """Gives the rows as a pyarrow.Table, with the column PIECE; from memory or from a file."""

    @property
    def exact(self) -> bool:
        """Whether what holds for the sample holds for the table."""
        return self.how == "whole"

    def items(self) -> list[str]:
        """What to select from the frame to have the columns in their own types, and PIECE."""
        items = []
        for column in self.columns:
            name = identifier(column.name)
            back = f"TRY_CAST({name} AS {column.type}) AS {name}"
            items.append(name if is_carried(column.type) else back)
        return [*items, identifier(PIECE)]


_CARRIED = frozenset(
    [
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "FLOAT",
        "DOUBLE",
        "VARCHAR",
        "BLOB",
        "DATE",
        "TIME",
        "TIMESTAMP",
    ]
)


def is_carried(type_: str) -> bool:
    """Whether Arrow and Parquet keep values of a type as they are; others travel as texts.

    >>> is_carried("DECIMAL(15,2)"), is_carried("INTEGER[]"), is_carried("UUID")
    (True, True, False)
    """
    plain = type_.rstrip("[]")
    return plain in _CARRIED or plain.startswith("DECIMAL(")

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
        names = ((identifier(column.name), column.type) for column in self.columns)
        items = [f"TRY_CAST({name} AS {type_}) AS {name}" for name, type_ in names]
        return [*items, identifier(PIECE)]

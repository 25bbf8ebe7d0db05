"""The splits of a table that every plan shares, for one state of its files.

Queries can share a scan only if they cut the table at the same places. Where these are depends on
the table and on nothing else: on what a typical query does with its rows, not on what one query
does. Split i of a table is thus the same rows for every plan, until a file changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, cast

from .csv_files import CsvTable
from .json_files import JsonTable
from .model import CatalogError, SourceSplit
from .segments import TARGET_BYTES, most_bytes, segments_of

TYPICAL_ROW_S = 100e-9
"""Core-seconds for a row of a columnar table: a few columns, a filter, a group."""
SPLIT_S = 0.7
"""A split is to take about so long."""
SMALL_S = 0.15
"""A table that takes no longer is not cut."""
TYPICAL_ROW_BYTES = 32.0
"""Of a row in its file, where the number of rows is not known."""


class Splittable(Protocol):
    """What is asked of a table that is not text."""

    @property
    def bytes(self) -> float: ...
    @property
    def rows(self) -> float | None: ...
    def splits(self, target_bytes: float) -> Sequence[Any]: ...


def canonical_count(rows: float) -> int:
    """In how many splits a columnar table of so many rows is read.

    >>> [canonical_count(rows) for rows in (1e6, 6e6, 30e6)]
    [1, 2, 6]
    """
    work_s = rows * TYPICAL_ROW_S
    # An even number keeps two slots equally busy.
    return 1 if work_s <= SMALL_S else max(2 * math.ceil(work_s / SPLIT_S / 2), 2)


def canonical_splits(table: object, text_bytes: float | None = None) -> tuple[Any, ...]:
    """The splits of a table as every plan sees them; those of text are `text_bytes` large.

    A range of a text has no relation: it is taken out of its file when it is read.
    """
    if isinstance(table, CsvTable | JsonTable):
        return tuple(
            SourceSplit(segment.table, segment.number, segment.bytes, None, segment.relation)
            for segment in segments_of(table, text_bytes or TARGET_BYTES)
        )
    other = cast(Splittable, table)
    size = max(float(other.bytes), 1.0)
    rows = size / TYPICAL_ROW_BYTES if other.rows is None else other.rows
    return tuple(other.splits(max(math.ceil(size / canonical_count(rows)), 1.0)))


def is_text_table(table: object) -> bool:
    """Whether the table is text, which costs more to parse than to work on."""
    return getattr(table, "kind", "") in ("csv", "json")


def most_text_bytes(table: object) -> float:
    """How large the text of a table may be; of compressed files that is a guess."""
    if not isinstance(table, CsvTable | JsonTable):
        raise CatalogError(f"{table!r}: is no table of text")
    return float(sum(most_bytes(table, file) for file in table.files))

"""Statistics of tables that were not analysed: from sizes and types."""

from __future__ import annotations

from queryard.sql.catalog.formats import COMPRESSIONS
from queryard.sql.catalog.frames import FrameTable
from queryard.sql.catalog.model import Table

from .model import ColumnStatistics, TableStatistics
from .positions import TEXT_WIDTH, fixed_width_bytes

TEXT_BYTES_PER_VALUE = 9.0
"""A value and its delimiter in a CSV file, about; in JSON the name of the key comes on top."""

COMPRESSION = 4.0
ROWS_PER_VALUE = 10.0
"""How often a value is taken to occur. Few values or a key would both be a bolder guess."""


def guessed_statistics(table: Table) -> TableStatistics:
    """A row count from the size, where it is not known; columns by their types."""
    rows = table.rows if table.rows is not None else _guessed_rows(table)
    columns = {}
    for number, column in enumerate(table.columns):
        width = fixed_width_bytes(column.type) or TEXT_WIDTH
        null_share = 0.0
        if isinstance(table, FrameTable) and rows:
            data = table.frame.column(number)
            null_share = data.null_count / rows
            width = fixed_width_bytes(column.type) or max(1.0, data.nbytes / rows)
        distinct = 2.0 if column.type == "BOOLEAN" else max(1.0, rows / ROWS_PER_VALUE)
        columns[column.name] = ColumnStatistics(null_share, None, None, min(distinct, rows), width)
    return TableStatistics(rows, table.bytes, columns, "guessed")


def _guessed_rows(table: Table) -> float:
    plain = sum(
        file.bytes * (COMPRESSION if file.uri.endswith(COMPRESSIONS) else 1.0)
        for file in table.files
    )
    width = TEXT_BYTES_PER_VALUE * len(table.columns)
    if table.kind == "json":
        width += sum(len(column.name) + 3 for column in table.columns)
    return max(1.0, plain // width) if plain else 0.0

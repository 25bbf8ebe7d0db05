"""Drawing a sample: some rows from many places of a table, at the cost of reading few of them.

A Parquet table gives the first rows of row groups spread over its files, since DuckDB reads those
without the rest. Rows that lie beside each other are alike in many tables, so that many small
pieces tell more than few large ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import duckdb

from queryard.sql.catalog.catalog import Catalog
from queryard.sql.catalog.database import DatabaseTable
from queryard.sql.catalog.formats import COMPRESSIONS
from queryard.sql.catalog.frames import FrameTable
from queryard.sql.catalog.metadata import first_lines
from queryard.sql.catalog.model import Table
from queryard.sql.catalog.open_files import looking, resolved
from queryard.sql.catalog.parquet import Footer, ParquetTable
from queryard.sql.catalog.quoting import identifier, literal

from .arrow_types import travels
from .model import StatisticsError
from .samples import BITS, PIECE, How, TableSample

ROWS = 20_000
WHOLE_ROWS = 120_000
"""A table of Parquet files with no more rows is sampled whole: dimensions, one row group."""

MOST_BYTES = 16 * 2**20
"""A table of wide rows gives fewer of them."""

PIECES = 16
FEWEST_ROWS_OF_PIECE = 64
WHOLE_TEXT_BYTES = 4 * 2**20
"""Text files up to this size are read whole: a sample of all rows is better than the first ones."""

COMPRESSION = 4.0
SEED = 1


@dataclass(frozen=True, slots=True)
class _Drawn:
    """SQL that gives the rows with their pieces, and what is known of the table before it runs."""

    sql: str
    how: How
    rows_of_table: float | None


Connected = Callable[[Catalog], AbstractContextManager[duckdb.DuckDBPyConnection]]
"""Opens an instance for one use."""


def draw(catalog: Catalog, table: Table, connected: Connected) -> TableSample:
    """A sample of a table, from its data; StatisticsError where there can be none."""
    try:
        if isinstance(table, DatabaseTable):
            return _of_database(catalog, table, connected)
        with connected(catalog) as connection:
            return _sample(connection, table, _drawn(connection, table))
    except duckdb.Error as error:
        raise StatisticsError(
            f"table {table.key}: no sample can be drawn: {first_lines(error)}"
        ) from error


def _of_database(catalog: Catalog, table: DatabaseTable, connected: Connected) -> TableSample:
    """A look at the file, like that of the catalog: writers wait for it, none writes meanwhile."""
    if table.rows is None:
        raise StatisticsError(f"table {table.key}: a view is not sampled")
    path = table.database.path
    with looking(resolved(path)) as ask, connected(catalog) as connection:
        if ask is not None:
            raise StatisticsError(f"table {table.key}: its database is being written")
        alias = identifier(table.database.alias)
        connection.execute(f"ATTACH {literal(path)} AS {alias} (READ_ONLY)")
        wanted = _wanted(table.bytes / max(table.rows, 1.0))
        if table.rows > 10 * wanted:  # vectors drawn by chance: the others are not read
            share = 100 * wanted / table.rows
            chance = f"system({share!r}%) REPEATABLE ({SEED})"
            sql = f"{_columns(table, '0')} FROM {table.relation} TABLESAMPLE {chance}"
            return _sample(connection, table, _Drawn(sql, "spread", table.rows))
        return _sample(connection, table, _by_chance(table, table.relation, wanted))


def _drawn(connection: duckdb.DuckDBPyConnection, table: Table) -> _Drawn:
    if isinstance(table, ParquetTable):
        return _of_parquet(table)
    if isinstance(table, FrameTable):
        return _of_frame(connection, table)
    width = 1.0 if not table.columns else 9.0 * len(table.columns)
    if _plain_bytes(table) <= WHOLE_TEXT_BYTES:
        return _by_chance(table, table.relation, _wanted(width))
    return _of_text(table, _wanted(width))


def _of_parquet(table: ParquetTable) -> _Drawn:
    rows = int(table.rows or 0)
    stored = sum(
        footer.metadata.row_group(number).total_byte_size
        for footer in table.footers
        for number in range(footer.metadata.num_row_groups)
    )
    wanted = _wanted(stored / max(rows, 1))
    if rows <= wanted or (rows <= WHOLE_ROWS and stored <= MOST_BYTES):
        return _Drawn(f"{_columns(table, '0')} FROM {table.relation}", "whole", float(rows))
    if not table.can_cut:
        return _Drawn(
            f"{_columns(table, '0')} FROM {table.relation} LIMIT {wanted}", "first", float(rows)
        )
    parts = []
    number = 0
    for footer, ranges in _pieces(table.footers, wanted):
        for first, last in ranges:
            part = table.rows_between(footer, first, last)
            parts.append(f"{_columns(table, str(number))} FROM {part}")
            number += 1
    return _Drawn(" UNION ALL ".join(parts), "spread", float(rows))


def _pieces(
    footers: Sequence[Footer], wanted: int
) -> Iterator[tuple[Footer, list[tuple[int, int]]]]:
    """Ranges of rows by file: the first of row groups that lie evenly spread over all rows.

    A table with few row groups gives several pieces of each, since there are no more.
    """
    groups = [(footer, group) for footer in footers for group in footer.groups if group.rows]
    total = sum(group.rows for _, group in groups)
    pieces = min(PIECES, max(1, wanted // FEWEST_ROWS_OF_PIECE))
    # Not at equal distances, which may be those at which values come again.
    chance = random.Random(SEED)
    places = [int((i + chance.random()) * total / pieces) for i in range(pieces)]
    found: dict[int, tuple[Footer, list[tuple[int, int]]]] = {}
    before = 0
    for footer, group in groups:
        inside = [place for place in places if before <= place < before + group.rows]
        before += group.rows
        if not inside:
            continue
        length = min(group.rows, -(-wanted * len(inside) // pieces))
        each = max(1, length // len(inside))
        step = group.rows // len(inside)
        ranges = found.setdefault(id(footer), (footer, []))[1]
        for i in range(len(inside)):
            shift = int(chance.random() * (step - each)) if step > each else 0
            first = group.first_row + i * step + shift
            ranges.append((first, first + min(each, step) - 1))
    yield from found.values()


def _of_frame(connection: duckdb.DuckDBPyConnection, table: FrameTable) -> _Drawn:
    rows = table.frame.num_rows
    wanted = _wanted(table.bytes / max(rows, 1))
    if rows <= wanted:
        connection.register("frame", table.frame)
        return _Drawn(f"{_columns(table, '0')} FROM frame", "whole", float(rows))
    step = rows / wanted
    connection.register("frame", table.frame.take([int(i * step) for i in range(wanted)]))
    # Each row is a piece of its own: none is beside another.
    return _Drawn(f"{_columns(table, 'row_number() OVER ()')} FROM frame", "spread", float(rows))


def _of_text(table: Table, wanted: int) -> _Drawn:
    """The first rows of several files; of one file only its beginning can be read cheaply."""
    splits = table.row_group_splits()
    count = min(len(splits), PIECES)
    chosen = [splits[int((i + 0.5) * len(splits) / count)] for i in range(count)]
    each = max(1, wanted // count)
    parts = [
        f"({_columns(table, str(number))} FROM {split.relation} LIMIT {each})"
        for number, split in enumerate(chosen)
    ]
    how: How = "spread" if count >= PIECES // 2 else "first"
    return _Drawn(" UNION ALL ".join(parts), how, None)


def _by_chance(table: Table, relation: str, wanted: int) -> _Drawn:
    """Rows drawn by chance from all of them, with the number of all."""
    counted = f"(SELECT count(*) FROM {relation})"
    sql = (
        f"{_columns(table, 'row_number() OVER ()', counted)} FROM "
        f"(SELECT * FROM {relation} USING SAMPLE reservoir({wanted} ROWS) REPEATABLE ({SEED}))"
    )
    return _Drawn(sql, "spread", None)


COUNT = "queryard: rows"


def _columns(table: Table, piece: str, count: str | None = None) -> str:
    items = []
    for column in table.columns:
        name = identifier(column.name)
        items.append(name if travels(column.type) else f"CAST({name} AS VARCHAR) AS {name}")
    items.append(f"CAST(1 AS BIGINT) << (({piece}) % {BITS}) AS {identifier(PIECE)}")
    if count is not None:
        items.append(f"{count} AS {identifier(COUNT)}")
    return f"SELECT {', '.join(items)}"


def _sample(connection: duckdb.DuckDBPyConnection, table: Table, drawn: _Drawn) -> TableSample:
    frame = connection.sql(drawn.sql).to_arrow_table()
    how, of_table = drawn.how, drawn.rows_of_table
    if COUNT in frame.column_names:
        of_table = float(frame.column(COUNT)[0].as_py()) if frame.num_rows else 0.0
        frame = frame.drop_columns([COUNT])
    if frame.nbytes > MOST_BYTES and how != "whole":
        keep = max(1, int(frame.num_rows * MOST_BYTES / frame.nbytes))
        step = frame.num_rows / keep
        frame = frame.take([int(i * step) for i in range(keep)])
    if of_table is None:
        of_table = max(float(frame.num_rows), _rows_by_size(table, frame))
    if frame.num_rows >= of_table:
        how = "whole"
    return TableSample(
        table.key,
        table.fingerprint,
        table.columns,
        frame.num_rows,
        of_table,
        how,
        lambda: frame,
    )


def _wanted(row_bytes: float) -> int:
    return int(min(ROWS, max(100.0, MOST_BYTES / max(row_bytes, 1.0))))


def _plain_bytes(table: Table) -> float:
    return sum(
        file.bytes * (COMPRESSION if file.uri.endswith(COMPRESSIONS) else 1.0)
        for file in table.files
    )


def _rows_by_size(table: Table, frame: Any) -> float:
    """Rows of text files, from the width that rows of the sample have as text."""
    if not frame.num_rows:
        return 0.0
    names = [column.name for column in table.columns]
    texts = ", ".join(f"coalesce(strlen(CAST({identifier(n)} AS VARCHAR)), 0)" for n in names)
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.register("frame", frame)
        values = connection.execute(f"SELECT avg(list_sum([{texts}])) FROM frame").fetchone()
    width = (float(values[0] or 0.0) if values else 0.0) + len(names)
    if table.kind == "json":
        width += sum(len(name) + 4 for name in names)
    return float(round(_plain_bytes(table) / max(width, 1.0)))

"""One pass over all columns for nulls, ranges and widths, then one over each for its histogram."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duckdb

from queryard.sql.catalog.model import Column, Table
from queryard.sql.catalog.parquet import ParquetTable
from queryard.sql.catalog.quoting import identifier

from .clustering import clustered_by_runs
from .distinct import (
    Seen,
    distinct_values,
    from_pieces,
    from_ranges,
    from_sample,
    seen_sql,
    sketch_sql,
)
from .footers import footer_statistics
from .model import ColumnStatistics, Histogram, TableStatistics
from .positions import (
    INTEGERS,
    can_be_infinite,
    fixed_width_bytes,
    has_zone,
    most_distinct,
    ordinary_sql,
    position,
    position_sql,
)
from .sampling import Opened

BUCKETS = 64
BUCKET_REGISTERS = 1024
"""An error of 3 % in a bucket, and of less in their sum, since no value lies in two."""

EXACT_ROWS = 200_000
"""Up to so many rows every value is counted, which costs no more than a sketch."""

COLUMN_REGISTERS = 16384
"""An error of 0.8 %, for columns without a histogram."""

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

Report = Callable[[float], None]


@dataclass(slots=True)
class _Basics:
    """What the pass over all columns tells of one."""

    present: float
    low: Any
    high: Any
    width: float
    runs: float | None


def analyse_columns(
    connection: duckdb.DuckDBPyConnection, table: Table, data: Opened, report: Report
) -> TableStatistics:
    """Statistics of every column; `report` hears the share that is done."""
    counted = connection.execute(f"SELECT count(*) FROM {data.relation}").fetchone()
    read = float(counted[0]) if counted else 0.0
    rows = read
    if data.share < 1:
        rows = table.rows if table.rows is not None else read / data.share
    # The footers know more than a sample: ranges of all rows, and the order of row groups.
    footers = footer_statistics(table) if isinstance(table, ParquetTable) else None
    basics = _basics(connection, table, data)
    report(0.3)
    columns = {}
    for number, column in enumerate(table.columns):
        known = footers.columns[column.name] if footers is not None else None
        columns[column.name] = _column(connection, column, data, basics[number], known, read)
        report(0.3 + 0.7 * (number + 1) / len(table.columns))
    return TableStatistics(rows, table.bytes, columns, "analysed")


def _column(
    connection: duckdb.DuckDBPyConnection,
    column: Column,
    data: Opened,
    basics: _Basics,
    known: ColumnStatistics | None,
    read: float,
) -> ColumnStatistics:
    low, high = basics.low, basics.high
    if known is not None and data.share < 1 and known.min is not None and low is not None:
        low, high = min(low, known.min), max(high, known.max)
    clustered = known.clustered if known is not None else None
    null_share = 1 - basics.present / read if read else 0.0
    if not basics.present:
        return ColumnStatistics(null_share, None, None, 0.0, basics.width, None, clustered)
    axis = _axis(column, low, high)
    if data.share < 1 and clustered is None and basics.runs is not None:
        clustered = clustered_by_runs(basics.runs, _seen(connection, column, data))
    if data.share < 1 or read <= EXACT_ROWS:
        groups = _counted(connection, column, data, axis, bool(clustered))
    else:
        groups = _sketched(connection, column, data, axis)
    distinct = sum(values for _, values in groups.values())
    if clustered is None and basics.runs is not None:
        clustered = clustered_by_runs(basics.runs, distinct)
    distinct = min(distinct, most_distinct(column.type, low, high), basics.present / data.share)
    histogram = None
    if axis is not None:
        counts = tuple(groups.get(i, (0.0, 0.0))[0] for i in range(axis.buckets))
        distincts = tuple(groups.get(i, (0.0, 0.0))[1] for i in range(axis.buckets))
        histogram = Histogram(axis.low, axis.high, counts, distincts)
    if data.pieces_seen and known is not None and known.histogram is not None:
        # Pieces see only some places of a column in order; the footers know them all.
        shape = known.histogram
        scale = distinct / max(known.distinct, 1.0)
        more = tuple(min(d * scale, c) for d, c in zip(shape.distincts, shape.counts, strict=True))
        histogram = Histogram(shape.low, shape.high, shape.counts, more)
    return ColumnStatistics(
        null_share, low, high, max(1.0, distinct), basics.width, histogram, clustered
    )


@dataclass(frozen=True, slots=True)
class _Axis:
    """The range of a histogram, and SQL for the number of a value's bucket."""

    low: float
    high: float
    buckets: int
    bucket_sql: str


def _axis(column: Column, low: object, high: object) -> _Axis | None:
    quoted = identifier(column.name)
    sql = position_sql(quoted, column.type)
    first, last = position(low), position(high)
    if sql is None or first is None or last is None or not math.isfinite(last - first):
        return None
    buckets = BUCKETS
    if column.type in INTEGERS or column.type in ("DATE", "BOOLEAN"):
        # Each value has a bucket of its own if there are few.
        buckets = int(min(BUCKETS, last - first + 1))
    if first == last:
        return _Axis(first, last, 1, "0")
    scale = f"({sql} - {first!r}) / {last - first!r} * {buckets}"
    inside = f"CAST(least({buckets - 1}, greatest(0, floor({scale}))) AS INTEGER)"
    if can_be_infinite(column.type):
        # NaN and infinity lie outside the range; they count where they sort.
        value = ordinary_sql(quoted, column.type)
        end = f"CASE WHEN {value} > '-infinity' THEN {buckets - 1} ELSE 0 END"
        inside = f"CASE WHEN isfinite({value}) THEN {inside} ELSE {end} END"
    return _Axis(first, last, buckets, inside)


def _basics(connection: duckdb.DuckDBPyConnection, table: Table, data: Opened) -> list[_Basics]:
    parts = []
    for column in table.columns:
        name = identifier(column.name)
        parts.append(f"count({name})")
        value = ordinary_sql(name, column.type)
        finite = f" FILTER (isfinite({value}))" if can_be_infinite(column.type) else ""
        if has_zone(column.type):
            # DuckDB's client makes such a value with a package that need not be installed.
            parts += [f"epoch_us(min({value}){finite})", f"epoch_us(max({value}){finite})"]
        elif position_sql(name, column.type) or column.type == "VARCHAR":
            parts += [f"min({value}){finite}", f"max({value}){finite}"]
        else:
            parts += ["NULL", "NULL"]
        if fixed_width_bytes(column.type) is not None:
            parts.append("NULL")
        elif column.type == "VARCHAR":
            parts.append(f"avg(strlen({name}))")
        elif column.type == "BLOB":
            parts.append(f"avg(octet_length({name}))")
        else:
            parts.append(f"avg(strlen(CAST({name} AS VARCHAR)))")
    row = connection.execute(f"SELECT {', '.join(parts)} FROM {data.relation}").fetchone()
    assert row is not None
    runs = _runs(connection, table, data)
    found = []
    for number, column in enumerate(table.columns):
        present, low, high, width = row[4 * number : 4 * number + 4]
        if has_zone(column.type):
            low, high = _moment(low), _moment(high)
        fixed = fixed_width_bytes(column.type)
        bytes_ = fixed if fixed is not None else float(width or 0.0)
        found.append(_Basics(float(present), low, high, bytes_, runs[number]))
    return found


def _moment(microseconds: int | None) -> datetime.datetime | None:
    if microseconds is None:
        return None
    return _EPOCH + datetime.timedelta(microseconds=microseconds)


def _runs(
    connection: duckdb.DuckDBPyConnection, table: Table, data: Opened
) -> list[float] | list[None]:
    """Runs of equal values in the order of the rows; not for files with several row groups.

    Their ranges tell it already. A window without partitions is read as a stream.
    """
    several = isinstance(table, ParquetTable) and sum(len(f.groups) for f in table.footers) > 1
    if several or data.pieces_seen:  # pieces lie apart
        return [None] * len(table.columns)
    names = [identifier(column.name) for column in table.columns]
    pairs = ", ".join(f"lag({name}) OVER (), {name}" for name in names)
    aliases = ", ".join(f"b{i}, v{i}" for i in range(len(names)))
    changes = ", ".join(
        f"count(*) FILTER (v{i} IS NOT NULL AND v{i} IS DISTINCT FROM b{i})"
        for i in range(len(names))
    )
    source = f"(SELECT {pairs} FROM {data.relation}) AS pairs({aliases})"
    found = connection.execute(f"SELECT {changes} FROM {source}").fetchone()
    assert found is not None
    return [float(value) for value in found]


def _sketched(
    connection: duckdb.DuckDBPyConnection, column: Column, data: Opened, axis: _Axis | None
) -> dict[int, tuple[float, float]]:
    """Bucket -> values and distinct values, of all rows; one bucket 0 without an axis."""
    registers = COLUMN_REGISTERS if axis is None else BUCKET_REGISTERS
    group = "0" if axis is None else axis.bucket_sql
    name = identifier(column.name)
    rows = connection.execute(sketch_sql(name, group, data.relation, registers)).fetchall()
    found = {}
    for bucket, values, used, minima in rows:
        distinct = distinct_values(used, minima, registers)
        found[int(bucket)] = (float(values), min(float(values), float(round(distinct))))
    return found


def _counted(
    connection: duckdb.DuckDBPyConnection,
    column: Column,
    data: Opened,
    axis: _Axis | None,
    clustered: bool,
) -> dict[int, tuple[float, float]]:
    """The same by counting each value, and extrapolated if the rows are a sample."""
    group = "0" if axis is None else axis.bucket_sql
    name = identifier(column.name)
    present = f"WHERE {name} IS NOT NULL"
    if data.pieces_seen:
        asked = f"SELECT {data.pieces_seen} FROM {data.relation}"
        pieces = (connection.execute(asked).fetchone() or (None,))[0] or 1
        counted: dict[int, list[tuple[int, int, int]]] = {}
        parts = seen_sql(group, name, data.relation, present, data.pieces_seen)
        for bucket, *counts in connection.execute(parts).fetchall():
            counted.setdefault(int(bucket), []).append((counts[0], counts[1], counts[2]))
        found = {}
        for bucket, those in counted.items():
            seen = Seen.of(those, pieces)
            total = seen.rows / data.share
            found[bucket] = (total, from_pieces(seen, total))
        return found
    rows = connection.execute(
        # Named outside, where a column of the table that is called `n` is not in sight.
        f"""SELECT part, sum(n), count(*), count(*) FILTER (n = 1)
            FROM (
                SELECT {group}, {name}, count(*) FROM {data.relation} {present} GROUP BY ALL
            ) AS counted(part, value, n)
            GROUP BY part"""
    ).fetchall()
    found = {}
    for bucket, values, distinct, once in rows:
        total = values / data.share
        if clustered and data.whole_ranges:
            whole = from_ranges(distinct, values, total)
        else:
            whole = from_sample(distinct, once, values, total)
        found[int(bucket)] = (float(total), whole)
    return found


def _seen(connection: duckdb.DuckDBPyConnection, column: Column, data: Opened) -> float:
    name = identifier(column.name)
    row = connection.execute(f"SELECT count(DISTINCT {name}) FROM {data.relation}").fetchone()
    return float(row[0]) if row else 0.0

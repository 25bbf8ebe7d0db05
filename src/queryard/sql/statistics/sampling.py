"""The rows that are analysed: a relation over the whole table, or a sample in a temporary table."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from queryard.sql.catalog.database import DatabaseTable
from queryard.sql.catalog.frames import FrameTable
from queryard.sql.catalog.model import Table
from queryard.sql.catalog.parquet import ParquetTable
from queryard.sql.catalog.quoting import identifier, literal

FEWEST_RANGES = 8
"""A sample of fewer row groups would say little of the table; then rows are drawn one by one."""

SEED = 1


@dataclass(frozen=True, slots=True)
class Opened:
    """Where the rows are: SQL for FROM, the share they are of the table, and how drawn."""

    relation: str
    share: float
    whole_ranges: bool = False
    pieces_seen: str = ""
    """An aggregate: of how many pieces of the table rows are, if they are known by pieces."""


def opened(connection: duckdb.DuckDBPyConnection, table: Table, share: float) -> Opened:
    """Make the rows of a table (or a share of them) ready to be read several times."""
    source = _source(connection, table)
    if share < 1:
        return _sampled(connection, table, source, share)
    if table.kind in ("csv", "json"):
        # Parsing is the dear part, and every column is looked at by itself: parse once.
        return Opened(_copied(connection, source), 1.0)
    return Opened(source, 1.0)


def _source(connection: duckdb.DuckDBPyConnection, table: Table) -> str:
    if isinstance(table, DatabaseTable):
        alias = identifier(table.database.alias)
        connection.execute(f"ATTACH {literal(table.database.path)} AS {alias} (READ_ONLY)")
    if isinstance(table, FrameTable):
        connection.register("frame", table.frame)
        return "frame"
    return table.relation


def _sampled(
    connection: duckdb.DuckDBPyConnection, table: Table, source: str, share: float
) -> Opened:
    if isinstance(table, ParquetTable):
        groups = table.row_group_splits()
        wanted = round(len(groups) * share)
        if wanted >= FEWEST_RANGES:
            # Evenly spread, so that every region of the table has its say.
            chosen = [groups[int((i + 0.5) * len(groups) / wanted)] for i in range(wanted)]
            read = sum(group.rows or 0.0 for group in chosen)
            union = " UNION ALL ".join(f"SELECT * FROM {group.relation}" for group in chosen)
            total = table.rows or 1.0
            return Opened(_copied(connection, f"({union})"), min(1.0, read / total), True)
    drawn = f"(SELECT * FROM {source} TABLESAMPLE bernoulli({share * 100!r}%) REPEATABLE ({SEED}))"
    relation = _copied(connection, drawn)
    if table.rows:  # known: say exactly which share was drawn
        found = connection.execute(f"SELECT count(*) FROM {relation}").fetchone()
        if found is not None and found[0]:
            return Opened(relation, min(1.0, found[0] / table.rows))
    return Opened(relation, share)


def _copied(connection: duckdb.DuckDBPyConnection, source: str) -> str:
    connection.execute(f"CREATE TEMP TABLE analysed AS SELECT * FROM {source}")
    return "analysed"

"""Segments and their kept files as keys and as SQL."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from queryard.core.errors import QueryardError, unknown_name
from queryard.sql.catalog.model import Column, Table
from queryard.sql.catalog.quoting import identifier, path_list
from queryard.sql.catalog.segments import Segment

from .forms import given_back


def key_of(segment: Segment) -> Hashable:
    """Under which a segment is kept; the table and its version come first."""
    return (
        segment.table,
        segment.version,
        segment.file.uri,
        segment.start,
        segment.stop,
        segment.relation,
    )


def named(table: Table, names: Iterable[str]) -> list[Column]:
    """Columns of a table, in its order."""
    by_name = {column.name.lower(): column for column in table.columns}
    wanted = set()
    for name in names:
        if name.lower() not in by_name:
            raise QueryardError(
                unknown_name(f"column of {table.key}", name, [c.name for c in table.columns])
            )
        wanted.add(name.lower())
    return [column for column in table.columns if column.name.lower() in wanted]


def numbers(table: Table) -> dict[str, int]:
    """Columns are kept under numbers: DuckDB gives names such as file_row_number a meaning."""
    return {column.name: number for number, column in enumerate(table.columns)}


def listed(columns: Iterable[Column]) -> str:
    """Columns as a select list."""
    return ", ".join(identifier(column.name) for column in columns) or "1"


def relation_of(table: Table, wanted: Sequence[Column], paths: Sequence[str]) -> str:
    """SQL for columns from the files in which they are kept."""
    number = numbers(table)
    items = [
        f"{given_back(column.type, f'c{number[column.name]}')} AS {identifier(column.name)}"
        for column in wanted
    ]
    by_name = ", union_by_name=true" if len(paths) > 1 else ""
    return f"(SELECT {', '.join(items) or '1'} FROM read_parquet({path_list(paths)}{by_name}))"

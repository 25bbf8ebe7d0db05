"""Reads relations of the catalog as an executor would, and compares bags of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import duckdb

from queryard.sql.catalog import Catalog, SourceSplit, Table


def rows_of(table: Table, catalog: Catalog | None = None) -> Counter[str]:
    """All rows of a table, by its own relation."""
    with connected(catalog) as connection:
        if table.kind == "frame":
            connection.register(table.name, table.frame)  # type: ignore[attr-defined]
        rows = connection.execute(f"SELECT * FROM {table.relation} AS t").fetchall()
    return Counter(map(repr, rows))


def rows_of_splits(splits: Iterable[SourceSplit], catalog: Catalog | None = None) -> Counter[str]:
    """The rows of all splits together; each must have the rows it promises."""
    found: Counter[str] = Counter()
    with connected(catalog) as connection:
        for split in splits:
            if split.frame is not None:
                connection.register(split.relation, split.frame)
            rows = connection.execute(f"SELECT * FROM {split.relation} AS t").fetchall()
            assert split.rows is None or split.rows == len(rows)
            found.update(map(repr, rows))
    return found


def columns_of(relation: str, catalog: Catalog | None = None) -> list[tuple[str, str]]:
    """Names and types a relation really has."""
    with connected(catalog) as connection:
        described = connection.execute(f"DESCRIBE SELECT * FROM {relation} AS t").fetchall()
    return [(row[0], row[1]) for row in described]


PLAIN = duckdb.connect()  # opening one takes longer than most of what is read here


@contextmanager
def connected(catalog: Catalog | None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection on which the tables of a catalog can be read."""
    if catalog is None:
        yield PLAIN.cursor()
        return
    with duckdb.connect() as connection:
        for system in catalog.filesystems:
            connection.register_filesystem(system)
        for database in catalog.databases:
            path = database.path.replace("'", "''")
            connection.execute(f"ATTACH '{path}' AS \"{database.alias}\" (READ_ONLY)")
        yield connection

"""Collecting statistics from the data: all of it, or a sample."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial

import duckdb

from queryard.core.errors import QueryardError
from queryard.sql.catalog.catalog import Catalog
from queryard.sql.catalog.database import DatabaseTable
from queryard.sql.catalog.metadata import first_lines
from queryard.sql.catalog.model import Table
from queryard.sql.catalog.open_files import Claims

from .columns import analyse_columns
from .model import StatisticsError, TableStatistics
from .sampling import opened
from .store import Stored, load, save


class NotAllAnalysed(StatisticsError):
    """Some tables could not be read; what was found of the others is kept, and told in `found`."""

    def __init__(
        self, found: Mapping[str, TableStatistics], failures: Mapping[str, QueryardError]
    ) -> None:
        super().__init__("\n".join(str(error) for error in failures.values()))
        self.found = found
        self.failures = failures


Progress = Callable[[float, str], None]
"""Called with the share of the bytes done (0 to 1) and the table that is being looked at."""


def analyze(
    catalog: Catalog,
    names: Iterable[str] | None = None,
    sample: float | None = None,
    progress: Progress | None = None,
) -> dict[str, TableStatistics]:
    """Collect and keep statistics of the tables of a catalog (all, or those named), by their keys.

    `sample` is the share of rows to read, by whole row groups spread over the table where there are
    enough of them, else row by row. A table is not read again if its statistics still hold, from at
    least this share. `catalog.statistics` knows the new ones at once; those of frames are not
    kept beyond the catalog. A table that cannot be read does not stop the others: NotAllAnalysed is
    raised at the end.
    """
    share = 1.0 if sample is None else sample
    if not 0 < share <= 1:
        raise StatisticsError(f"a sample of {sample!r}: must be a share above 0, up to 1")
    tables = [catalog[name] for name in (catalog.tables if names is None else names)]
    total = sum(table.bytes for table in tables) or 1.0
    done = 0.0
    results = {}
    failures: dict[str, QueryardError] = {}
    for table in tables:

        def report(part: float, table: Table = table, done: float = done) -> None:
            if progress is not None:
                progress(min(1.0, (done + part * table.bytes) / total), table.key)

        report(0.0)
        try:
            results[table.key] = _of_table(catalog, table, share, report)
        except QueryardError as error:
            failures[table.key] = error
        done += table.bytes
    if progress is not None:
        progress(1.0, "")
    if failures:
        raise NotAllAnalysed(results, failures)
    return results


def _of_table(
    catalog: Catalog, table: Table, share: float, report: Callable[[float], None]
) -> TableStatistics:
    return analyse_table(catalog, table, share, partial(_connected, catalog), report)


def analyse_table(
    catalog: Catalog,
    table: Table,
    share: float,
    connected: Callable[[], AbstractContextManager[duckdb.DuckDBPyConnection]],
    report: Callable[[float], None],
) -> TableStatistics:
    """Statistics of one table from at least a share of its rows; what is kept is not read again."""
    held = load(table, catalog.statistics_folder) if table.files else None
    if held is not None and held.sample >= share:
        found = held.statistics
    else:
        found = _collect(table, share, connected, report)
        if table.files and catalog.keeps_statistics:
            save(table, Stored(found, share), catalog.statistics_folder)
    catalog.keep_statistics(table.key, found)
    return found


def _collect(
    table: Table,
    share: float,
    connected: Callable[[], AbstractContextManager[duckdb.DuckDBPyConnection]],
    report: Callable[[float], None],
) -> TableStatistics:
    claims = Claims()
    try:
        if isinstance(table, DatabaseTable):
            claims.claim(table.database.path, writes=False)
        with connected() as connection:
            data = opened(connection, table, share)
            return analyse_columns(connection, table, data, report)
    except duckdb.Error as error:
        raise StatisticsError(
            f"table {table.key}: cannot be analyzed: {first_lines(error)}"
        ) from error
    finally:
        claims.release()


@contextmanager
def _connected(catalog: Catalog) -> Iterator[duckdb.DuckDBPyConnection]:
    """An instance that may use all of the machine."""
    with (
        tempfile.TemporaryDirectory(prefix="queryard-analyze-") as spill,
        duckdb.connect(":memory:", config={"temp_directory": spill}) as connection,
    ):
        for system in catalog.filesystems:
            connection.register_filesystem(system)
        yield connection

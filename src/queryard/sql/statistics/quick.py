"""What can be found out quickly: a sample of a table, and statistics of the sample.

A table of a gigabyte costs a tenth of a second. `analyze` knows more, from all rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import duckdb

from queryard.sql.catalog.catalog import Catalog
from queryard.sql.catalog.metadata import first_lines
from queryard.sql.catalog.model import Table

from .columns import analyse_columns
from .drawing import Connected, draw
from .model import StatisticsError, TableStatistics
from .sample_store import save_sample
from .samples import PIECES_SEEN, TableSample
from .sampling import Opened
from .store import Stored, load, save

MEMORY = "256MB"


@contextlib.contextmanager
def small_instance(catalog: Catalog) -> Iterator[duckdb.DuckDBPyConnection]:
    """An instance of one thread and little memory."""
    with duckdb.connect(":memory:", config={"threads": 1, "memory_limit": MEMORY}) as connection:
        connection.execute("SET parquet_metadata_cache = true")  # a file is opened for every piece
        for system in catalog.filesystems:
            connection.register_filesystem(system)
        yield connection


def sample_table(catalog: Catalog, name: str, connected: Connected = small_instance) -> TableSample:
    """The sample of a table that is there; else a new one, which the catalog knows from now on.

    It is kept with the statistics, or in memory where nothing can be written.
    """
    if (held := catalog.sample(name)) is not None:
        return held
    table = catalog[name]
    found = draw(catalog, table, connected)
    if table.files and catalog.keeps_statistics:
        with contextlib.suppress(OSError):
            found = save_sample(table, found, catalog.statistics_folder)
    catalog.keep_sample(name, found)
    return found


def quick_statistics(
    catalog: Catalog, name: str, connected: Connected = small_instance
) -> TableStatistics:
    """Statistics of a table: what is kept of it; else from its sample, and kept from now on.

    In any case its sample is there afterwards.
    """
    table = catalog[name]
    sample = sample_table(catalog, name, connected)
    held = load(table, catalog.statistics_folder) if table.files else None
    known = catalog.statistics(name)
    if held is not None or known.source == "analysed":
        return known
    try:
        found = _of_sample(catalog, table, sample, connected)
    except duckdb.Error as error:
        raise StatisticsError(
            f"table {table.key}: its sample cannot be analyzed: {first_lines(error)}"
        ) from error
    if table.files and catalog.keeps_statistics:
        with contextlib.suppress(StatisticsError):
            save(table, Stored(found, _share(sample)), catalog.statistics_folder)
    catalog.keep_statistics(name, found)
    return found


def _of_sample(
    catalog: Catalog, table: Table, sample: TableSample, connected: Connected
) -> TableStatistics:
    with connected(catalog) as connection:
        connection.register("frame", sample.frame())
        items = ", ".join(sample.items())
        connection.execute(f"CREATE TEMP TABLE analysed AS SELECT {items} FROM frame")
        seen = "" if sample.exact else PIECES_SEEN
        data = Opened("analysed", _share(sample), pieces_seen=seen)
        found = analyse_columns(connection, table, data, lambda share: None)
    return TableStatistics(sample.rows_of_table, found.bytes, found.columns, found.source)


def _share(sample: TableSample) -> float:
    return min(1.0, sample.rows / sample.rows_of_table) if sample.rows_of_table else 1.0

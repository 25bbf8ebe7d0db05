"""The DuckDB instance of one staged query: every task runs on one core, on a cursor of its own."""

from __future__ import annotations

from pathlib import Path

import duckdb

from queryard.engine.errors import failure


def open_instance(memory_bytes: int, temp: Path) -> duckdb.DuckDBPyConnection:
    """An instance in memory; its limit is a hard one, beyond it DuckDB spills to `temp`."""
    try:
        instance = duckdb.connect(
            ":memory:",
            config={
                "threads": 1,
                "memory_limit": f"{memory_bytes} bytes",
                "temp_directory": str(temp),
            },
        )
        # DuckDB 2.0 fails with an internal error where it fetches columns late from part of a
        # file.
        instance.execute("SET GLOBAL disabled_optimizers = 'late_materialization'")
        # Each task reads a part of a file; the footer is the same for all of them.
        instance.execute("LOAD parquet")
        instance.execute("SET GLOBAL parquet_metadata_cache = true")
    except duckdb.Error as error:
        raise failure(str(error)) from error
    return instance

"""Frames of pandas with the types that DuckDB gives its own."""

from __future__ import annotations

from typing import Any


def to_pandas(table: Any) -> Any:
    """A pandas frame of an Arrow table: DECIMAL becomes float64, say.

    DuckDB converts it, so that the types are DuckDB's in every version of it.
    """
    import duckdb

    return duckdb.connect(":memory:", config={"threads": 1}).from_arrow(table).df()

"""Frames of pandas with the types that DuckDB gives its own."""

from __future__ import annotations

from typing import Any


def to_pandas(table: Any) -> Any:
    """A pandas frame of an Arrow table: DECIMAL becomes float64, say.

    DuckDB converts it, so that the types are DuckDB's in every version of it.
    """
    import duckdb

    return duckdb.connect(":memory:", config={"threads": 1}).from_arrow(table).df()


def with_own_names(table: Any) -> Any:
    """The table with a number behind names of columns that come again, as DuckDB writes them.

    SQL does not tell upper from lower case.

    >>> import pyarrow
    >>> names = ["a", "A", "a_1", "b"]
    >>> with_own_names(pyarrow.table([[1], [2], [3], [4]], names=names)).column_names
    ['a', 'A_1', 'a_1_1', 'b']
    """
    taken: dict[str, str] = {}
    for name in table.column_names:
        own, number = name, 0
        while own.lower() in taken:
            number += 1
            own = f"{name}_{number}"
        taken[own.lower()] = own
    return table.rename_columns(list(taken.values()))

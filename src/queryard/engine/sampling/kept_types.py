"""How columns are written so that they come back with exactly their types and values.

DuckDB writes some types to Parquet as others: HUGEINT as DOUBLE, intervals without microseconds,
times without their zone. Such a column is written as text. Others (ENUM, TIMESTAMP_S, fixed arrays)
keep their values, and only their type is given back when they are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from queryard.sql.catalog.model import Column
from queryard.sql.catalog.quoting import identifier

from .model import SampleError

_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_CHANGED_VALUES = re.compile(r"\b(U?HUGEINT|INTERVAL|TIME WITH TIME ZONE|TIMETZ|BIT|UNION)\b")
_CHANGED_TYPE = re.compile(r"\bENUM\b|\bTIMESTAMP_M?S\b|\[\d+\]")
_AS_TEXT = frozenset({"HUGEINT", "UHUGEINT", "INTERVAL", "TIME WITH TIME ZONE", "TIMETZ", "BIT"})


def written(column: Column, table: str) -> str:
    """The item of a SELECT that writes a column without a loss; SampleError where there is none.

    >>> written(Column("n", "HUGEINT"), "t"), written(Column("n", "INTEGER"), "t")
    ('CAST("n" AS VARCHAR) AS "n"', '"n"')
    """
    name = identifier(column.name)
    if column.type in _AS_TEXT:
        return f"CAST({name} AS VARCHAR) AS {name}"
    found = _CHANGED_VALUES.search(_QUOTED.sub("", column.type))
    if found is not None:
        raise SampleError(
            f"table {table}: the column {column.name!r} is {column.type}, and Parquet does not "
            f"keep {found[0]} inside other types; name a table without that column"
        )
    return name


def to_cast(columns: Iterable[Column], stored: Mapping[str, str], table: str) -> frozenset[str]:
    """The columns that have another type in the files; SampleError if it cannot be given back.

    >>> sorted(to_cast([Column("a", "HUGEINT"), Column("b", "DATE")],
    ...                {"a": "VARCHAR", "b": "DATE"}, "t"))
    ['a']
    """
    changed = [column for column in columns if stored[column.name] != column.type]
    for column in changed:
        if column.type not in _AS_TEXT and not _CHANGED_TYPE.search(column.type):
            raise SampleError(
                f"table {table}: the column {column.name!r} is {column.type}, which Parquet keeps "
                f"as {stored[column.name]} only; name a table without that column"
            )
    return frozenset(column.name for column in changed)

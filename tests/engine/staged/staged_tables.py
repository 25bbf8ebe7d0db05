"""Small tables for staged queries: NULLs, skew, duplicates, one without rows, tiny row groups."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_TYPES = {
    "int": pa.int32(),
    "big": pa.int64(),
    "float": pa.float64(),
    "dec": pa.decimal128(9, 2),
    "text": pa.string(),
    "date": pa.date32(),
    "bool": pa.bool_(),
}


def make_tables(folder: Path, schema: dict[str, dict[str, str]], seed: int) -> dict[str, pa.Table]:
    """Write one Parquet file per table, and return the tables."""
    rng = Random(seed)
    sizes = {"fact": 60, "dim": 9, "other": 25, "void": 0}
    tables = {}
    for name, columns in schema.items():
        rows = sizes.get(name, 10)
        table = pa.table(
            {
                column: pa.array([_value(kind, column, i, rng) for i in range(rows)], _TYPES[kind])
                for column, kind in columns.items()
            }
        )
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=max(rows // 5, 1))
        tables[name] = table
    return tables


def _value(kind: str, column: str, row: int, rng: Random) -> Any:
    if column == "id":
        return row
    if rng.random() < 0.15:
        return None
    draws: dict[str, Callable[[], Any]] = {
        # Most are 1: skew.
        "int": lambda: 1 if rng.random() < 0.35 else rng.randint(0, 6),
        "big": lambda: 2 if rng.random() < 0.3 else rng.randint(-1, 7),
        # Quarters, so that sums are exact in any order.
        "float": lambda: rng.randint(-8, 24) / 4,
        "dec": lambda: Decimal(rng.randint(-300, 900)) / 100,
        "text": lambda: rng.choice(["a", "b", "c", "ab", "bc", "abc", ""]),
        "date": lambda: datetime.date(2020, 1, 1) + datetime.timedelta(days=rng.randint(0, 160)),
        "bool": lambda: rng.random() < 0.6,
    }
    return draws[kind]()

"""What is asked, and the answers plain DuckDB gives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from queryard.engine.plain import PlainDuckDB
from queryard.sql.catalog import open_catalog
from queryard.workload import tpch

VARIANTS = 2
MEMORY_BYTES = 2 << 30

MANY_ROWS = "SELECT l_orderkey, l_partkey, l_linenumber FROM lineitem WHERE l_orderkey % 7 < 5"
"""Enough rows to fill what is held for a slow reader."""
LONG = (
    "SELECT count(*) AS pairs FROM lineitem AS a JOIN lineitem AS b USING (l_suppkey) "
    "WHERE b.l_linenumber = 1 AND a.l_quantity + {} < b.l_quantity"
)
"""Long enough to be cancelled in the middle."""
BAD = (
    "SELEC 42",
    "SELECT FROM WHERE",
    "SELECT count(* FROM orders",
    "SELECT no_such_column FROM orders",
    "SELECT sum(o_comment) FROM orders",
    "SELECT o_orderdate + o_comment FROM orders",
)
"""What no engine can run."""
BROKEN = "SELECT sum(CAST(o_comment AS INTEGER)) FROM orders"
"""What fails while it runs."""
UNKNOWN = "SELECT count(*) FROM no_such_table"


@dataclass(frozen=True)
class Question:
    """A text, and its rows in any order."""

    sql: str
    rows: Sequence[tuple[Any, ...]]

    def is_answered_by(self, table: Any) -> bool:
        """Whether these are its rows, up to what the order of a sum of floats changes."""
        found = rows_of(table)
        return len(found) == len(self.rows) and all(
            all(map(_alike, one, other)) for one, other in zip(found, self.rows, strict=True)
        )


@dataclass(frozen=True)
class Questions:
    """All that is asked."""

    usual: tuple[Question, ...]
    long: tuple[Question, ...]
    many_rows: tuple[int, int]
    """How many rows `MANY_ROWS` has, and the sum of its numbers."""
    orders: int


def prepare(folder: Path, slots: int, seed: int) -> Questions:
    """Ask plain DuckDB everything once."""
    rng = Random(f"questions/{seed}")
    texts = [tpch.draw_query(number, rng) for number in tpch.queries() for _ in range(VARIANTS)]
    long = [LONG.format(number) for number in range(4)]
    with PlainDuckDB(open_catalog(folder), slots, MEMORY_BYTES) as duck:
        cursor = duck.cursor()
        found = [Question(text, rows_of(cursor.arrow(text))) for text in (*texts, *long)]
        rows, total = rows_of(
            cursor.arrow(
                f"SELECT count(*), sum(l_orderkey + l_partkey + l_linenumber) FROM ({MANY_ROWS})"
            )
        )[0]
        orders = rows_of(cursor.arrow("SELECT count(*) FROM orders"))[0][0]
        cursor.close()
    return Questions(
        tuple(found[: len(texts)]), tuple(found[len(texts) :]), (rows, int(total)), orders
    )


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    """The rows of an Arrow table, in an order that does not depend on how they came."""
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return sorted(rows, key=lambda row: [_key(value) for value in row])


def _key(value: Any) -> str:
    return f"{float(value):.6e}" if isinstance(value, float | Decimal) else repr(value)


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, float | Decimal) and isinstance(other, float | Decimal):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other)

"""Tables in a folder, and online plans carried out on random files of the sampled one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from queryard.engine.online.leaving_out import estimates
from queryard.estimate.online import Sample
from queryard.sql.catalog import open_catalog
from queryard.sql.online import OnlinePlan, OnlineRows, online_plan, online_rows
from queryard.sql.planner.oracle import quoted

_numbers = itertools.count(1)


class OnlineYard:
    """Parquet files of a folder, for the analysis and for DuckDB."""

    def __init__(self, folder: Path, tables: Sequence[str], files: int = 8) -> None:
        self.catalog = open_catalog(folder)
        self.files = files
        self.native = duckdb.connect(config={"threads": 1})
        for name in tables:
            path = folder / f"{name}.parquet"
            self.native.execute(f"CREATE TABLE {quoted(name)} AS FROM read_parquet('{path}')")

    def sampled(self, table: str) -> str:
        """The table with a column that deals its rows to files."""
        return (
            f"(SELECT *, 'f' || (hash(rowid * 7919) % {self.files}) AS filename "
            f"FROM {quoted(table)})"
        )

    def plan(self, sql: str) -> OnlinePlan:
        plan = online_plan(sql, self.catalog, prefix=f"d{next(_numbers)}_")
        for dimension in plan.dimensions:
            self.native.execute(dimension.create_sql())
        return plan

    def partials(self, plan: OnlinePlan) -> str:
        """Partial rows in two statements, as a table."""
        name = f"partials_{next(_numbers)}"
        relation = self.sampled(plan.table)
        for place, half in enumerate(("< 'f3'", ">= 'f3'")):
            sql = plan.partial_sql(f"(SELECT * FROM {relation} WHERE filename {half})")
            made = f"INSERT INTO {name}" if place else f"CREATE TABLE {name} AS"
            self.native.execute(f"{made} {sql}")
        return name

    def exact(self, plan: OnlinePlan) -> duckdb.DuckDBPyRelation:
        return self.native.sql(plan.final_sql(self.partials(plan)))

    def estimated(self, plan: OnlinePlan, read: int, partials: str = "") -> OnlineRows:
        """The answer after so many files."""
        partials = partials or self.partials(plan)
        groups, files, total = self.groups(plan, partials, range(read))
        sample = Sample(read, self.files, sum(files.values()), total)
        return online_rows(plan, groups.to_pylist(), sample)

    def groups(
        self, plan: OnlinePlan, partials: str, numbers: Sequence[int], few: int = 30
    ) -> tuple[Any, dict[str, float], float]:
        """Groups with their estimates by some files, the rows of these, and all rows."""
        chosen = ", ".join(f"'f{i}'" for i in numbers)
        counted = self.native.sql(
            f"SELECT filename, CAST(count(*) AS DOUBLE) FROM {self.sampled(plan.table)} "
            f"WHERE filename IN ({chosen}) GROUP BY ALL"
        )
        files = dict(counted.fetchall())
        total = self.native.sql(f"SELECT count(*) FROM {quoted(plan.table)}").fetchall()[0][0]
        some = f"(SELECT * FROM {partials} WHERE file IN ({chosen}))"
        found = self.native.sql(plan.gathered_sql(some)).to_arrow_table()
        return estimates(plan, found, files, total, few), files, float(total)

    def assert_exact(self, sql: str, ordered: bool = True) -> OnlinePlan:
        """All files together give DuckDB's names, types and rows."""
        plan = self.plan(sql)
        mine, other = self.exact(plan), self.native.sql(sql)
        assert mine.columns == other.columns
        assert [str(t) for t in mine.types] == [str(t) for t in other.types]
        one, two = mine.fetchall(), other.fetchall()
        if not ordered:
            one, two = sorted(one, key=_sortable), sorted(two, key=_sortable)
        assert len(one) == len(two), (sql, one, two)
        for row, wanted in zip(one, two, strict=True):
            assert all(same(a, b) for a, b in zip(row, wanted, strict=True)), (sql, row, wanted)
        return plan


def same(one: Any, other: Any) -> bool:
    """Equal, or as equal as sums of floating-point numbers in another order are."""
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or math.isclose(
            one, other, rel_tol=1e-9, abs_tol=1e-9
        )
    return bool(one == other)


def _sortable(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(
        (value is None, f"{float(value):.6g}" if isinstance(value, float | Decimal) else str(value))
        for value in row
    )

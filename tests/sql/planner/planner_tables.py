"""A catalog that exists only on paper: what the planner asks of tables, and nothing to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from queryard.sql.catalog import CatalogError


class Column(NamedTuple):
    name: str
    type: str


@dataclass(frozen=True)
class Split:
    table: str
    index: int
    bytes: float
    rows: float | None
    relation: str
    frame: Any = None
    places: tuple[str, ...] = ()


@dataclass(frozen=True)
class ColumnStatistics:
    distinct: float
    min: Any = None
    max: Any = None
    null_share: float = 0.0
    average_width_bytes: float = 8.0
    histogram: Any = None
    clustered: bool | None = None


@dataclass(frozen=True)
class Statistics:
    rows: float
    bytes: float
    columns: Mapping[str, ColumnStatistics]


@dataclass(frozen=True)
class PaperTable:
    """So many rows of so many bytes; `distinct` where it is not a tenth of the rows."""

    name: str
    columns: Sequence[Column]
    rows: float
    bytes: float
    distinct: Mapping[str, float] = field(default_factory=dict)
    schema: str = ""

    def splits(self, target_bytes: float) -> tuple[Split, ...]:
        count = max(int(self.bytes // target_bytes), 1) if self.rows else 0
        return tuple(
            Split(self.name, i, self.bytes / count, self.rows / count, f"{self.name}_{i}")
            for i in range(count)
        )

    @property
    def elsewhere(self) -> str:
        return ""

    @property
    def fingerprint(self) -> str:
        return self.name

    def row_group_splits(self) -> tuple[Split, ...]:
        return self.splits(max(self.bytes / 10, 1))


class PaperCatalog:
    """Tables by name."""

    def __init__(self, *tables: PaperTable) -> None:
        self._tables = {table.name: table for table in tables}

    def __getitem__(self, name: str) -> PaperTable:
        found = self._tables.get(name.lower())
        if found is None:
            raise CatalogError(f"unknown table {name!r}")
        return found

    def statistics(self, name: str) -> Statistics:
        table = self[name]
        columns = {
            c.name: ColumnStatistics(table.distinct.get(c.name, max(table.rows / 10, 1)))
            for c in table.columns
        }
        return Statistics(table.rows, table.bytes, columns)


def columns(**types: str) -> tuple[Column, ...]:
    return tuple(Column(name, found) for name, found in types.items())


def paper_catalog() -> PaperCatalog:
    """A large and a huge table, and two small ones."""
    sale = columns(id="BIGINT", item="INTEGER", shop="INTEGER", price="DECIMAL(9,2)", day="DATE")
    many = {"id": 20e6, "item": 1e6, "shop": 100.0, "day": 1000.0}
    return PaperCatalog(
        PaperTable("sale", sale, 20e6, 600e6, many),
        PaperTable(
            "line",
            columns(id="BIGINT", item="INTEGER", note="VARCHAR"),
            50e6,
            2e9,
            {"id": 18e6, "item": 1e6},
        ),
        PaperTable("item", columns(item="INTEGER", name="VARCHAR"), 2000, 60e3, {"item": 2000}),
        PaperTable("shop", columns(shop="INTEGER", city="VARCHAR"), 100, 3e3, {"shop": 100}),
        PaperTable("gone", columns(id="INTEGER"), 0, 0),
    )

"""What plans over a table need to know of its files: bytes of columns, ranges of row groups."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from queryard.sql.catalog.model import Table
from queryard.sql.catalog.parquet import ParquetTable
from queryard.sql.statistics import TableStatistics, position
from queryard.sql.statistics.distribution import Distribution, Range

from .filters import Range as Bounds

# Ranges of columns that are remembered; then all are forgotten.
REMEMBERED = 1000


class TableFacts:
    """One state of the files of a table; names of columns are in lower case."""

    def __init__(self, table: Table, statistics: TableStatistics) -> None:
        self.key = table.key
        self.bytes = table.bytes
        self.rows = statistics.rows
        self.analysed = statistics.source == "analysed"
        self.columns = {name.lower(): found for name, found in statistics.columns.items()}
        self.wholes = {c.name.lower() for c in table.columns if "INT" in c.type or c.type == "DATE"}
        self.texts = {column.name.lower() for column in table.columns if column.type == "VARCHAR"}
        # Keep the footers only, so that kept facts do not keep the table alive.
        self._footers = (
            [footer.metadata for footer in table.footers]
            if isinstance(table, ParquetTable)
            else None
        )
        self._ranges: dict[str, list[tuple[Bounds, int]]] = {}
        # Of columns, the shares of frequent values of all rows, once they were asked for.
        self.frequent: dict[str, Mapping[Any, float]] = {}
        self._spreads: dict[str, Distribution | None] = {}
        self._within: dict[tuple[str, float, float], Distribution | None] = {}

    @property
    def is_columnar(self) -> bool:
        """Whether columns can be read one by one (Parquet)."""
        return self._footers is not None

    @property
    def groups(self) -> int:
        """Row groups of all files."""
        return sum(m.num_row_groups for m in self._footers or ())

    @property
    def chunks(self) -> int:
        """Column chunks of all row groups; DuckDB reads the metadata of all in the footers."""
        return sum(m.num_row_groups * m.num_columns for m in self._footers or ())

    @cached_property
    def decoded_bytes(self) -> Mapping[str, float]:
        """What each column takes after decompression, still encoded."""
        found: dict[str, float] = {}
        for metadata in self._footers or ():
            names = [
                metadata.schema.column(place).path.split(".")[0].lower()
                for place in range(metadata.num_columns)
            ]
            for group in map(metadata.row_group, range(metadata.num_row_groups)):
                for place, name in enumerate(names):
                    size = group.column(place).total_uncompressed_size
                    found[name] = found.get(name, 0.0) + size
        return found

    @cached_property
    def lengths(self) -> Mapping[str, float]:
        """Of columns of lists, how many values there are in a row on average."""
        values: dict[str, float] = {}
        for metadata in self._footers or ():
            for place in range(metadata.num_columns):
                column = metadata.schema.column(place)
                if column.max_repetition_level > 0:
                    name = column.path.split(".")[0].lower()
                    found = sum(
                        metadata.row_group(group).column(place).num_values
                        for group in range(metadata.num_row_groups)
                    )
                    values[name] = values.get(name, 0.0) + found
        rows = max(1, sum(metadata.num_rows for metadata in self._footers or ()))
        return {name: found / rows for name, found in values.items()}

    def spread(self, name: str) -> Distribution | None:
        """How the values of a column are spread; None where that is not known."""
        if name not in self._spreads:
            known = self.columns.get(name)
            self._spreads[name] = (
                None
                if known is None or known.histogram is None
                else Distribution.of(known.histogram, self.rows * (1 - known.null_share))
            )
        return self._spreads[name]

    def spread_within(self, name: str, low: float, high: float) -> Distribution | None:
        """The part of it that lies between two values, both included."""
        asked = (name, low, high)
        if asked not in self._within:
            if len(self._within) >= REMEMBERED:
                self._within.clear()
            spread = self.spread(name)
            self._within[asked] = (
                None if spread is None else spread.within(Range(low, high)).trimmed
            )
        return self._within[asked]

    def share_read(self, wanted: Mapping[str, Bounds]) -> float:
        """The share of rows in row groups that may hold values in all of these ranges."""
        if not wanted or self._footers is None:
            return 1.0
        total = read = 0
        for group in zip(*map(self._group_ranges, wanted), strict=True):
            rows = group[0][1]
            overlaps = all(
                low <= bound[1] and bound[0] <= high
                for ((low, high), _), bound in zip(group, wanted.values(), strict=True)
            )
            total += rows
            read += rows if overlaps else 0
        return read / total if total else 1.0

    def _group_ranges(self, name: str) -> list[tuple[Bounds, int]]:
        """The range of a column in each row group, and its rows."""
        if name not in self._ranges:
            self._ranges[name] = [
                (_range(metadata, group, name), metadata.row_group(group).num_rows)
                for metadata in self._footers or ()
                for group in range(metadata.num_row_groups)
            ]
        return self._ranges[name]


def _range(metadata: Any, group: int, name: str) -> Bounds:
    """All values where the footer does not say."""
    for place in range(metadata.num_columns):
        if metadata.schema.column(place).path.lower() == name:
            found = metadata.row_group(group).column(place).statistics
            if found is not None and found.has_min_max:
                low, high = position(found.min), position(found.max)
                if low is not None and high is not None:
                    return (low, high)
    return (-math.inf, math.inf)

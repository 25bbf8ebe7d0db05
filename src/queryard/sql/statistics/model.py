"""What is known of a table: sizes, and for each column nulls, range, distinct values, histogram."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from queryard.core.errors import QueryardError

Source = Literal["analysed", "footers", "guessed"]


class StatisticsError(QueryardError):
    """Statistics that cannot be collected or kept."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """An equi-width histogram of the values of a column that are not null.

    Values lie on an axis of numbers (`positions.position`): numbers as they are, dates as days and
    times as seconds since 1970. In a bucket they are taken for evenly spread. A column of one value
    has one bucket without width.

    >>> h = Histogram(0.0, 10.0, counts=(4.0, 6.0), distincts=(2.0, 5.0))
    >>> h.width, h.count_below(2.5), h.total
    (5.0, 2.0, 10.0)
    """

    low: float
    high: float
    counts: tuple[float, ...]
    distincts: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.counts or len(self.counts) != len(self.distincts):
            raise StatisticsError(
                f"a histogram of {len(self.counts)} counts and {len(self.distincts)} distinct "
                "counts; there must be as many of both, and at least one"
            )
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise StatisticsError(f"a histogram from {self.low!r} to {self.high!r}")

    @property
    def width(self) -> float:
        """The width of every bucket."""
        return (self.high - self.low) / len(self.counts)

    @property
    def total(self) -> float:
        """The number of values, nulls not counted."""
        return sum(self.counts)

    def __len__(self) -> int:
        return len(self.counts)

    def count_below(self, value: float) -> float:
        """About how many values lie below a position."""
        if value <= self.low:
            return 0.0
        if value > self.high:
            return self.total
        if not self.width:
            return 0.0
        buckets = (value - self.low) / self.width
        whole = min(int(buckets), len(self.counts) - 1)
        return sum(self.counts[:whole]) + self.counts[whole] * (buckets - whole)


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """One column. `min` and `max` are Python values, None where unknown or where nothing is."""

    null_share: float
    min: object
    max: object
    distinct: float
    average_width_bytes: float
    histogram: Histogram | None = None
    clustered: bool | None = None
    """Whether rows of equal values lie together; None where that is not known."""


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """A table. `source` says how far to trust it.

    "analysed": from the data, all or a sample. "footers": rows, nulls and ranges are right,
    distinct counts are rough. "guessed": from the size and the types of the columns only.
    """

    rows: float
    bytes: float
    columns: Mapping[str, ColumnStatistics]
    source: Source

    @property
    def average_width_bytes(self) -> float:
        """The width of a row in memory."""
        return sum(column.average_width_bytes for column in self.columns.values())

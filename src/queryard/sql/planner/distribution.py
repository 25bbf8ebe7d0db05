"""How the values of a column are spread over an axis, and what filters and joins make of that.

Values are positions on an axis (`queryard.sql.statistics.positions`). In a bucket they are taken
for evenly spread. Formulas are those of TLS: a range keeps its part of the buckets; an equi-join
gives, bucket by bucket, |T1| · |T2| / max(d1, d2) rows of min(d1, d2) values.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from queryard.sql.statistics.distinct import remaining
from queryard.sql.statistics.model import Histogram


class Range(NamedTuple):
    """A range of positions; by default both ends belong to it."""

    low: float = -math.inf
    high: float = math.inf
    with_low: bool = True
    with_high: bool = True

    def __and__(self, other: Range) -> Range:
        """What lies in both.

        >>> Range(low=3.0) & Range(high=5.0, with_high=False)
        Range(low=3.0, high=5.0, with_low=True, with_high=False)
        """
        low, high = max(self.low, other.low), min(self.high, other.high)
        both = (self, other)
        return Range(
            low,
            high,
            all(one.with_low for one in both if one.low == low),
            all(one.with_high for one in both if one.high == high),
        )


@dataclass(frozen=True, slots=True)
class Distribution:
    """Rows and distinct values by bucket; `edges` are one more than there are buckets.

    >>> ages = Distribution((0.0, 50.0, 100.0), counts=(80.0, 20.0), distincts=(40.0, 10.0))
    >>> ages.rows_in(Range(high=25.0, with_high=False)), ages.rows_at(60.0)
    (39.0, 2.0)
    """

    edges: tuple[float, ...]
    counts: tuple[float, ...]
    distincts: tuple[float, ...]

    @classmethod
    def of(cls, histogram: Histogram, rows: float) -> Distribution | None:
        """That of a column, as many `rows` of which are not null; None where nothing is known."""
        total = histogram.total
        if total <= 0 or rows <= 0:
            return None
        span = histogram.high - histogram.low
        if span == 0:  # A single value is one bucket, however many the histogram was asked for.
            return cls((histogram.low, histogram.high), (rows,), (min(1.0, rows),))
        buckets = len(histogram)
        if span == buckets - 1 and histogram.low == math.floor(histogram.low):
            # Each whole number has a bucket of its own: let it lie in the middle.
            edges = [histogram.low - 0.5 + number for number in range(buckets + 1)]
        else:
            width = span / buckets
            edges = [histogram.low + number * width for number in range(buckets)]
            edges.append(histogram.high)
        counts = tuple(count * rows / total for count in histogram.counts)
        distincts = tuple(map(min, histogram.distincts, (max(count, 0.0) for count in counts)))
        return cls(tuple(edges), counts, distincts)

    @property
    def rows(self) -> float:
        return sum(self.counts)

    @property
    def distinct(self) -> float:
        return sum(self.distincts)

    def rows_at(self, value: float) -> float:
        """About how many rows have this value: those of a bucket are equally frequent."""
        place = self._bucket(value)
        if place is None:
            return 0.0
        return self.counts[place] / max(self.distincts[place], 1.0)

    def rows_in(self, given: Range) -> float:
        """About how many rows lie in a range."""
        return self.within(given).rows

    def within(self, given: Range) -> Distribution:
        """The part that lies in a range.

        A bound is taken for one of the values: half of it lies on either side, so that what is
        below a value and what is not are all rows together.
        """
        if given.low > given.high:
            return self._nothing
        first, last = self._bucket(given.low), self._bucket(given.high)
        counts, distincts = [], []
        for place, (count, distinct) in enumerate(zip(self.counts, self.distincts, strict=True)):
            half = 0.5 / max(distinct, 1.0)
            low, high = self.edges[place], self.edges[place + 1]
            begin, end = (0.0, 1.0) if high > given.low and low < given.high else (0.0, 0.0)
            if place == first:
                begin, end = self._inside(place, given.low, -half if given.with_low else half), 1.0
            if place == last:
                end = self._inside(place, given.high, half if given.with_high else -half)
            share = max(end - begin, 0.0)
            counts.append(count * share)
            distincts.append(distinct * share)
        return Distribution(self.edges, tuple(counts), tuple(distincts))

    def _inside(self, place: int, value: float, shift: float) -> float:
        """How much of a bucket lies below a value."""
        low, high = self.edges[place], self.edges[place + 1]
        part = (value - low) / (high - low) if high > low else 0.5
        return min(max(part + shift, 0.0), 1.0)

    def kept(self, share: float) -> Distribution:
        """As large a share of the rows, taken evenly; above 1, each row so often.

        Of the values of a bucket remain those of which some row is drawn (Cardenas).
        """
        counts = tuple(count * share for count in self.counts)
        if share >= 1:
            return Distribution(self.edges, counts, self.distincts)
        distincts = tuple(
            remaining(distinct, count, share)
            for count, distinct in zip(self.counts, self.distincts, strict=True)
        )
        return Distribution(self.edges, counts, distincts)

    def without(self, values: Mapping[float, float]) -> Distribution:
        """The same without some values, of each of which there are so many rows."""
        counts, distincts = list(self.counts), list(self.distincts)
        for value, rows in values.items():
            place = self._bucket(value)
            if place is not None:
                counts[place] = max(counts[place] - rows, 0.0)
                distincts[place] = min(max(distincts[place] - 1, 0.0), counts[place])
        return Distribution(self.edges, tuple(counts), tuple(distincts))

    def joined(self, other: Distribution) -> Distribution:
        """The distribution of the key after an equi-join; its rows are those of the join."""
        if (value := self._only_value) is not None:
            mine, theirs = self, other._at(value)
        elif (value := other._only_value) is not None:
            mine, theirs = self._at(value), other
        else:
            edges = _common_edges(self.edges, other.edges)
            if edges is None:
                return self._nothing
            mine, theirs = self._recut(edges), other._recut(edges)
        if len(mine.counts) != len(theirs.counts):  # a single value on either side
            rows = mine.rows * theirs.rows / max(mine.distinct, theirs.distinct, 1.0)
            point = mine if len(mine.counts) == 1 else theirs
            return Distribution(point.edges, (rows,), (1.0,))
        counts, distincts = [], []
        for place, (a, b) in enumerate(zip(mine.counts, theirs.counts, strict=True)):
            d, e = mine.distincts[place], theirs.distincts[place]
            most = max(d, e)
            # Buckets of less than one value: pairs of the values that both may have.
            counts.append(a * b / most if most > 0 else 0.0)
            distincts.append(min(d, e))
        return Distribution(mine.edges, tuple(counts), tuple(distincts))

    def matched_share(self, other: Distribution) -> float:
        """The share of rows whose value some row of the other column has."""
        rows = self.rows
        if rows <= 0:
            return 0.0
        if (value := self._only_value) is not None:
            return min(1.0, other._at(value).distinct)
        if (value := other._only_value) is not None:
            return min(1.0, self.rows_at(value) / rows)
        edges = _common_edges(self.edges, other.edges)
        if edges is None:
            return 0.0
        mine, theirs = self._recut(edges), other._recut(edges)
        found = sum(
            count * min(1.0, e / d) if d > 0 else 0.0
            for count, d, e in zip(mine.counts, mine.distincts, theirs.distincts, strict=True)
        )
        return min(1.0, found / rows)

    # --- buckets ---------------------------------------------------------------------------------

    def _bucket(self, value: float) -> int | None:
        if not self.edges[0] <= value <= self.edges[-1]:
            return None
        return min(bisect_right(self.edges, value) - 1, len(self.counts) - 1)

    @property
    def _nothing(self) -> Distribution:
        none = (0.0,) * len(self.counts)
        return Distribution(self.edges, none, none)

    @property
    def _only_value(self) -> float | None:
        return self.edges[0] if self.edges[0] == self.edges[-1] else None

    def _at(self, value: float) -> Distribution:
        """The part that has one value, as a bucket without width."""
        rows = self.rows_at(value)
        place = self._bucket(value)
        distinct = 0.0 if place is None else min(1.0, self.distincts[place])
        return Distribution((value, value), (rows,), (distinct,))

    def _recut(self, edges: tuple[float, ...]) -> Distribution:
        """The same in other buckets; what lies outside of them is left out."""
        counts = _cut(self.edges, self.counts, edges)
        distincts = _cut(self.edges, self.distincts, edges)
        return Distribution(edges, counts, distincts)


def _common_edges(one: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, ...] | None:
    low, high = max(one[0], other[0]), min(one[-1], other[-1])
    if low >= high:
        return None
    inside = {edge for edge in (*one, *other) if low < edge < high}
    return (low, *sorted(inside), high)


def _cut(
    edges: tuple[float, ...], amounts: tuple[float, ...], wanted: tuple[float, ...]
) -> tuple[float, ...]:
    """Amounts by bucket, in other buckets."""
    sums = [0.0, *accumulate(amounts)]

    def below(value: float) -> float:
        if value <= edges[0]:
            return 0.0
        if value >= edges[-1]:
            return sums[-1]
        place = bisect_right(edges, value) - 1
        width = edges[place + 1] - edges[place]
        return sums[place] + amounts[place] * (value - edges[place]) / width

    return tuple(max(below(high) - below(low), 0.0) for low, high in pairwise(wanted))

"""How the values of a column are spread over an axis, and what filters and joins make of that.

Values are positions on an axis (`queryard.sql.statistics.positions`). In a bucket they are taken
for evenly spread. Formulas are those of TLS: a range keeps its part of the buckets; an equi-join
gives, bucket by bucket, |T1| · |T2| / max(d1, d2) rows of min(d1, d2) values. TLS takes
the values of one input to be among those of the other; of inputs that have lost values
independently of each other, d is the number that they had before (`drawn`).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import mul
from typing import NamedTuple

from .distinct import remaining
from .model import Histogram


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

    `domains` are the values that those of another input are among, if that is more.

    >>> ages = Distribution((0.0, 50.0, 100.0), counts=(80.0, 20.0), distincts=(40.0, 10.0))
    >>> ages.rows_in(Range(high=25.0, with_high=False)), ages.rows_at(60.0)
    (39.0, 2.0)
    """

    edges: tuple[float, ...]
    counts: tuple[float, ...]
    distincts: tuple[float, ...]
    domains: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.domains:
            object.__setattr__(self, "domains", self.distincts)

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
        return self.counts[place] / max(self.domains[place], 1.0)

    def chance_at(self, value: float) -> float:
        """How likely some row has this value."""
        place = self._bucket(value)
        if place is None or self.distincts[place] <= 0:
            return 0.0
        return min(1.0, self.distincts[place] / max(self.domains[place], 1.0))

    def rows_in(self, given: Range) -> float:
        """About how many rows lie in a range."""
        return self.within(given).rows

    def portion(self, low: float, high: float) -> tuple[float, float]:
        """About how many rows, and how many values, lie between two values, both included.

        >>> Distribution((0.0, 50.0, 100.0), (80.0, 20.0), (40.0, 10.0)).portion(25.0, 100.0)
        (60.0, 30.0)
        """
        first, last = self._bucket(max(low, self.edges[0])), self._bucket(min(high, self.edges[-1]))
        if first is None or last is None or low > high:
            return 0.0, 0.0
        begin, end = self._inside(first, low, 0.0), self._inside(last, high, 0.0)
        if first == last:
            # A single value has its part of the bucket, too.
            part = min(1.0, max(end - begin, 1.0 / max(self.domains[first], 1.0)))
            return self.counts[first] * part, self.domains[first] * part
        rows, values = (
            sum(each[first:last]) - each[first] * begin + each[last] * end
            for each in (self.counts, self.domains)
        )
        return rows, values

    def within(self, given: Range) -> Distribution:
        """The part that lies in a range.

        A bound is taken for one of the values: half of it lies on either side, so that what is
        below a value and what is not are all rows together.
        """
        if given.low > given.high:
            return self._nothing
        first, last = self._bucket(given.low), self._bucket(given.high)
        shares = []
        for place, distinct in enumerate(self.distincts):
            half = 0.5 / max(distinct, 1.0)
            low, high = self.edges[place], self.edges[place + 1]
            begin, end = (0.0, 1.0) if high > given.low and low < given.high else (0.0, 0.0)
            if place == first:
                begin, end = self._inside(place, given.low, -half if given.with_low else half), 1.0
            if place == last:
                end = self._inside(place, given.high, half if given.with_high else -half)
            shares.append(max(end - begin, 0.0))
        return Distribution(self.edges, *(tuple(map(mul, shares, each)) for each in self._amounts))

    def _inside(self, place: int, value: float, shift: float) -> float:
        """How much of a bucket lies below a value."""
        low, high = self.edges[place], self.edges[place + 1]
        part = (value - low) / (high - low) if high > low else 0.5
        return min(max(part + shift, 0.0), 1.0)

    def kept(self, share: float) -> Distribution:
        """As large a share of the rows, taken evenly; above 1, each row so often.

        Of the values of a bucket remain those of which some row is drawn (Cardenas).
        """
        kept = self.drawn(share)
        return kept if share >= 1 else Distribution(kept.edges, kept.counts, kept.distincts)

    @property
    def trimmed(self) -> Distribution:
        """The same without empty buckets at the ends."""
        filled = [place for place, count in enumerate(self.counts) if count > 0]
        if not filled:
            return self
        first, end = filled[0], filled[-1] + 1
        inside = (each[first:end] for each in self._amounts)
        return Distribution(self.edges[first : end + 1], *inside)

    def drawn(self, share: float) -> Distribution:
        """The same, for joins with inputs that have lost other values: they keep their domains."""
        counts = tuple(count * share for count in self.counts)
        if share >= 1:
            return Distribution(self.edges, counts, self.distincts, self.domains)
        distincts = tuple(
            remaining(distinct, count, share)
            for count, distinct in zip(self.counts, self.distincts, strict=True)
        )
        return Distribution(self.edges, counts, distincts, self.domains)

    def of_rows(self, rows: float) -> Distribution:
        """The same values in so many rows."""
        factor = rows / max(self.rows, 1e-9)
        counts = tuple(count * factor for count in self.counts)
        return Distribution(self.edges, counts, self.distincts, self.domains)

    @property
    def of_values(self) -> Distribution:
        """The same values once each."""
        return Distribution(self.edges, self.distincts, self.distincts, self.domains)

    def without(self, values: Mapping[float, float]) -> Distribution:
        """The same without some values, of each of which there are so many rows."""
        counts, distincts, domains = map(list, self._amounts)
        for value, rows in values.items():
            place = self._bucket(value)
            if place is not None:
                counts[place] = max(counts[place] - rows, 0.0)
                distincts[place] = min(max(distincts[place] - 1, 0.0), counts[place])
                domains[place] = max(domains[place] - 1, distincts[place])
        return Distribution(self.edges, tuple(counts), tuple(distincts), tuple(domains))

    def with_values(self, values: Mapping[float, float]) -> Distribution:
        """The same with some values more, of each of which there are so many rows."""
        counts, distincts, domains = map(list, self._amounts)
        for value, rows in values.items():
            place = self._bucket(value)
            if place is not None:
                counts[place] += rows
                distincts[place] += min(1.0, rows)
                domains[place] += 1
        return Distribution(self.edges, tuple(counts), tuple(distincts), tuple(domains))

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
            rows = mine.rows * theirs.rows / max(*mine.domains, *theirs.domains, 1.0)
            point = mine if len(mine.counts) == 1 else theirs
            return Distribution(point.edges, (rows,), (1.0,))
        counts, distincts, domains = [], [], []
        for (a, d, all_of_d), (b, e, all_of_e) in zip(
            zip(*mine._amounts, strict=True), zip(*theirs._amounts, strict=True), strict=True
        ):
            most = max(all_of_d, all_of_e)
            # Buckets of less than one value: pairs of the values that both may have.
            counts.append(a * b / most if most > 0 else 0.0)
            distincts.append(min(d, e, d * e / most) if most > 0 else 0.0)
            domains.append(min(all_of_d, all_of_e))
        return Distribution(mine.edges, tuple(counts), tuple(distincts), tuple(domains))

    def matched_share(self, other: Distribution) -> float:
        """The share of rows whose value some row of the other column has."""
        rows = self.rows
        if rows <= 0:
            return 0.0
        if (value := self._only_value) is not None:
            return other.chance_at(value)
        if (value := other._only_value) is not None:
            return min(1.0, self.rows_at(value) / rows)
        edges = _common_edges(self.edges, other.edges)
        if edges is None:
            return 0.0
        mine, theirs = self._recut(edges), other._recut(edges)
        found = sum(
            count * min(1.0, e / d) if d > 0 else 0.0
            for count, d, e in zip(mine.counts, mine.domains, theirs.distincts, strict=True)
        )
        return min(1.0, found / rows)

    # --- buckets ---------------------------------------------------------------------------------

    @property
    def _amounts(self) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
        return self.counts, self.distincts, self.domains

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
        rows, chance = self.rows_at(value), self.chance_at(value)
        return Distribution((value, value), (rows,), (chance,), (min(1.0, rows),))

    def _recut(self, edges: tuple[float, ...]) -> Distribution:
        """The same in other buckets; what lies outside of them is left out."""
        return Distribution(edges, *_cut(self.edges, self._amounts, edges))


def _common_edges(one: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, ...] | None:
    low, high = max(one[0], other[0]), min(one[-1], other[-1])
    if low >= high:
        return None
    inside = {edge for edge in (*one, *other) if low < edge < high}
    return (low, *sorted(inside), high)


def _cut(
    edges: tuple[float, ...], amounts: Sequence[tuple[float, ...]], wanted: tuple[float, ...]
) -> list[tuple[float, ...]]:
    """Amounts by bucket, in other buckets that lie within."""
    places = []
    for value in wanted:
        place = min(bisect_right(edges, value) - 1, len(edges) - 2)
        places.append((place, (value - edges[place]) / (edges[place + 1] - edges[place])))
    found = []
    for each in amounts:
        sums = [0.0, *accumulate(each)]
        below = [sums[place] + each[place] * part for place, part in places]
        found.append(tuple(max(high - low, 0.0) for low, high in pairwise(below)))
    return found

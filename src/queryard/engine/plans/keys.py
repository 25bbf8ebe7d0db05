"""What is known of keys that are joined: how their values are spread, and which are frequent.

It takes time to find out, so it is asked where numbers of distinct values would not tell as much:
of keys that come several times on both sides, have frequent values, or are bounded by a filter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from queryard.sql.statistics.judge import MOST_FREQUENT
from queryard.sql.statistics.matching import Side, joined, matched_share
from queryard.sql.statistics.positions import position

from .filters import ranges, words
from .streams import Column
from .tables import TableFacts

# A column with so many values per row is a key.
UNIQUE = 0.9
# Values so many times as frequent as others are matched one by one: buckets tell of the others.
FREQUENT = 4.0
# In joins with a key they matter if they have this share of the rows.
SKEWED = 0.1
# A key that has this share of its rows has all of its values.
ALL = 0.95
# A filter that leaves so many of its values leaves them about as they were.
MOST = 0.7


class Judging(Protocol):
    """Samples that know frequent values, and how many there are."""

    def distinct(
        self, key: str, expressions: Sequence[str], condition: str = ""
    ) -> float | None: ...

    def frequent(
        self, key: str, expression: str, condition: str = "", own: str = ""
    ) -> Mapping[Any, float] | None: ...


class Keys:
    """The keys of one plan."""

    def __init__(self, facts: Mapping[str, TableFacts], judge: Judging | None) -> None:
        self._facts = facts
        self._judge = judge

    def of_table(self, column: Column, facts: TableFacts, conditions: Sequence[str]) -> Column:
        """A key of a table of which the rows are left for which conditions hold."""
        spread = facts.spread(column.name)
        own = [
            text for text in conditions if set(words(text)) & facts.columns.keys() == {column.name}
        ]
        known = " AND ".join(own)
        bounds = [
            found[column.name]
            for text in own
            if column.name in (found := ranges(text, facts.columns.get))
        ]
        if column.range != column.whole_range and column.range is not None:
            bounds.append(column.range)
        if own and not bounds:
            return self._some_of(replace(column, own=known, spread=spread), facts)
        if spread is None or not bounds:
            return replace(column, own=known, spread=spread)
        low, high = max(low for low, _ in bounds), min(high for _, high in bounds)
        within = facts.spread_within(column.name, low, high)
        if within is None or within.rows <= 0 or within.rows >= ALL * spread.rows:
            return replace(column, own=known, spread=spread)
        # So many of its rows are left as are left of the table.
        left = column.left * spread.rows / within.rows
        return replace(column, own=known, spread=within, left=left, bounds=(low, high))

    def _some_of(self, column: Column, facts: TableFacts) -> Column:
        """The key after a filter on itself that is no range: of some values nothing is left."""
        if self._judge is None or column.distinct is None:
            return column
        values = self._judge.distinct(facts.key, (column.text,), column.own)
        if values is None or values >= MOST * column.distinct:
            return column
        return replace(column, distinct=max(1.0, values), spread=None)

    def joined(self, one: Column, rows: float, other: Column, others: float) -> float | None:
        """The pairs with the same key; None if numbers of distinct values tell as much."""
        if one.distinct is None or other.distinct is None:
            return None
        if self._is_unique(other):
            return self._with_key(one, rows, other, others)
        if self._is_unique(one):
            return self._with_key(other, others, one, rows)
        sides = self._sides(one, rows, other, others)
        return None if sides is None else joined(*sides).rows

    def matched(self, one: Column, rows: float, other: Column, others: float) -> float | None:
        """The share of rows of the first that have a partner; None as above."""
        if one.distinct is None or other.distinct is None:
            return None
        if self._is_unique(other):
            share = self._among_keys(one, other, others)
            return None if share is None else share * one.present
        sides = self._sides(one, rows, other, others)
        return None if sides is None else matched_share(*sides)

    # --- a column that has each value once on one side ---------------------------------------

    def _with_key(self, many: Column, rows: float, key: Column, keys: float) -> float | None:
        """The pairs of rows with those of a key, of which earlier joins may have made several."""
        share = self._among_keys(many, key, keys)
        if share is None:
            return None
        return share * rows * many.present * max(1.0, keys / max(1.0, key.distinct or 1.0))

    def _among_keys(self, many: Column, key: Column, keys: float) -> float | None:
        """The share of rows whose value is among the values left of a key.

        Each of these has as many rows as values of its range have on average. So it matters little
        how well buckets show where values lie: both numbers are of the same part of a bucket.
        """
        if key.bounds is None and key.left >= ALL:
            return None
        keys = min(keys, max(1.0, key.distinct or 1.0))
        frequent = self._frequent(many)
        if sum(frequent.values()) < SKEWED:
            frequent = {}
        spread = many.spread
        if spread is None or (key.bounds is None and not frequent):
            return None if not frequent else self._among_few(many, frequent, key, keys)
        total = max(spread.rows, 1e-9)
        low, high = key.bounds or (-math.inf, math.inf)
        inside = max(low, spread.edges[0]), min(high, spread.edges[-1])
        if many.bounds is not None:
            inside = max(inside[0], many.bounds[0]), min(inside[1], many.bounds[1])
        if inside[0] > inside[1]:
            return 0.0
        if key.spread is not None and inside != (low, high):
            of_keys = key.spread.portion(low, high)[0]
            keys *= min(1.0, key.spread.portion(*inside)[0] / max(of_keys, 1e-9))
        rows, values = spread.portion(*inside)
        keys *= min(1.0, self._values(many) / max(1.0, self._values(key)))
        if frequent:
            places = ((position(value), value) for value in frequent)
            frequent = {v: frequent[v] for p, v in places if p is None or low <= p <= high}
        return self._told(frequent, many, rows / total, values, key, keys)

    def _among_few(
        self, many: Column, frequent: Mapping[Any, float], key: Column, keys: float
    ) -> float:
        """The same where only frequent values are known."""
        values = many.domain or many.distinct or 1.0
        keys *= min(1.0, self._values(many) / max(1.0, self._values(key)))
        return self._told(frequent, many, 1.0, values, key, keys)

    def _told(
        self,
        frequent: Mapping[Any, float],
        many: Column,
        share: float,
        values: float,
        key: Column,
        keys: float,
    ) -> float:
        """The share of rows that match, of a share of the rows that has so many values."""
        if not frequent:
            return min(1.0, share * keys / max(values, 1e-9))
        chance = min(1.0, keys / max(values, 1.0))
        few = self._among(frequent, key, keys)
        there = {v: min(1.0, few[v] * keys) if few else chance for v in frequent}
        found = sum(part * there[value] for value, part in frequent.items())
        rest = max(0.0, share - sum(frequent.values()))
        others = max(0.0, keys - sum(there.values())) / max(values - len(frequent), 1.0)
        return min(1.0, found + rest * min(1.0, others))

    def _values(self, column: Column) -> float:
        """How many values the column has in the whole table."""
        facts = self._facts.get(column.table)
        whole = None if facts is None else facts.spread(column.name)
        return (column.domain or 1.0) if whole is None else whole.distinct

    # --- a column that has values several times on both sides ---------------------------------

    def _sides(
        self, one: Column, rows: float, other: Column, others: float
    ) -> tuple[Side, Side] | None:
        mine, theirs = self._frequent(one), self._frequent(other)
        if self._is_unique(one) and sum(theirs.values()) < SKEWED:
            theirs = {}
        if not mine and not theirs:
            single = self._is_unique(one)
            bounded = (one.bounds or other.bounds) and one.spread and other.spread
            if not bounded and (single or not (one.spread and other.spread)):
                return None
        if theirs and not mine:
            mine = self._among(theirs, one, rows)
        return self._side(one, rows, mine), self._side(other, others, theirs)

    def _side(self, column: Column, rows: float, frequent: Mapping[Any, float]) -> Side:
        rows *= column.present
        domain = column.domain or column.distinct or 1.0
        distinct = min(column.distinct or 1.0, max(1.0, rows))
        spread = column.spread
        if spread is not None:
            spread = spread.drawn(min(1.0, column.left)).of_rows(rows)
            distinct = max(1.0, min(distinct, spread.distinct))
            domain = min(domain, max(1.0, sum(spread.domains)))
        return Side(rows, distinct, frequent, spread, domain)

    def _is_unique(self, column: Column) -> bool:
        facts = self._facts.get(column.table)
        if column.grouped:
            return True
        return facts is not None and (column.domain or 0.0) >= UNIQUE * facts.rows

    def _frequent(self, column: Column) -> Mapping[Any, float]:
        """The frequent values; filters on other columns are taken to leave them as they are."""
        if column.frequent is not None:
            return column.frequent
        if self._judge is None or not column.text or self._is_unique(column):
            return {}
        if not column.own and column.where and column.name in words(column.where):
            return {}  # A filter leaves some of its values, but it is not known which.
        facts = self._facts.get(column.table)
        known = {} if facts is None or column.own else facts.frequent
        found = known.get(column.text)
        if found is None:
            all_of = self._judge.frequent(column.table, column.text, column.own, column.own) or {}
            least = FREQUENT / max(1.0, column.domain or 1.0)
            found = {value: share for value, share in all_of.items() if share >= least}
            known[column.text] = found
        return found

    def _among(
        self, values: Mapping[Any, float], column: Column, rows: float
    ) -> Mapping[Any, float]:
        """Which values a key has that comes once each, if it has few."""
        if self._judge is None or not column.text or column.grouped or rows > MOST_FREQUENT:
            return {}
        if not self._is_unique(column):
            return {}
        where = column.where
        few = self._judge.frequent(column.table, column.text, where, column.own)
        return {value: few.get(value, 0.0) for value in values} if few else {}


def of_groups(key: Column, groups: float) -> Column:
    """A key of groups: its values come once each, as far as there are no others."""
    values = min(key.distinct or groups, groups)
    spread, left = key.spread, key.left
    if spread is not None:
        left = min(1.0, values / max(1.0, spread.distinct))
        spread = spread.of_values
    return replace(
        key, distinct=values, frequent={}, spread=spread, left=left, grouped=True, sifted={}
    )

"""How many rows of two inputs have the same key.

Frequent values are matched one by one, since a skewed key has most of its rows there; the rest is
matched as TLS does, bucket by bucket: |T1| · |T2| / max(d1, d2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from queryard.sql.statistics.positions import position

from .distribution import Distribution


@dataclass(frozen=True, slots=True)
class Side:
    """The keys of one input: rows with a key, distinct keys, shares of frequent ones.

    >>> one = Side(100.0, 10.0, {"a": 0.5})
    >>> joined_rows(one, Side(10.0, 10.0, {}))
    100.0
    """

    rows: float
    distinct: float
    frequent: Mapping[Any, float]
    spread: Distribution | None = None

    @property
    def rest_rows(self) -> float:
        return self.rows * max(1 - sum(self.frequent.values()), 0.0)

    @property
    def rest_distinct(self) -> float:
        return max(self.distinct - len(self.frequent), 0.0)

    @property
    def rest(self) -> Distribution | None:
        """How the keys are spread that are not frequent."""
        if self.spread is None or not self.frequent:
            return self.spread
        places = {position(value): self.rows * share for value, share in self.frequent.items()}
        return self.spread.without({p: rows for p, rows in places.items() if p is not None})


def joined_rows(one: Side, other: Side) -> float:
    """How many pairs have the same key."""
    pairs = _frequent_pairs(one, other)
    rows = sum(pairs.values()) + _beside(one, other) + _beside(other, one)
    mine, theirs = one.rest, other.rest
    if mine is not None and theirs is not None:
        return rows + mine.joined(theirs).rows
    most = max(one.rest_distinct, other.rest_distinct, 1.0)
    return rows + one.rest_rows * other.rest_rows / most


def joined_frequent(one: Side, other: Side, rows: float) -> dict[Any, float]:
    """The shares of frequent keys among the pairs."""
    if rows <= 0:
        return {}
    return {value: min(n / rows, 1.0) for value, n in _frequent_pairs(one, other).items()}


def matched_share(one: Side, other: Side) -> float:
    """The share of rows of the first input that have a partner in the other."""
    chance = min(1.0, other.rest_distinct / max(one.distinct, 1.0))
    frequent = sum(
        share * (1.0 if value in other.frequent else chance)
        for value, share in one.frequent.items()
    )
    rest_share = max(1 - sum(one.frequent.values()), 0.0)
    mine = one.rest
    if mine is not None and other.spread is not None:
        rest = mine.matched_share(other.spread)
    else:
        unmatched = sum(value not in one.frequent for value in other.frequent)
        rest = min(1.0, (other.rest_distinct + unmatched) / max(one.rest_distinct, 1.0))
    return min(1.0, frequent + rest_share * rest)


def _frequent_pairs(one: Side, other: Side) -> dict[Any, float]:
    both = one.frequent.keys() & other.frequent.keys()
    return {v: one.frequent[v] * one.rows * other.frequent[v] * other.rows for v in both}


def _beside(one: Side, other: Side) -> float:
    """Pairs of keys that are frequent in the first input only."""
    alone = sum(share for value, share in one.frequent.items() if value not in other.frequent)
    return alone * one.rows * other.rest_rows / max(one.distinct, other.rest_distinct, 1.0)

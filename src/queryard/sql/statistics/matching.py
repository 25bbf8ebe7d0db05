"""How many rows of two inputs have the same key, and what is then known of the key.

Frequent values are matched one by one, since a skewed key has most of its rows there; the rest is
matched as TLS does, bucket by bucket: |T1| · |T2| / max(d1, d2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .distribution import Distribution
from .positions import position


@dataclass(frozen=True, slots=True)
class Side:
    """The keys of one input: rows with a key, distinct keys, shares of frequent ones.

    A share of 0 tells that a value is not there. `domain` is how many keys there were before it
    lost some independently of the other input.

    >>> one = Side(100.0, 10.0, {"a": 0.5})
    >>> joined(one, Side(10.0, 10.0, {})).rows
    100.0
    >>> joined(Side(5.0, 5.0, {}, domain=100.0), Side(10.0, 10.0, {}, domain=100.0)).rows
    0.5
    """

    rows: float
    distinct: float
    frequent: Mapping[Any, float]
    spread: Distribution | None = None
    domain: float = 0.0

    @property
    def share_of_rest(self) -> float:
        return max(1 - sum(self.frequent.values()), 0.0)

    @property
    def rest(self) -> Rest:
        """The keys that are not frequent."""
        frequent = {value: share for value, share in self.frequent.items() if share > 0}
        distinct = max(self.distinct - len(frequent), 0.0)
        domain = max(self.domain - len(frequent), distinct)
        spread = self.spread
        if spread is not None and frequent:
            places = {position(value): self.rows * n for value, n in frequent.items()}
            spread = spread.without({p: rows for p, rows in places.items() if p is not None})
        return Rest(self.rows * self.share_of_rest, distinct, domain, spread)


@dataclass(frozen=True, slots=True)
class Rest:
    """Keys of which none is known to be frequent."""

    rows: float
    distinct: float
    domain: float
    spread: Distribution | None

    def rows_at(self, value: object, values: float) -> float:
        """How many rows have one of so many values."""
        return 0.0 if self._is_beyond(value) else self.rows / max(values, self.domain, 1.0)

    def chance(self, value: object, values: float) -> float:
        """How likely one of so many values is among them."""
        most = max(values, self.domain, 1.0)
        return 0.0 if self._is_beyond(value) else min(1.0, self.distinct / most)

    def _is_beyond(self, value: object) -> bool:
        """Whether no key lies where a value lies."""
        place = None if self.spread is None else position(value)
        return self.spread is not None and place is not None and not self.spread.chance_at(place)

    def joined(self, other: Rest) -> Rest:
        """The pairs with the same key."""
        most = max(self.domain, other.domain, 1.0)
        if self.spread is not None and other.spread is not None:
            spread = self.spread.joined(other.spread)
            return Rest(spread.rows, spread.distinct, most, spread)
        distinct = min(self.distinct, other.distinct, self.distinct * other.distinct / most)
        return Rest(self.rows * other.rows / most, distinct, most, None)


def joined(one: Side, other: Side) -> Side:
    """The pairs with the same key."""
    mine, theirs = one.rest, other.rest
    pairs = dict(_frequent_pairs(one, mine, other, theirs))
    rest = mine.joined(theirs)
    rows = rest.rows + sum(pairs.values())
    if rows <= 0:
        return Side(0.0, 0.0, {}, rest.spread)
    spread = rest.spread
    if spread is not None and pairs:
        places = {position(value): n for value, n in pairs.items()}
        spread = spread.with_values({p: n for p, n in places.items() if p is not None})
    frequent = {value: n / rows for value, n in pairs.items()}
    distinct = min(rest.distinct + len(pairs), one.distinct, other.distinct)
    return Side(
        rows,
        distinct,
        frequent,
        spread,
        min(rest.domain + len(pairs), max(one.domain, other.domain)),
    )


def matched_share(one: Side, other: Side) -> float:
    """The share of rows of the first input that have a partner in the other."""
    mine, theirs = one.rest, other.rest
    values = max(one.distinct, one.domain)
    # Of a value of which less than a row is expected, there may be none.
    frequent = sum(
        share
        * (
            min(1.0, other.frequent[value] * other.rows)
            if value in other.frequent
            else theirs.chance(value, values)
        )
        for value, share in one.frequent.items()
    )
    if mine.spread is not None and other.spread is not None:
        rest = mine.spread.matched_share(other.spread)
    else:
        unmatched = sum(value not in one.frequent for value in other.frequent)
        rest = min(1.0, (theirs.distinct + unmatched) / max(mine.domain, 1.0))
    return min(1.0, frequent + one.share_of_rest * rest)


def _frequent_pairs(
    one: Side, mine: Rest, other: Side, theirs: Rest
) -> Iterator[tuple[Any, float]]:
    """How many pairs have each key that is frequent in an input."""
    for value, share in one.frequent.items():
        found = other.frequent.get(value)
        rows = theirs.rows_at(value, one.distinct) if found is None else found * other.rows
        if rows > 0:
            yield value, share * one.rows * rows
    for value, share in other.frequent.items():
        if value not in one.frequent and (rows := mine.rows_at(value, other.distinct)) > 0:
            yield value, share * other.rows * rows

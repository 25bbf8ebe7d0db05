"""How many rows joins give, and which rows of their left side they drop before they are read.

Rows match as often as values do. Of the values that a filter has left on one side, each row of the
other side has one with the chance *values left / values there were*: columns that are joined have
the same values as far as the one with fewer goes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .filters import Range
from .inequality_joins import Compared, compared, matching_share
from .judged import Known
from .keys import Keys
from .streams import Column, Stream, source

_EQUAL = re.compile(r"(.+?) (?:=|IS NOT DISTINCT FROM) (.+)")
_ORDINARY = re.compile(r"(.+?) = (.+)")
# Joins that drop rows of the left side without a partner, and so can drop them early.
_DROPPING = ("INNER", "SEMI", "RIGHT", "RIGHT_SEMI")
# How much a second key adds: an exponent of its distinct values, where no sample tells.
FURTHER_KEYS = 0.25
# A query that asks for rows without a partner expects some.
LEAST_ANTI = 0.1
# Partners of a row, where keys were made on the way.
MANY = 3.0
# An array has at most so many places, and its keys come once each.
MOST_INDEXED = 1_000_000.0
UNIQUE = 0.9
# Squared errors of the logarithm of rows.
BY_VALUES = math.log(1.3) ** 2
BY_COMPARISON = math.log(2.0) ** 2
UNKNOWN = math.log(3.0) ** 2


@dataclass(frozen=True, slots=True)
class Pushed:
    """The keys of the right side of a join, by which scans of its left side are sifted.

    `number` is the join's: below a projection the key has another name.
    """

    number: int
    key: str
    values: float
    domain: float
    doubt: float
    column: Column
    rows: float
    range: Range | None = None
    whole_range: Range | None = None

    def share(self, column: Column | None) -> float:
        """The share of rows whose value is among them.

        If only keys of some range are left, it is the share of rows in that range, and among those
        the share that has one of the keys.
        """
        domain = max(self.domain, (column.domain if column else None) or 1.0)
        if column is None or None in (self.range, self.whole_range, column.range):
            return min(1.0, self.values / max(1.0, domain))
        inside, of_all = _width(self.range), _width(self.whole_range)
        there = max(1.0, self.domain * inside / of_all)
        return _overlap(column.range, self.range) * min(1.0, self.values / there)

    def below(self, projections: Sequence[str]) -> Pushed:
        """The same, as the operator below a projection calls the key."""
        if self.key.startswith("#") and self.key[1:].isdecimal():
            place = int(self.key[1:])
            return replace(self, key=projections[place] if place < len(projections) else "")
        return self


def equalities(conditions: Sequence[str]) -> list[tuple[str, str]]:
    """The sides of conditions that demand equal values."""
    single = (text for text in conditions if not (text.startswith("(") and text.endswith(")")))
    found = (_EQUAL.fullmatch(text) for text in single)
    return [(one[1], one[2]) for one in found if one is not None]


def pushed_by(
    number: int, name: str, kind: str, conditions: Sequence[str], right: Stream
) -> list[Pushed]:
    """What a join hands down to its left side: DuckDB does so for a single equality."""
    equal = equalities(conditions)
    if name != "HASH_JOIN" or kind not in _DROPPING or len(equal) != 1:
        return []
    if "CAST(" in "".join(equal[0]) or not any(map(_ORDINARY.fullmatch, conditions)):
        return []
    key = _side(equal[0][1], right)
    if key is None or key.distinct is None:
        return []
    values = min(key.distinct, max(1.0, right.rows))
    doubt = right.doubt + BY_VALUES
    ranges = (key.range, key.whole_range) if key.is_whole else (None, None)
    domain = key.domain or values
    return [Pushed(number, equal[0][0], values, domain, doubt, key, right.rows, *ranges)]


def _width(given: Range | None) -> float:
    """How many whole numbers a range has."""
    return 1.0 if given is None else given[1] - given[0] + 1.0


def _overlap(one: Range | None, other: Range | None) -> float:
    """The share of one range that lies in another."""
    if one is None or other is None:
        return 1.0
    common = min(one[1], other[1]) - max(one[0], other[0]) + 1.0
    return min(1.0, max(0.0, common) / _width(one))


def is_indexed(kind: str, conditions: Sequence[str], right: Stream) -> bool:
    """Whether DuckDB makes an array of the right side, in place of a hash table: its own rule."""
    equal = equalities(conditions)
    if kind not in ("INNER", "SEMI", "MARK") or len(conditions) != 1 or len(equal) != 1:
        return False
    key = _side(equal[0][1], right) or Column()
    if not key.is_whole or key.range is None or key.range[1] - key.range[0] > MOST_INDEXED:
        return False
    return kind != "INNER" or (key.distinct or right.rows) >= UNIQUE * right.rows


def joined(
    name: str,
    kind: str,
    conditions: Sequence[str],
    left: Stream,
    right: Stream,
    expected: float | None,
    sifted: int | None,
    known: Known,
) -> Stream:
    """The rows of a join, whose left side may hold only rows with a partner already."""
    if name == "ASOF_JOIN":
        return replace(left, columns=[*left.columns, *right.columns])  # at most one for each
    pairs, doubt = _pairs(conditions, left, right, expected, sifted, known)
    doubt += max(left.doubt, right.doubt)
    if kind == "MARK" or kind == "SINGLE":
        return replace(left, columns=[*left.columns, Column()])
    if kind in ("SEMI", "ANTI"):
        share = 1.0
        if sifted is None:
            share = _matched(conditions, left, right, False, known.keys)
        share = share if kind == "SEMI" else max(LEAST_ANTI, 1 - share)
        return left.thinned(max(1.0, left.rows * share), doubt)
    if kind in ("RIGHT_SEMI", "RIGHT_ANTI"):
        turned = [_turned(text) for text in conditions]
        share = _matched(turned, right, left, sifted is not None, known.keys)
        share = share if kind == "RIGHT_SEMI" else max(LEAST_ANTI, 1 - share)
        return right.thinned(max(1.0, right.rows * share), doubt)
    rows = pairs
    if kind in ("LEFT", "OUTER", "FULL"):
        alone = 1 - _matched(conditions, left, right, False, known.keys)
        rows = max(left.rows, rows + alone * left.rows)
    if kind in ("RIGHT", "OUTER", "FULL"):
        turned = [_turned(text) for text in conditions]
        alone = 1 - _matched(turned, right, left, False, known.keys)
        rows = max(right.rows, rows + alone * right.rows)
    rows = max(1.0, rows)
    columns = [*_after(left, rows), *_after(right, rows)]
    return Stream(rows, rows / max(1.0, expected or rows), columns, doubt)


def _side(text: str, stream: Stream) -> Column | None:
    """A column of one side; DuckDB's plans may have lost the name of the only one."""
    found = source(text, stream.columns)
    if found is None and len(stream.columns) == 1 and text.strip('"').isidentifier():
        return stream.columns[0]
    return found


def _after(side: Stream, rows: float) -> list[Column]:
    """The columns of a side that keeps about as large a share of its values as of its rows."""
    return list(side.thinned(min(rows, side.rows)).columns)


def _turned(text: str) -> str:
    found = _EQUAL.fullmatch(text)
    return text if found is None else f"{found[2]} = {found[1]}"


def _matched(
    conditions: Sequence[str], side: Stream, other: Stream, among: bool, keys: Keys
) -> float:
    """The share of a side's rows that have a partner, if the other's values are `among` its own."""
    share = 1.0
    for mine, theirs in equalities(conditions):
        one, two = _side(mine, side), _side(theirs, other)
        if one is None or two is None or two.distinct is None:
            continue
        found = None if among else keys.matched(one, side.rows, two, other.rows)
        if found is not None:
            share = min(share, found)
            continue
        values = min(two.distinct, max(1.0, other.rows))
        share = min(share, values / (one.distinct or values if among else _domain(one, two)))
    return min(1.0, share)


def _pairs(
    conditions: Sequence[str],
    left: Stream,
    right: Stream,
    expected: float | None,
    sifted: int | None,
    known: Known,
) -> tuple[float, float]:
    """Pairs of rows that agree, and the doubt."""
    domains: list[float] = []
    sides: list[tuple[Column, Column]] = []
    comparisons = []
    for text in conditions:
        equal = equalities([text])
        if equal:
            one, two = _side(equal[0][0], left), _side(equal[0][1], right)
            one, two = one or Column(), two or Column()
            right_values = min(two.distinct or 1.0, max(1.0, right.rows))
            found_pairs = _matching(one, left, two, right, sifted, known.keys)
            if found_pairs is not None:
                domains.append(max(1.0, left.rows * right.rows / max(found_pairs, 1e-9)))
            else:
                domains.append(_domain(one, two) if sifted is None else right_values)
            sides.append((one, two))
        elif (found := compared(text)) is not None:
            one, two = source(found.left, left.columns), source(found.right, right.columns)
            comparisons.append(
                Compared(*found[:3], one.range if one else None, two.range if two else None)
            )
    pairs = left.rows * right.rows
    if any(column.distinct is not None for pair in sides for column in pair):
        values = _values_of_all(domains, sides, known.judge)
        for side, place in ((left, 0), (right, 1)):
            if side.unique and side.unique <= {pair[place].name for pair in sides}:
                values = max(values, side.rows)
        if any(not column.text for pair in sides for column in pair):
            # Keys that were made on the way are known badly: few rows have many partners.
            return min(pairs / values, MANY * max(left.rows, right.rows)), UNKNOWN
        return pairs / values, BY_VALUES
    if not sides and comparisons and (share := matching_share(comparisons)) is not None:
        return pairs * share, BY_COMPARISON
    corrected = pairs if expected is None else expected * left.correction * right.correction
    if sides:
        # Equal values of unknown frequency: a key on one side at least.
        return min(corrected, max(left.rows, right.rows)), UNKNOWN
    return corrected, UNKNOWN


def _matching(
    one: Column, left: Stream, two: Column, right: Stream, sifted: int | None, keys: Keys
) -> float | None:
    """Pairs with equal keys, where more is known than numbers of values."""
    share = 1.0 if sifted is None else one.sifted.get(sifted)
    if not share:
        return None
    return keys.joined(one, left.rows / share, two, right.rows)


def _domain(one: Column, two: Column) -> float:
    """Values among which both sides choose."""
    return max(1.0, *(c.domain or c.distinct or 1.0 for c in (one, two)))


def _values_of_all(
    domains: Sequence[float], sides: Sequence[tuple[Column, Column]], judge: Any
) -> float:
    """Values of several keys together; further keys mostly depend on the first."""
    if len(domains) > 1 and judge is not None:
        combined = []
        for place in (0, 1):
            columns = [pair[place] for pair in sides]
            tables = {column.table for column in columns}
            if len(tables) == 1 and all(column.text for column in columns):
                found = judge.distinct(tables.pop(), [column.text for column in columns])
                if found is not None:
                    combined.append(found)
        if combined:
            return max(1.0, float(min(max(combined), math.prod(domains))))
    values = 1.0
    for power, domain in enumerate(sorted(domains, reverse=True)):
        values *= float(domain**FURTHER_KEYS**power)
    return max(1.0, values)

"""How many pairs of rows a join by comparison gives: `a.x < b.x`, ranges that overlap, `<>`.

DuckDB takes every such condition for a small share of the pairs, whatever the values are. With one
`<` it is mostly about half of them, and the join gives far more rows than it reads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .filters import Range

# Whether it is a half or a third does not matter beside what DuckDB takes it for.
HALF = 0.5
# Values of the one side at which the other is looked up.
STEPS = 16
_COMPARISON = re.compile(r"(.+?) (<=|>=|<|>|!=|IS DISTINCT FROM) (.+)", re.DOTALL)
_LESS, _MORE = ("<", "<="), (">", ">=")


class Compared(NamedTuple):
    """A condition of a join: its sides as DuckDB writes them, and their ranges if known."""

    left: str
    sign: str
    right: str
    left_range: Range | None = None
    right_range: Range | None = None


def compared(text: str) -> Compared | None:
    """A condition other than equality; None if it is none.

    >>> compared("x <= (y + 1)")[:3]
    ('x', '<=', '(y + 1)')
    >>> compared("x = y") is None
    True
    """
    found = _COMPARISON.fullmatch(text)
    return None if found is None else Compared(found[1], found[2], found[3])


def matching_share(conditions: Sequence[Compared]) -> float | None:
    """The share of all pairs for which conditions hold; None where they bound a band.

    One `<` and one `>` on the same axis (`a.start < b.end AND a.end > b.start`, BETWEEN) are two
    sides of a band of unknown width.

    >>> matching_share([Compared("x", "<", "y", (0.0, 1.0), (0.0, 1.0))])
    0.5
    >>> matching_share([Compared("x", "<", "y", (0.0, 1.0), (5.0, 6.0))])
    1.0
    >>> matching_share([Compared("x", "<", "y"), Compared("x", ">", "z")]) is None
    True
    """
    less = [one for one in conditions if one.sign in _LESS]
    more = [one for one in conditions if one.sign in _MORE]
    if any(_one_axis(one, other) for one in less for other in more):
        return None
    share = 1.0
    for one in less + more:
        share *= _share(one)
    return share


def _one_axis(one: Compared, other: Compared) -> bool:
    """Whether two conditions speak of one axis: start and end have about the same range."""
    return _alike(one.left, one.left_range, other.left, other.left_range) and _alike(
        one.right, one.right_range, other.right, other.right_range
    )


def _alike(one: str, one_range: Range | None, other: str, other_range: Range | None) -> bool:
    if one == other or one_range is None or other_range is None:
        return True
    common = min(one_range[1], other_range[1]) - max(one_range[0], other_range[0])
    whole = max(one_range[1], other_range[1]) - min(one_range[0], other_range[0])
    return common >= HALF * whole


def _share(one: Compared) -> float:
    """How often the left side is less (or more) than the right, both evenly spread."""
    if one.left_range is None or one.right_range is None:
        return HALF
    low, high = one.left_range
    start, width = one.right_range[0], one.right_range[1] - one.right_range[0]
    below = 0.0
    for step in range(STEPS):
        value = start + width * (step + 0.5) / STEPS
        below += min(1.0, max(0.0, (value - low) / (high - low))) if high > low else value > low
    share = below / STEPS
    return share if one.sign in _LESS else 1.0 - share

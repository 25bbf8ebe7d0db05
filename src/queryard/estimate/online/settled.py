"""Which rows are surely in an answer, or surely not, although their numbers are estimates."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from .intervals import Estimate


def holds(difference: Estimate, side: Literal["above", "below"]) -> bool | None:
    """Whether a difference lies above (or below) 0; None if the interval does not tell.

    >>> holds(Estimate(5.0, 4.0, 6.0), "above"), holds(Estimate(5.0, -1.0, 11.0), "above")
    (True, None)
    """
    if difference.low is None or difference.high is None:
        return None
    if difference.low > 0:
        return side == "above"
    if difference.high < 0:
        return side == "below"
    return None


def all_hold(conditions: Iterable[bool | None]) -> bool | None:
    """Whether all conditions hold: one that does not is enough to know.

    >>> all_hold([True, None]), all_hold([None, False]), all_hold([])
    (None, False, True)
    """
    found = list(conditions)
    if any(each is False for each in found):
        return False
    return True if all(each is True for each in found) else None


class Ranked(NamedTuple):
    """A row to be ranked: its number, and whether it is among the rows that are ranked."""

    number: Estimate
    kept: bool | None = True


def in_top(
    rows: Sequence[Ranked], limit: int | None, offset: int = 0, descending: bool = True
) -> list[bool | None]:
    """Whether each row is surely among those that LIMIT and OFFSET choose, or surely not.

    >>> spans = (9.0, 8.0, 10.0), (7.0, 5.5, 8.5), (1.0, 0.0, 2.0)
    >>> in_top([Ranked(Estimate(*span)) for span in spans], 1)
    [None, None, False]
    >>> in_top([Ranked(Estimate(*span)) for span in spans], 2)
    [True, True, False]
    """
    last = math.inf if limit is None else offset + limit
    spans = [_span(row.number, descending) for row in rows]
    # The upper ends of rows that may be ranked, the lower ends of those that surely are.
    highs = sorted(
        high for (_, high), row in zip(spans, rows, strict=True) if row.kept is not False
    )
    lows = sorted(low for (low, _), row in zip(spans, rows, strict=True) if row.kept is True)
    found: list[bool | None] = []
    for (low, high), row in zip(spans, rows, strict=True):
        if row.kept is False:
            found.append(False)
            continue
        maybe_before = len(highs) - bisect_left(highs, low) - 1
        surely_before = len(lows) - bisect_right(lows, high)
        if surely_before >= last or maybe_before < offset:
            found.append(False)
        elif row.kept is True and maybe_before < last and surely_before >= offset:
            found.append(True)
        else:
            found.append(None)
    return found


def _span(number: Estimate, descending: bool) -> tuple[float, float]:
    """The interval of a row, larger is earlier."""
    if number.low is None or number.high is None:
        return -math.inf, math.inf
    return (number.low, number.high) if descending else (-number.high, -number.low)

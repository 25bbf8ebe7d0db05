"""Whether rows of equal values lie together, from the ranges of row groups or from runs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

MOST_OVERLAP = 0.1
"""The share of neighbouring row groups that may overlap in a clustered column."""

MOST_RUNS = 1.15
"""Runs of equal values for each distinct value; above 1 because the latter are an estimate."""


def clustered_by_ranges(ranges: Sequence[tuple[Any, Any]]) -> bool | None:
    """From the least and the greatest value of each row group; one group tells nothing.

    >>> clustered_by_ranges([(1, 4), (4, 9), (9, 12)]), clustered_by_ranges([(1, 9), (2, 8)])
    (True, False)
    """
    if len(ranges) < 2:
        return None
    try:
        ordered = sorted(ranges)
        overlaps = sum(bool(b[0] < a[1]) for a, b in itertools.pairwise(ordered))
    except TypeError:  # values of types that do not compare
        return None
    return overlaps <= MOST_OVERLAP * (len(ordered) - 1)


def clustered_by_runs(runs: float, distinct: float) -> bool | None:
    """From the number of runs of equal values: as many as values if each lies in one place.

    >>> clustered_by_runs(25, 25), clustered_by_runs(900, 25)
    (True, False)
    """
    return runs <= MOST_RUNS * distinct + 1 if distinct else None

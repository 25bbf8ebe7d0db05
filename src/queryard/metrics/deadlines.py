"""Deadlines: how many were missed, and by how much."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .rows import QueryRow


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The queries with a deadline; met, missed, open and withdrawn add up to `queries`.

    `squared_violation_s2` is POSUM's V_D, the mean of max(0, end - deadline)² over those that
    met or missed theirs.
    """

    queries: int
    met: int
    missed: int
    open: int
    withdrawn: int
    squared_violation_s2: float | None


def deadlines(rows: Iterable[QueryRow], now_s: float) -> Deadlines:
    """Judge every deadline as of `now_s`, the end of the run.

    A failed query missed its deadline whenever it failed. An unfinished one has missed it once
    the deadline has passed, and is late by what has gone by since; until then it is open. One
    that was cancelled before its deadline is withdrawn and neither met nor missed.
    """
    met = missed = undecided = withdrawn = 0
    squares: list[float] = []
    for row in rows:
        deadline_s = row.query.deadline_s
        if deadline_s is None:
            continue
        late_s = max(0.0, (now_s if row.end_s is None else row.end_s) - deadline_s)
        if not late_s and row.outcome == "cancelled":
            withdrawn += 1
            continue
        if not late_s and row.outcome == "unfinished":
            undecided += 1
            continue
        squares.append(late_s**2)
        if late_s or row.outcome == "failed":
            missed += 1
        else:
            met += 1
    return Deadlines(
        queries=met + missed + undecided + withdrawn,
        met=met,
        missed=missed,
        open=undecided,
        withdrawn=withdrawn,
        squared_violation_s2=math.fsum(squares) / len(squares) if squares else None,
    )

"""How long queries take: response (ART), wait and slowdown.

Only queries that gave a result have a response. `Counts` says how many did not, because a policy
that starves its long queries would otherwise look fast.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .rows import QueryRow, RunRows

MIN_E_S = 1.0


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the submitted queries; the four outcomes add up to `submitted`."""

    submitted: int
    finished: int
    failed: int
    cancelled: int
    unfinished: int


@dataclass(frozen=True, slots=True)
class Spread:
    """Where a set of numbers lies; `count` of them, and None for all else if there are none."""

    count: int
    mean: float | None = None
    median: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` of the ordered numbers lie, linear between neighbours.

    >>> quantile([1.0, 2.0, 4.0], 0.75)
    3.0
    """
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def spread(values: Iterable[float | None]) -> Spread:
    """The spread of the numbers that are there."""
    ordered = sorted(value for value in values if value is not None)
    if not ordered:
        return Spread(0)
    return Spread(
        count=len(ordered),
        mean=mean(ordered),
        median=quantile(ordered, 0.5),
        p95=quantile(ordered, 0.95),
        p99=quantile(ordered, 0.99),
        max=ordered[-1],
    )


def counts(rows: Iterable[QueryRow]) -> Counts:
    found = Counter(row.outcome for row in rows)
    return Counts(
        submitted=found.total(),
        finished=found["finished"],
        failed=found["failed"],
        cancelled=found["cancelled"],
        unfinished=found["unfinished"],
    )


def throughput_per_h(run: RunRows) -> float | None:
    """Finished queries per hour of the makespan."""
    if not run.makespan_s:
        return None
    finished = sum(row.outcome == "finished" for row in run.queries.values())
    return finished / run.makespan_s * 3600


def slowdowns(run: RunRows, alone_s: Mapping[str, float]) -> dict[str, float]:
    """Response over the time the query takes alone on the idle cluster.

    A query without a response, or without a time alone above 0, has none.
    """
    found = {}
    for row in run.queries.values():
        response_s = row.response_s
        alone = alone_s.get(row.query.id, 0.0)
        if response_s is not None and alone > 0:
            found[row.query.id] = response_s / alone
    return found


def bounded_slowdowns(run: RunRows, min_e_s: float = MIN_E_S) -> dict[str, float]:
    """POSUM's r / max(e, MinE), with e the *sum* of the query's task seconds.

    As tasks run side by side it is usually far below 1. MinE keeps a query of almost no work
    from dominating the mean.
    """
    if not min_e_s > 0:
        raise ValueError(f"min_e_s must be above 0, got {min_e_s!r}")
    return {
        row.query.id: row.response_s / max(row.task_s, min_e_s)
        for row in run.queries.values()
        if row.response_s is not None
    }


@dataclass(frozen=True, slots=True)
class BinRow:
    """The queries of one size bin."""

    bin: str
    counts: Counts
    response_s: Spread
    slowdown: Spread
    bounded_slowdown: Spread


def by_size_bin(
    run: RunRows,
    size_bins: Mapping[str, str],
    slowdown: Mapping[str, float],
    bounded: Mapping[str, float],
) -> tuple[BinRow, ...]:
    """One row per bin, in the order in which `size_bins` first names them; "" for all others."""
    members: dict[str, list[QueryRow]] = {name: [] for name in size_bins.values()}
    for row in run.queries.values():
        members.setdefault(size_bins.get(row.query.id, ""), []).append(row)
    return tuple(
        BinRow(
            bin=name,
            counts=counts(rows),
            response_s=spread(row.response_s for row in rows),
            slowdown=spread(slowdown.get(row.query.id) for row in rows),
            bounded_slowdown=spread(bounded.get(row.query.id) for row in rows),
        )
        for name, rows in members.items()
        if rows
    )

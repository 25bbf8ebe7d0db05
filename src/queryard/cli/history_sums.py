"""Queries of a history, summed up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from queryard.history import QueryRecord
from queryard.metrics.response import spread


@dataclass(frozen=True, slots=True)
class Sum:
    """What the queries of a tenant or of a template have in common.

    `off_by` is the median factor between the work that was predicted and the work it took,
    `work_share` their part of all work.
    """

    name: str
    queries: int
    unanswered: int
    mean_response_s: float | None
    p95_response_s: float | None
    work_s: float
    work_share: float | None
    off_by: float | None


def summed(queries: Iterable[QueryRecord], by: str) -> list[Sum]:
    """One row a tenant or a template, that with the most work first."""
    groups: dict[str, list[QueryRecord]] = {}
    for query in queries:
        groups.setdefault(getattr(query, by), []).append(query)
    total_s = sum(_work_s(group) for group in groups.values())
    sums = [_sum(name, group, total_s) for name, group in groups.items()]
    return sorted(sums, key=lambda found: (-found.work_s, found.name))


def off_by(query: QueryRecord) -> float | None:
    """The factor between predicted and actual work, 1 at best.

    None for a query that shared the run of another: its own work is not known.
    """
    predicted_s, work_s = query.predicted_work_s, query.work_s
    if query.outcome != "finished" or query.twin_of or not predicted_s or not work_s:
        return None
    return max(predicted_s / work_s, work_s / predicted_s)


def _work_s(group: Sequence[QueryRecord]) -> float:
    return sum(query.work_s or 0.0 for query in group)


def _sum(name: str, group: Sequence[QueryRecord], total_s: float) -> Sum:
    response_s = spread(query.response_s for query in group)
    factors = [factor for query in group if (factor := off_by(query)) is not None]
    work_s = _work_s(group)
    return Sum(
        name=name,
        queries=len(group),
        unanswered=sum(query.outcome != "finished" for query in group),
        mean_response_s=response_s.mean,
        p95_response_s=response_s.p95,
        work_s=work_s,
        work_share=work_s / total_s if total_s else None,
        off_by=median(factors) if factors else None,
    )

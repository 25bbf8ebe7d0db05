"""The numbers by which runs are compared, of policies and of the ideal references alike."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from queryard.metrics import RunRows, Summary
from queryard.metrics.fairness import jain
from queryard.metrics.response import spread
from queryard.metrics.series import StepSeries
from queryard.workload import Workload

# One level for the table. Which policy is ahead depends on it: `Summary.online` has several.
ERROR_CUT = 0.7
# The name of the reference that is no ideal: what a trace says of its own queries.
RECORDED = "as recorded"


@dataclass(frozen=True, slots=True)
class Scores:
    """One row of a comparison; None where a number does not exist.

    `mean_error_cut_s` is the mean time until the error of an online query is `ERROR_CUT` below
    that of its first answer. `scan_bytes_saved` is what tables were read less by sharing scans.
    Nodes are counted where they came or went.
    """

    name: str
    mean_response_s: float | None
    p95_response_s: float | None
    mean_slowdown: float | None
    max_slowdown: float | None
    deadlines_missed: int | None
    deadlines: int
    makespan_s: float | None
    utilisation: float | None
    fairness: float | None
    unfinished: int = 0
    queries: int = 0
    online: int = 0
    mean_error_cut_s: float | None = None
    scan_bytes_saved: float = 0.0
    mean_nodes: float | None = None
    most_nodes: int | None = None
    node_hours: float | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Nodes:
    """How many nodes there were, from the first submission to the last end."""

    least: float
    mean: float
    most: float


def nodes_of(run: RunRows) -> Nodes:
    joined = [(row.joined_s, 1) for row in run.nodes]
    lost = [(row.lost_s, -1) for row in run.nodes if row.lost_s is not None]
    count = StepSeries.of_changes([*joined, *lost])
    start_s, end_s = run.first_submit_s or 0.0, run.closed_s
    later = [count.at(time_s) for time_s in count.times_s if start_s < time_s < end_s]
    seen = [count.at(start_s), *later]
    return Nodes(min(seen), count.mean(start_s, end_s), max(seen))


def scores_of_run(name: str, summary: Summary) -> Scores:
    """What a simulated policy reached. Fairness is Jain's index over the queries' slowdowns."""
    counts, read = summary.counts, summary.scanned
    cuts = [step for step in summary.online if step.reduction == ERROR_CUT]
    return Scores(
        name=name,
        mean_response_s=summary.response_s.mean,
        p95_response_s=summary.response_s.p95,
        mean_slowdown=summary.slowdown.mean,
        max_slowdown=summary.slowdown.max,
        deadlines_missed=summary.deadlines.missed if summary.deadlines.queries else None,
        deadlines=summary.deadlines.queries,
        makespan_s=summary.makespan_s,
        utilisation=summary.utilisation.all,
        fairness=summary.fairness.queries,
        unfinished=counts.failed + counts.unfinished,
        queries=counts.submitted,
        online=cuts[0].queries if cuts else 0,
        mean_error_cut_s=cuts[0].mean_s if cuts else None,
        scan_bytes_saved=max(0.0, read.alone_bytes - read.bytes),
    )


def scores_of_reference(
    name: str,
    responses_s: Mapping[str, float],
    workload: Workload,
    alone_s: Mapping[str, float],
    slots: float,
) -> Scores:
    """What an ideal would reach on the same arrivals, from the response of every query."""
    answered = [a for a in workload.arrivals if a.query.id in responses_s]
    slowdowns = [responses_s[q] / alone_s[q] for q in responses_s if alone_s.get(q)]
    response_s, slowdown = spread(responses_s.values()), spread(slowdowns)
    ends_s = {a.query.id: a.query.submit_s + responses_s[a.query.id] for a in answered}
    due_s = {a.query.id: a.query.deadline_s for a in answered if a.query.deadline_s is not None}
    first_s = min((a.query.submit_s for a in answered), default=0.0)
    makespan_s = max(ends_s.values()) - first_s if ends_s else None
    work_s = sum(arrival.work_s for arrival in answered)
    return Scores(
        name=name,
        mean_response_s=response_s.mean,
        p95_response_s=response_s.p95,
        mean_slowdown=slowdown.mean,
        max_slowdown=slowdown.max,
        deadlines_missed=sum(ends_s[q] > due for q, due in due_s.items()) if due_s else None,
        deadlines=len(due_s),
        makespan_s=makespan_s,
        utilisation=work_s / (slots * makespan_s) if makespan_s else None,
        fairness=jain(slowdowns),
        queries=len(answered),
        online=sum(arrival.query.kind == "online" for arrival in answered),
    )


def medians(rows: Sequence[Scores]) -> Scores:
    """The median of every number over several seeds; what does not exist is left out of it."""
    found: dict[str, Any] = {}
    for field in fields(Scores):
        values = [getattr(row, field.name) for row in rows]
        known = [value for value in values if value is not None]
        if field.name != "name":
            found[field.name] = _median(known) if known else None
    return replace(rows[0], **found)


def _median(values: Sequence[float]) -> float:
    """Of counts a count, where there is one in the middle.

    >>> _median([46, 46]), _median([3, 4]), _median([1.0, 2.0])
    (46, 3.5, 1.5)
    """
    middle = statistics.median(values)
    counted = all(isinstance(value, int) for value in values) and middle == int(middle)
    return int(middle) if counted else middle

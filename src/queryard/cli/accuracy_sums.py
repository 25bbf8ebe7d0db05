"""Predictions of a history beside what came, summed up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

from queryard.estimate.accuracy import accuracy
from queryard.estimate.work import SPREADS, By, Prediction
from queryard.history import HistoryReader, QueryRecord

PERIODS = 8
# A rank correlation of fewer says nothing.
RANKED = 5


class Case(NamedTuple):
    """A prediction and what came of it; `spread` is None where no interval was recorded."""

    predicted_s: float
    actual_s: float
    spread: float | None = None

    @property
    def is_within(self) -> bool | None:
        """Whether what came is in the interval of 90 %; None where there was none."""
        if self.spread is None:
            return None
        low, high = Prediction(self.predicted_s, None, "plan", self.spread).interval()
        return low <= self.actual_s <= high


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How good some predictions were.

    Factors are those between predicted and actual work, 1 at best; `bias` is the median of
    predicted over actual. `within` is the share in its interval of 90 %.
    """

    name: str
    predictions: int
    work_s: float
    median: float
    ninth_decile: float
    worst: float
    bias: float
    within: float | None
    correlation: float | None


def judged(name: str, cases: Sequence[Case]) -> Accuracy:
    """Some predictions, of which there is at least one, summed up."""
    found = accuracy([case.predicted_s for case in cases], [case.actual_s for case in cases])
    known = [case.is_within for case in cases if case.is_within is not None]
    return Accuracy(
        name,
        len(cases),
        sum(case.actual_s for case in cases),
        found.median,
        found.ninth_decile,
        found.worst,
        found.bias,
        sum(known) / len(known) if known else None,
        found.correlation if len(cases) >= RANKED and not math.isnan(found.correlation) else None,
    )


# --- native queries ------------------------------------------------------------------------------


def countable(queries: Iterable[QueryRecord], least_s: float) -> list[QueryRecord]:
    """Native queries that ran on their own to their end and took at least so much work."""
    return [
        query
        for query in queries
        if query.outcome == "finished"
        and query.plan != "staged"
        and not query.twin_of
        and query.predicted_work_s
        and (query.work_s or 0.0) >= max(least_s, 1e-6)
        and query.sql.lstrip()[:7].lower() != "explain"
    ]


def last_case(query: QueryRecord) -> Case:
    """The last prediction of a query; of an older history, the one on submission."""
    assert query.work_s is not None
    if query.foreseen_s is None:
        return first_case(query)
    return Case(query.foreseen_s, query.work_s, query.foreseen_spread)


def first_case(query: QueryRecord) -> Case:
    """What was predicted when it was submitted."""
    assert query.work_s is not None
    assert query.predicted_work_s is not None
    return Case(query.predicted_work_s, query.work_s)


def by_of(query: QueryRecord) -> str:
    """From what the last prediction was made."""
    return query.foreseen_by or query.predicted_by


def overall(queries: Sequence[QueryRecord]) -> list[Accuracy]:
    """All, as first and as last predicted; then the last ones by what they were made from."""
    found = [
        judged("at first", [first_case(query) for query in queries]),
        judged("at last", [last_case(query) for query in queries]),
    ]
    for by in get_args(By):
        cases = [last_case(query) for query in queries if by_of(query) == by]
        if cases:
            found.append(judged(f"  by {by}", cases))
    return found


def by_part(queries: Sequence[QueryRecord]) -> list[Accuracy]:
    """By what a plan mostly does: single operators are not recorded."""
    groups: dict[str, list[Case]] = {}
    for query in queries:
        if query.foreseen_part:
            groups.setdefault(f"mostly {query.foreseen_part}", []).append(last_case(query))
    return _largest_first(groups)


def by_template(queries: Sequence[QueryRecord]) -> list[Accuracy]:
    """The worst first: by the factor of their median, weighted by nothing."""
    groups: dict[str, list[Case]] = {}
    for query in queries:
        groups.setdefault(query.template, []).append(last_case(query))
    found = [judged(name, cases) for name, cases in groups.items()]
    return sorted(found, key=lambda one: (-one.median, one.name))


@dataclass(frozen=True, slots=True)
class Period:
    """Queries that were asked one after another."""

    since_at: float
    until_at: float
    accuracy: Accuracy


def over_time(queries: Sequence[QueryRecord]) -> list[Period]:
    """At most so many periods with as many queries each, the oldest first."""
    count = min(PERIODS, max(1, len(queries) // 5))
    size = math.ceil(len(queries) / count) if queries else 1
    found = []
    for start in range(0, len(queries), size):
        part = queries[start : start + size]
        cases = [last_case(query) for query in part]
        found.append(Period(part[0].asked_at, part[-1].asked_at, judged("", cases)))
    return found


# --- staged jobs ---------------------------------------------------------------------------------


def by_operator(reader: HistoryReader, sessions: Iterable[str], least_s: float) -> list[Accuracy]:
    """Jobs of staged queries by class, as estimated on submission beside what tasks took."""
    groups: dict[str, list[Case]] = {}
    for session in sessions:
        jobs = [row for row in reader.jobs(session) if row["maps"] and row["outcome"] == "finished"]
        if not jobs:
            continue
        estimates: dict[str, Mapping[str, Any]] = {}
        for row in reader.estimates(session):
            estimates.setdefault(row["job"], row)
        took: dict[str, float] = {}
        for row in reader.tasks(session):
            if row["outcome"] == "finished":
                seconds = row["ended_s"] - row["started_s"]
                took[row["job"]] = took.get(row["job"], 0.0) + seconds
        for job in jobs:
            expected_s = _expected_s(job, estimates.get(job["job"]))
            actual_s = took.get(job["job"], 0.0)
            if expected_s and actual_s >= max(least_s, 1e-6):
                case = Case(expected_s, actual_s, SPREADS["bytes"])
                groups.setdefault(f"staged {job['operator']}", []).append(case)
    return _largest_first(groups)


def _expected_s(job: Mapping[str, Any], estimate: Mapping[str, Any] | None) -> float | None:
    if estimate is None or estimate["map_s"] is None:
        return None
    reduce_s = estimate["reduce_s"] or 0.0
    return float(job["maps"] * estimate["map_s"] + job["reduces"] * reduce_s)


def _largest_first(groups: Mapping[str, Sequence[Case]]) -> list[Accuracy]:
    found = [judged(name, cases) for name, cases in groups.items()]
    return sorted(found, key=lambda one: (-one.work_s, one.name))

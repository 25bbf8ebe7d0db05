"""Queries, reports and estimates as the server tells them, made into the classes of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from queryard.estimate.expected import Expected
from queryard.history.rows import ForecastRow, QueryRecord
from queryard.live.facts import QueryView, Timing
from queryard.live.why import WaitReport
from queryard.results.estimate import Estimate
from queryard.results.explanation import ExplainedJob, Explanation
from queryard.sim.forecast import Forecast

Told = Mapping[str, Any]


def timing_of(state: Told) -> Timing:
    """When a query was submitted, began and ended, on the server's clock."""
    return Timing(**state["timing"])


def view_of(state: Told) -> QueryView:
    """An active query."""
    timing = state["timing"]
    return QueryView(
        id=state["id"],
        sql=state["sql"],
        tenant=state["tenant"],
        priority=state["priority"],
        status=state["state"],
        slots=state["slots"],
        progress=state["progress"],
        submitted_s=timing["submitted_s"],
        started_s=timing["started_s"],
        deadline_s=state["deadline_s"],
        predicted_work_s=timing["predicted_work_s"],
        work_s=timing["work_s"],
    )


def report_of(state: Told) -> WaitReport:
    """What holds a query, and when it will end."""
    told = dict(state["why"])
    told.pop("text")
    told.pop("ahead_count")
    told["forecast"] = None if told["forecast"] is None else Forecast(**told["forecast"])
    for name in ("ahead", "reasons"):
        told[name] = tuple(told[name])
    return WaitReport(**told)


def record_of(told: Told) -> QueryRecord:
    """A query of the history."""
    found = dict(told)
    for name in ("first_forecast", "last_forecast"):
        found[name] = None if found[name] is None else ForecastRow(**found[name])
    return QueryRecord(**found)


def estimate_of(told: Told) -> Estimate:
    """What is expected of a statement."""
    found = {name: value for name, value in told.items() if name != "text"}
    for name in ("rows", "work_s", "memory_bytes", "alone_s"):
        found[name] = _expected(found[name])
    return Estimate(**{**found, "jobs": _jobs(found["jobs"]), "reasons": tuple(found["reasons"])})


def explanation_of(told: Told) -> Explanation:
    """How a statement is run."""
    found = {name: value for name, value in told.items() if name != "text"}
    if found["estimate"] is not None:
        above = {name: told[name] for name in ("sql", "plan", "jobs", "reasons")}
        found["estimate"] = estimate_of(above | found["estimate"])
    for name in ("reasons", "notes"):
        found[name] = tuple(found[name])
    found["jobs"] = _jobs(found["jobs"])
    return Explanation(**found)


def _jobs(told: Any) -> tuple[ExplainedJob, ...]:
    return tuple(map(_job, told))


def _job(told: Told) -> ExplainedJob:
    found = dict(told)
    for name in ("inputs", "tables"):
        found[name] = tuple(found[name])
    for name in ("rows", "bytes", "seconds", "memory"):
        found[f"{name}_expected"] = _expected(found[f"{name}_expected"])
    return ExplainedJob(**found)


def _expected(told: Told | None) -> Expected | None:
    return None if told is None else Expected(**told)

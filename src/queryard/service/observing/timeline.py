"""The document of one query over time, active or past, from the history and its own facts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from queryard.history import Overviews, QueryRecord
from queryard.live.ticket import Ticket
from queryard.results.online import CoursePoint

from ..problems import problem_of
from .segments import Times, held_s, plan_text, segments, waits

# Of leases and of tasks, and of queries that rode with it.
MOST_SEGMENTS = 2_000
MOST_COMPANY = 200
# How long before a query others may have been asked for that share its execution.
TWINS_S = 3600.0


class Told(NamedTuple):
    """What is known of a query itself; times are on the clock of its session."""

    id: str
    tenant: str
    sql: str
    status: str
    plan: str
    submitted_at: float
    submitted_s: float
    started_s: float | None
    ended_s: float | None
    deadline_s: float | None
    error: str | None
    twin_of: str
    predicted: dict[str, Any]
    actual: dict[str, Any]


def told_of(record: QueryRecord) -> Told:
    """A query of the history."""
    first = record.first_forecast
    zero_s = record.asked_s
    return Told(
        id=record.query,
        tenant=record.tenant,
        sql=record.sql,
        status={"open": "waiting"}.get(record.outcome, record.outcome),
        plan=record.plan,
        submitted_at=record.asked_at,
        submitted_s=zero_s,
        started_s=record.started_s,
        ended_s=record.ended_s,
        deadline_s=record.deadline_s,
        error=record.error or None,
        twin_of=record.twin_of,
        predicted={
            "work_s": record.predicted_work_s,
            "by": record.predicted_by or None,
            "last_work_s": record.foreseen_s,
            "last_by": record.foreseen_by or None,
            "memory_bytes": record.predicted_memory_bytes,
            "start_s": None if first is None or first.start_s is None else first.start_s - zero_s,
            "end_s": None if first is None or first.end_s is None else first.end_s - zero_s,
        },
        actual={
            "work_s": record.work_s,
            "held_s": record.held_s,
            "memory_bytes": record.peak_memory_bytes,
            "start_s": None if record.started_s is None else record.started_s - zero_s,
            "end_s": None if record.ended_s is None else record.ended_s - zero_s,
            "rows": record.rows,
        },
    )


def told_now(ticket: Ticket, submitted_at: float) -> Told:
    """A query that is active, or has just ended."""
    facts, request, timing = ticket.facts, ticket.request, ticket.timing()
    first = ticket.first_forecast
    zero_s = facts.submitted_s
    forecast = None if first is None else first.forecast
    start_s = None if forecast is None else forecast.start_s
    end_s = None if forecast is None else forecast.end_s
    return Told(
        id=ticket.id,
        tenant=request.tenant,
        sql=request.sql,
        status=ticket.status,
        plan=request.plan,
        submitted_at=submitted_at,
        submitted_s=zero_s,
        started_s=facts.started_s,
        ended_s=facts.ended_s,
        deadline_s=request.deadline_s,
        error=None if facts.error is None else problem_of(facts.error).detail,
        twin_of=facts.shares_with,
        predicted={
            "work_s": timing.predicted_work_s,
            "by": timing.predicted_by or None,
            "last_work_s": facts.expected_s,
            "last_by": timing.predicted_by or None,
            "memory_bytes": facts.prediction.memory_bytes,
            "start_s": None if start_s is None else start_s - zero_s,
            "end_s": None if end_s is None else end_s - zero_s,
        },
        actual={
            "work_s": timing.work_s,
            "held_s": timing.held_s,
            "memory_bytes": facts.peak_memory_bytes,
            "start_s": None if facts.started_s is None else facts.started_s - zero_s,
            "end_s": None if facts.ended_s is None else facts.ended_s - zero_s,
            "rows": ticket.output.rows,
        },
    )


class Seen(NamedTuple):
    """What is known beside the history: which tenants are seen, how errors fell, what held it."""

    may_see: Callable[[str], bool]
    course: Sequence[CoursePoint] = ()
    holds: Mapping[str, float] = {}


def timeline_document(
    told: Told, reader: Overviews | None, now_s: float | None, beside: Seen
) -> dict[str, Any]:
    """All that happened to a query.

    While it has no end, `now_s` counts for it; without that, too, the last that is known of it.
    """
    kept = _Kept(reader, told)
    until_s = kept.last_s if now_s is None else now_s
    times = Times(
        told.submitted_s, told.started_s, until_s if told.ended_s is None else told.ended_s
    )
    found = segments(times, kept.leases, kept.tasks, kept.riders)
    at = told.submitted_at - told.submitted_s
    seen = [query for query, tenant in kept.company if beside.may_see(tenant)]
    return {
        "id": told.id,
        "tenant": told.tenant,
        "sql": told.sql,
        "status": "running" if told.status == "waiting" and kept.began else told.status,
        "submitted_at": round(told.submitted_at, 3),
        "started_at": _at(at, told.started_s),
        "ended_at": _at(at, told.ended_s),
        "deadline_at": _at(at, told.deadline_s),
        "error": told.error,
        "segments": [
            {**each._asdict(), "from_s": round(each.from_s, 4), "to_s": round(each.to_s, 4)}
            for each in found
        ],
        "is_cut": kept.is_cut,
        "held_s": round(held_s(found), 4),
        "waits": waits(times, kept.jobs, found, beside.holds),
        "rode_with": seen,
        "rode_with_others": len(kept.company) - len(seen),
        "predicted": told.predicted,
        "actual": told.actual,
        "plan": plan_text(told.plan, kept.jobs),
        "answers": [point._asdict() for point in beside.course],
    }


class _Kept:
    """What the history has of the slots of a query; nothing without a history."""

    def __init__(self, reader: Overviews | None, told: Told) -> None:
        self.jobs, self.leases, self.tasks = [], [], []
        self.riders: Counter[int] = Counter()
        company: dict[str, str] = {}
        if reader is not None:
            session = told.id.rpartition("-")[0]
            self.jobs = reader.jobs_of(session, told.id)
            self.leases = reader.leases_of(session, told.id, MOST_SEGMENTS)
            self.tasks = reader.tasks_of(session, told.id, MOST_SEGMENTS)
            for row in reader.rides_of(session, told.id, MOST_SEGMENTS) if self.tasks else ():
                self.riders[row["launch"]] += 1
                company[row["query"]] = row["tenant"]
            until_s = math.inf if told.ended_s is None else told.ended_s
            span = told.submitted_s - TWINS_S, until_s
            for row in reader.twins_of(session, told.id, told.twin_of, *span, MOST_COMPANY):
                company[row["query"]] = row["tenant"]
        self.company = list(company.items())[:MOST_COMPANY]
        self.began = bool(self.leases or self.tasks)
        seen = [row["ended_s"] or row["started_s"] for row in (*self.leases, *self.tasks)]
        self.last_s = max(seen, default=told.submitted_s)
        self.is_cut = MOST_SEGMENTS in (len(self.leases), len(self.tasks))


def _at(zero_at: float, time_s: float | None) -> float | None:
    return None if time_s is None else round(zero_at + time_s, 3)

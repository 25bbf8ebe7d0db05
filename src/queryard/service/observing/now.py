"""The document of the present: what runs, what waits and why, and what has just ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from queryard.live.choosing.state import PolicyState
from queryard.live.estimates.forecasts import Forecasts
from queryard.live.facts import QueryFacts
from queryard.live.overview import Glance, Overview

from .clock import WallClock
from .ended import SQL_CHARACTERS, EndedQuery
from .sentences import short_why
from .visibility import Visibility


class Present(NamedTuple):
    """All of one moment; what a token sees of it is a document."""

    overview: Overview
    forecasts: Forecasts
    is_draining: bool
    process_bytes: int
    tenants: tuple[str, ...]

    @property
    def state(self) -> str:
        """Whether queries are taken and started."""
        if self.is_draining:
            return "draining"
        return "open" if self.overview.paused_by is None else "paused"


def policy_document(
    policy: PolicyState, visibility: Visibility, clock: WallClock
) -> dict[str, Any]:
    """The policy in force; what has chosen it and why may name tenants, and is for admins."""
    return {
        "name": policy.name,
        "since_at": clock.at(policy.since_s),
        "by": policy.by if visibility.is_all else None,
        "reason": policy.reason if visibility.is_all else None,
    }


def now_document(
    present: Present,
    ended: Sequence[EndedQuery],
    visibility: Visibility,
    limit: int,
    clock: WallClock,
) -> dict[str, Any]:
    """What a token may see of the present, with up to `limit` waiting queries."""
    overview = present.overview
    over = {each.id for each in ended}  # some of them since the overview was made
    seen = [
        facts
        for facts in overview.facts
        if visibility.may_see(facts.request.tenant) and facts.id not in over
    ]
    running = [overview.glance(facts) for facts in seen if facts.started_s is not None]
    waiting = [facts for facts in seen if facts.started_s is None]
    waiting.sort(key=lambda facts: (overview.turn(facts), facts.submitted_s))
    first = [overview.glance(facts) for facts in waiting[:limit]]
    shown = _Shown(present, clock)
    return {
        "at": clock.at(overview.now_s),
        "now_s": round(overview.now_s, 3),
        "policy": policy_document(overview.policy, visibility, clock),
        "state": present.state,
        "slots": {"total": overview.slots, "busy": overview.busy_slots},
        "memory": {
            "pool_bytes": int(overview.memory_bytes),
            "reserved_bytes": int(overview.reserved_bytes),
            "process_bytes": present.process_bytes,
        },
        "tenants": _tenants(running, waiting, filter(visibility.may_see, present.tenants)),
        "running": [shown.active(each) for each in running],
        "waiting": [shown.active(each) for each in first],
        "more_waiting": max(0, len(waiting) - limit),
        "ended": [shown.ended(each) for each in ended],
    }


def _tenants(
    running: Iterable[Glance], waiting: Iterable[QueryFacts], named: Iterable[str]
) -> list[dict[str, Any]]:
    """How many queries of each tenant wait and run, and the slots they hold."""
    counts: dict[str, list[int]] = {name: [0, 0, 0] for name in named}
    for facts in waiting:
        counts.setdefault(facts.request.tenant, [0, 0, 0])[0] += 1
    for query in running:
        found = counts.setdefault(query.request.tenant, [0, 0, 0])
        found[1] += 1
        found[2] += query.slots
    return [
        {"name": name, "waiting": waiting, "running": running, "slots": slots}
        for name, (waiting, running, slots) in sorted(counts.items())
    ]


class _Shown:
    """Queries of one moment as plain data."""

    def __init__(self, present: Present, clock: WallClock) -> None:
        overview = present.overview
        self._now_s = overview.now_s
        self._began_at = clock.began_at
        self._forecasts = present.forecasts.by_query
        self._free_bytes = max(0.0, overview.memory_bytes - overview.reserved_bytes)
        self._is_paused = overview.paused_by is not None

    def active(self, query: Glance) -> dict[str, Any]:
        request, started_s = query.request, query.started_s
        waited_s = (self._now_s if started_s is None else started_s) - query.submitted_s
        return {
            "id": query.id,
            "sql": request.sql[:SQL_CHARACTERS],
            "tenant": request.tenant,
            "status": "waiting" if started_s is None else "running",
            "slots": query.slots,
            "progress": round(query.progress, 4),
            "submitted_at": self._at(query.submitted_s),
            "started_at": self._at(started_s),
            "ended_at": None,
            "deadline_at": self._at(request.deadline_s),
            "waited_s": round(waited_s, 3),
            "predicted_work_s": _rounded(query.predicted_work_s),
            "work_s": round(query.work_s, 4),
            "eta_s": self._eta_s(query.id),
            "why": short_why(query, self._free_bytes, self._is_paused),
        }

    def ended(self, query: EndedQuery) -> dict[str, Any]:
        timing = query.timing
        until_s = timing.ended_s if timing.started_s is None else timing.started_s
        waited_s = (timing.submitted_s if until_s is None else until_s) - timing.submitted_s
        return {
            "id": query.id,
            "sql": query.sql,
            "tenant": query.tenant,
            "status": query.status,
            "slots": 0,
            "progress": 1.0 if query.status == "finished" else None,
            "submitted_at": self._at(timing.submitted_s),
            "started_at": self._at(timing.started_s),
            "ended_at": self._at(timing.ended_s),
            "deadline_at": self._at(query.deadline_s),
            "waited_s": round(waited_s, 3),
            "predicted_work_s": _rounded(timing.predicted_work_s),
            "work_s": round(timing.work_s, 4),
            "eta_s": None,
            "why": query.why,
        }

    def _at(self, time_s: float | None) -> float | None:
        return None if time_s is None else round(self._began_at + time_s, 3)

    def _eta_s(self, query: str) -> float | None:
        """Seconds to its end by the last forecast; None without one, or if that has passed."""
        found = self._forecasts.get(query)
        if found is None or found.end_s is None or found.end_s < self._now_s:
            return None
        return round(found.end_s - self._now_s, 2)


def _rounded(amount: float | None) -> float | None:
    return None if amount is None else round(amount, 4)

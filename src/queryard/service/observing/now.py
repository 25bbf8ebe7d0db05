"""The document of the present: what runs, what waits and why, and what has just ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from queryard.live.choosing.state import PolicyState
from queryard.live.estimates.forecasts import Forecasts
from queryard.live.expected import NOT_KNOWN, expected, in_order
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


class View(NamedTuple):
    """What is asked for of the present: by what a token sees, with up to `limit` waiting queries.

    With a `tenant`, the lists have queries of that tenant and those below it only.
    """

    visibility: Visibility
    limit: int
    tenant: str | None = None

    @property
    def within(self) -> Visibility | None:
        """Whose queries are listed; None for those of no tenant."""
        return self.visibility if self.tenant is None else self.visibility.narrowed(self.tenant)


class Moment:
    """One present, for all that look at it: what several views have in common is made once."""

    def __init__(self, present: Present, clock: WallClock) -> None:
        overview = present.overview
        self._present = present
        self._clock = clock
        self._made: dict[str, dict[str, Any]] = {}
        self._running, self._waiting = in_order(overview)
        self._shown = _Shown(present, clock, self._running, self._waiting)

    def document(self, ended: Sequence[EndedQuery], view: View) -> dict[str, Any]:
        """What a view shows; `ended` are the queries of its lists that ended last."""
        present, overview, visibility = self._present, self._present.overview, view.visibility
        over = {each.id for each in ended}  # some of them since the overview was made

        def is_seen(facts: QueryFacts) -> bool:
            return visibility.may_see(facts.request.tenant) and facts.id not in over

        running, waiting = (
            list(filter(is_seen, self._running)),
            list(filter(is_seen, self._waiting)),
        )
        tenants = self._tenants(running, waiting, filter(visibility.may_see, present.tenants))
        if view.tenant is not None:
            running, waiting = _of(view.within, running), _of(view.within, waiting)
        return {
            "at": self._clock.at(overview.now_s),
            "now_s": round(overview.now_s, 3),
            "policy": policy_document(overview.policy, visibility, self._clock),
            "state": present.state,
            "slots": {"total": overview.slots, "busy": overview.busy_slots},
            "memory": {
                "pool_bytes": int(overview.memory_bytes),
                "reserved_bytes": int(overview.reserved_bytes),
                "process_bytes": present.process_bytes,
            },
            "tenants": tenants,
            "running": [self._active(facts) for facts in running],
            "waiting": [self._active(facts) for facts in waiting[: view.limit]],
            "more_waiting": max(0, len(waiting) - view.limit),
            "ended": [self._shown.ended(each) for each in ended],
        }

    def _active(self, facts: QueryFacts) -> dict[str, Any]:
        found = self._made.get(facts.id)
        if found is None:
            found = self._shown.active(self._present.overview.glance(facts))
            self._made[facts.id] = found
        return found

    def _tenants(
        self, running: Iterable[QueryFacts], waiting: Iterable[QueryFacts], named: Iterable[str]
    ) -> list[dict[str, Any]]:
        """How many queries of each tenant wait and run, and the slots they hold."""
        counts: dict[str, list[int]] = {name: [0, 0, 0] for name in named}
        for facts in waiting:
            counts.setdefault(facts.request.tenant, [0, 0, 0])[0] += 1
        for facts in running:
            found = counts.setdefault(facts.request.tenant, [0, 0, 0])
            found[1] += 1
            found[2] += self._active(facts)["slots"]
        return [
            {"name": name, "waiting": waiting, "running": running, "slots": slots}
            for name, (waiting, running, slots) in sorted(counts.items())
        ]


def _of(within: Visibility | None, queries: Iterable[QueryFacts]) -> list[QueryFacts]:
    """Those of a tenant and of those below it."""
    if within is None:
        return []
    return [facts for facts in queries if within.may_see(facts.request.tenant)]


class _Shown:
    """Queries of one moment as plain data."""

    def __init__(
        self,
        present: Present,
        clock: WallClock,
        running: list[QueryFacts],
        waiting: list[QueryFacts],
    ) -> None:
        overview = present.overview
        self._now_s = overview.now_s
        self._began_at = clock.began_at
        self._expected = expected(overview, present.forecasts, running, waiting)
        self._free_bytes = max(0.0, overview.memory_bytes - overview.reserved_bytes)
        self._is_paused = overview.paused_by is not None

    def active(self, query: Glance) -> dict[str, Any]:
        request, started_s = query.request, query.started_s
        waited_s = (self._now_s if started_s is None else started_s) - query.submitted_s
        expected = self._expected.get(query.id, NOT_KNOWN)
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
            "starts_in_s": _rounded(expected.start_s, 2),
            "eta_s": _rounded(expected.end_s, 2),
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
            "starts_in_s": None,
            "eta_s": None,
            "why": query.why,
        }

    def _at(self, time_s: float | None) -> float | None:
        return None if time_s is None else round(self._began_at + time_s, 3)


def _rounded(amount: float | None, digits: int = 4) -> float | None:
    return None if amount is None else round(amount, digits)

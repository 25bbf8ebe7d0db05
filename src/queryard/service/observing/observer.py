"""One per server: what it has seen so far, and documents of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from queryard.history import Overviews, QueryRecord
from queryard.results.online import OnlineAnswer

from ..submitted import Submitted
from ..yard import Yard, unknown_query
from .archive import Archive, archive_document, bounds_of, page_of
from .clock import WallClock
from .cluster import backend_name, changes_document, cluster_document
from .courses import Courses
from .ended import EndedQueries, EndedQuery
from .holds import Holds
from .log_ring import Level, LogRing, log_document
from .memory import resident_bytes
from .now import Moment, Present, View, policy_document
from .past import past
from .performance import By, performance_document, queries_of
from .ring import Cell
from .sampling import Sampler
from .series import cells_of, planned, series_document
from .timeline import Seen, timeline_document, told_now, told_of
from .visibility import Visibility

# How often the scheduler is asked at most, however many ask here.
FRESH_S = 0.1
# The share of a core that forecasts may take which pages show.
FORECAST_SHARE = 0.005


class Observer:
    """From any thread; what takes more than a moment says so."""

    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        self.session = yard.session
        self.clock = WallClock(yard.session.now)
        self._ended = EndedQueries(yard.config.redact)
        self._courses = Courses(yard.config.redact)
        self._archive = Archive()
        self._log = LogRing(yard.config.redact)
        # One long read of the history at a time, so that a few pages do not take all cores.
        self._reading = threading.Lock()
        self._holds = Holds(yard.session.host.record_holds)
        self.sampler = Sampler(yard.session, self._holds)
        self._lock = threading.Lock()
        self._moment: Moment | None = None
        self._seen_s = float("-inf")
        yard.watch(self._ended)
        yard.watch(self._courses)
        yard.watch(self._holds)
        yard.every_second(self.sampler.look)
        self._log.attach()

    @property
    def version(self) -> tuple[object, ...]:
        """Another value once something has happened that `now` shows."""
        return self.session.host.looking.steps, self.yard.draining

    def _now(self) -> Moment:
        """What there is now; it asks the scheduler, unless that was done just before."""
        with self._lock:
            now_s = time.monotonic()
            if self._moment is None or now_s - self._seen_s > FRESH_S:
                host = self.session.host
                overview = host.looking.overview()
                present = Present(
                    overview=overview,
                    forecasts=host.looking.recent_forecasts(FORECAST_SHARE),
                    is_draining=self.yard.draining,
                    process_bytes=resident_bytes(),
                    tenants=tuple(tenant.name for tenant in self.session.tenants),
                )
                self._moment = Moment(present, self.clock)
                self._seen_s = now_s
            return self._moment

    def now(self, views: Sequence[View]) -> list[dict[str, Any]]:
        """The present as each view shows it, all at one time. It asks the scheduler."""
        moment = self._now()
        self.yard.watchers.tell()
        return [moment.document(self._last(view), view) for view in views]

    def _last(self, view: View) -> list[EndedQuery]:
        within = view.within
        return [] if within is None else self._ended.last(within)

    def series(
        self, visibility: Visibility, since: float, until: float, points: int
    ) -> dict[str, Any]:
        """Figures over time; what was before this server began comes from the history."""
        stretch = planned(self.sampler, since, until, points)
        before: list[Cell] = []
        began_at = min(until, self.sampler.began_at)
        if since < began_at:
            with past(self.session.host.history_file) as reader:
                if reader is not None:
                    rows = reader.costs_by_step(since, began_at, stretch.step_s)
                    before = cells_of(rows, since, stretch.step_s)
        return series_document(self.sampler, stretch, before, visibility.is_all)

    # --- the cluster and its policy --------------------------------------------------------------

    def cluster(self, visibility: Visibility) -> dict[str, Any]:
        """All nodes, with the queries there that a token may see. It asks the scheduler."""
        host = self.session.host
        view = host.looking.cluster()
        seen = {each.id for each in self.yard.active() if visibility.may_see(each.tenant)}
        is_admin = visibility.is_all

        def sees(query: str) -> bool:
            return is_admin or query in seen

        backend = host.backend
        return cluster_document(
            view, backend_name(backend), sees, is_admin, backend.notes(), backend.refused
        )

    def scheduler(self, visibility: Visibility, limit: int) -> dict[str, Any]:
        """The policy in force, how it came to that, and what a portfolio has decided.

        Reasons may name tenants: they are for admins, as the profile with its shares is.
        """
        session = self.session
        state = session.policy_state()
        found: dict[str, Any] = {"policy": policy_document(state, visibility, self.clock)}
        if not visibility.is_all:
            changes = changes_document(session.policy_changes(limit), (), self.clock)
            hidden = {"by": None, "reason": None}
            shown = [change | hidden for change in changes]
            return found | {
                "profile": {"name": state.name},
                "portfolio": None,
                "changes": shown,
                "decisions": [],
            }
        with past(session.host.history_file) as reader:
            until = self.clock.began_at - 1.0
            before = [] if reader is None else reader.policy_changes(until, limit)
        return found | {
            "profile": dict(session.profile),
            "portfolio": None if state.portfolio is None else dict(state.portfolio),
            "changes": changes_document(session.policy_changes(limit), before, self.clock)[:limit],
            "decisions": session.policy_decisions(limit),
        }

    def logs(self, after: int | None, level: Level, limit: int) -> dict[str, Any]:
        """Lines of the log; for admins only."""
        self.yard.watchers.tell()
        return log_document(*self._log.lines(after, level, limit))

    # --- the past ----------------------------------------------------------------------------

    def timeline(
        self, visibility: Visibility, query: str, submitted: Submitted | None
    ) -> dict[str, Any]:
        """One query over time: `submitted` if it is active or kept, else from the history."""
        self.yard.watchers.tell()
        host = self.session.host
        is_own = query.startswith(f"{host.session_name}-")
        if is_own and submitted is not None:
            host.flush_history()
        with past(host.history_file) as reader:
            if submitted is not None:
                told = told_now(submitted.ticket, submitted.asked_at)
                online = submitted.ticket.request.online
            else:
                told, online = told_of(_past_query(reader, visibility, query)), None
            course = self._courses.of(query).points if online is None else online.log.course
            now_s = self.session.now() if is_own else None
            held = self._holds.of(query)
            if not held and reader is not None:
                held = reader.held_of(query.rpartition("-")[0], query)
            seen = Seen(visibility.may_see, course, held)
            return timeline_document(told, reader, now_s, seen)

    def last_answer(self, query: str) -> OnlineAnswer | None:
        """The last provisional answer of an online query that has ended lately."""
        return self._courses.of(query).last

    def performance(
        self, visibility: Visibility, since: float, until: float, by: By
    ) -> dict[str, Any]:
        """How the queries did that ended in a stretch of time. It may take a second."""
        with self._reading, past(self.session.host.history_file) as reader:
            queries = None if reader is None else queries_of(reader, visibility, since, until)
        return performance_document(queries, by, since, until)

    def archive(self, visibility: Visibility) -> dict[str, Any]:
        """All days with queries. It may take a second."""
        with self._reading, past(self.session.host.history_file) as reader:
            rows = [] if reader is None else self._archive.rows(reader, time.time())
        return archive_document(rows, visibility)

    def archived_day(
        self, visibility: Visibility, day: str, by: By, limit: int, start: int
    ) -> dict[str, Any]:
        """One day: how its queries did, and a page of them. It may take a second."""
        bounds = bounds_of(day)
        found = self.performance(visibility, *bounds, by)
        with past(self.session.host.history_file) as reader:
            page: dict[str, Any] = {"queries": [], "start": start, "next": None, "total": 0}
            if reader is not None:
                page = page_of(reader, bounds, visibility, limit, start)
        return {"day": day, "performance": found, **page}

    def close(self) -> None:
        """Hear of nothing more."""
        self._log.detach()


def _past_query(reader: Overviews | None, visibility: Visibility, query: str) -> QueryRecord:
    """A query of the history that may be seen; all others never were."""
    session = query.rpartition("-")[0]
    found = [] if reader is None else reader.queries(session=session, query=query)
    if not found or not visibility.may_see(found[0].tenant):
        raise unknown_query(query)
    return found[0]

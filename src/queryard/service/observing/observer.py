"""One per server: what it has seen so far, and documents of it."""

from __future__ import annotations

import threading
import time
from typing import Any

from queryard.history import Overviews, QueryRecord

from ..submitted import Submitted
from ..yard import Yard, unknown_query
from .clock import WallClock
from .courses import Courses
from .ended import EndedQueries
from .memory import resident_bytes
from .now import Present, now_document
from .past import past
from .ring import Cell
from .sampling import Sampler
from .series import cells_of, planned, series_document
from .timeline import timeline_document, told_now, told_of
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
        self._courses = Courses()
        self.sampler = Sampler(yard.session)
        self._lock = threading.Lock()
        self._present: Present | None = None
        self._seen_s = float("-inf")
        yard.watch(self._ended)
        yard.watch(self._courses)
        yard.every_second(self.sampler.look)

    @property
    def version(self) -> tuple[object, ...]:
        """Another value once something has happened that `now` shows."""
        return self.session.host.steps, self.yard.draining

    def present(self) -> Present:
        """What there is now; it asks the scheduler, unless that was done just before."""
        with self._lock:
            now_s = time.monotonic()
            if self._present is None or now_s - self._seen_s > FRESH_S:
                host = self.session.host
                overview = host.overview()
                self._present = Present(
                    overview=overview,
                    forecasts=host.recent_forecasts(FORECAST_SHARE),
                    is_draining=self.yard.draining,
                    process_bytes=resident_bytes(),
                    tenants=tuple(tenant.name for tenant in self.session.tenants),
                )
                self._seen_s = now_s
            return self._present

    def now(self, visibility: Visibility, limit: int) -> dict[str, Any]:
        """The present as a token may see it. It blocks for a moment."""
        present = self.present()
        ended = self._ended.last(visibility)
        return now_document(present, ended, visibility, limit, self.clock)

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

    def timeline(
        self, visibility: Visibility, query: str, submitted: Submitted | None
    ) -> dict[str, Any]:
        """One query over time: `submitted` if it is active or kept, else from the history."""
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
            course = self._courses.of(query) if online is None else online.log.course
            now_s = self.session.now() if is_own else None
            return timeline_document(told, reader, now_s, visibility.may_see, course)


def _past_query(reader: Overviews | None, visibility: Visibility, query: str) -> QueryRecord:
    """A query of the history that may be seen; all others never were."""
    session = query.rpartition("-")[0]
    found = [] if reader is None else reader.queries(session=session, query=query)
    if not found or not visibility.may_see(found[0].tenant):
        raise unknown_query(query)
    return found[0]

"""What a load is put to: a session under a profile, or plain DuckDB."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from queryard.core.model import Tenant
from queryard.engine.calibration import machine_rates
from queryard.engine.errors import QueryCancelled
from queryard.engine.plain import PlainCursor, PlainDuckDB
from queryard.live import Handle, Session
from queryard.workload.load import Request

from .ground import Ground
from .outcome import Cost, Glance, Outcome

PLAIN = "duckdb"
"""The policy that is none: plain DuckDB, one cursor per query."""
# Run once before the start, so that loading of modules is not part of any query.
FIRST = "SELECT 42 -- before the start"

Profile = str | Mapping[str, Any]
Clock = Callable[[], float]


class Sent(Protocol):
    """A request on its way."""

    def read(self) -> int:
        """Wait for all rows and drop them; how many there were. Raises the query's error."""

    def tell(self, outcome: Outcome) -> None:
        """Note what is known of it besides, once it has ended."""

    def cancel(self) -> None:
        """Stop it, from another thread."""


class Target(Protocol):
    """Something queries can be put to."""

    name: str
    slots: int

    def begin(self, clock: Clock) -> None:
        """The run begins; `clock` gives the seconds since then."""

    def send(self, request: Request, within_s: float | None) -> Sent:
        """Submit a request that is due within so many seconds, without waiting for it."""

    def glance(self) -> Mapping[str, Glance]:
        """What is on its way, by the id of the request."""

    def cost(self) -> Cost | None:
        """What it took itself to decide; None if that is not known."""

    def close(self) -> None: ...


def open_target(
    name: str,
    ground: Ground,
    *,
    profile: Profile | None = None,
    tenants: Sequence[Tenant] = (),
    history: str | Path | None = None,
) -> Target:
    """Plain DuckDB by its name, else a session under the profile (by default that of the name).

    `history` is the file of the session's history; without one it begins with an empty one, which
    goes with it.
    """
    if name == PLAIN:
        return PlainTarget(ground)
    return SessionTarget(name, ground, profile or name, tenants, history)


class SessionTarget:
    """An embedded session of its own."""

    def __init__(
        self,
        name: str,
        ground: Ground,
        profile: Profile,
        tenants: Sequence[Tenant] = (),
        history: str | Path | None = None,
    ) -> None:
        self.name = name
        self.slots = ground.slots
        self._temp = tempfile.TemporaryDirectory(prefix="queryard-load-")
        self.session = Session(
            ground.catalog(),
            slots=ground.slots,
            memory=ground.memory_bytes,
            profile=profile,
            tenants=tuple(tenants) or None,
            history=history or Path(self._temp.name, "history.sqlite"),
        )
        machine_rates()
        self.session.sql(FIRST).arrow()
        self._offset_s = 0.0
        self._requests: dict[str, str] = {}  # by the id of the query

    def begin(self, clock: Clock) -> None:
        self._offset_s = self.session.now() - clock()

    def send(self, request: Request, within_s: float | None) -> Sent:
        # A deadline that has passed is still one.
        deadline = None if within_s is None else max(within_s, 0.001)
        handle = self.session.submit(
            request.sql, tenant=request.tenant, priority=request.priority, deadline=deadline
        )
        self._requests[handle.id] = request.id
        return _SentQuery(handle, self._offset_s)

    def glance(self) -> Mapping[str, Glance]:
        forecasts = self.session.forecasts()
        found = {}
        for view in self.session.queries():
            request, forecast = self._requests.get(view.id), forecasts.get(view.id)
            if request is None:
                continue
            end_s = None if forecast is None else forecast.end_s
            found[request] = Glance(
                running=view.status == "running",
                slots=view.slots,
                progress=view.progress,
                end_s=None if end_s is None else end_s - self._offset_s,
            )
        return found

    def cost(self) -> Cost:
        report = self.session.report()
        return Cost(
            decisions=report.decisions,
            decide_s=report.decide_s,
            driver_cpu_s=report.driver_cpu_s,
            watch_cpu_s=report.watch_cpu_s,
            history_cpu_s=report.history_cpu_s,
            bursts=report.bursts,
            burst_s=report.burst_s,
            sprints=report.sprints,
            restarts=report.restarts,
            restart_s=report.restart_s,
        )

    def close(self) -> None:
        self.session.close()
        self._temp.cleanup()


class _SentQuery:
    def __init__(self, handle: Handle, offset_s: float) -> None:
        self._handle = handle
        self._offset_s = offset_s

    def read(self) -> int:
        return int(self._handle.result().arrow().num_rows)

    def tell(self, outcome: Outcome) -> None:
        self._handle.wait(1.0)  # the last row may come before the end is noted
        timing = self._handle.timing
        if timing.started_s is not None:
            outcome.started_s = timing.started_s - self._offset_s
        outcome.work_s, outcome.held_s = timing.work_s, timing.held_s
        outcome.burst_s, outcome.shared = timing.burst_s, timing.shared
        outcome.predicted_work_s = timing.predicted_work_s
        outcome.predicted_by = timing.predicted_by
        forecast = self._handle.forecast() if self._handle.ended else None
        if forecast is not None and forecast.end_s is not None:
            outcome.forecast_end_s = forecast.end_s - self._offset_s

    def cancel(self) -> None:
        self._handle.cancel()


class PlainTarget:
    """DuckDB with as many threads as there are slots; every request runs at once."""

    name = PLAIN

    def __init__(self, ground: Ground) -> None:
        self.slots = ground.slots
        self._duck = PlainDuckDB(ground.catalog(), ground.slots, ground.memory_bytes)
        self._duck.cursor().arrow(FIRST)
        self._running: dict[str, PlainCursor] = {}
        self._clock: Clock = time.perf_counter

    def begin(self, clock: Clock) -> None:
        self._clock = clock

    def send(self, request: Request, within_s: float | None) -> Sent:
        return _SentPlainly(self._duck, request, self._running, self._clock)

    def glance(self) -> Mapping[str, Glance]:
        return {
            request: Glance(running=True, progress=cursor.progress())
            for request, cursor in list(self._running.items())
        }

    def cost(self) -> None:
        return None

    def close(self) -> None:
        self._duck.close()


class _SentPlainly:
    def __init__(
        self,
        duck: PlainDuckDB,
        request: Request,
        running: dict[str, PlainCursor],
        clock: Clock,
    ) -> None:
        self._duck = duck
        self._request = request
        self._running = running
        self._clock = clock
        self._started_s: float | None = None
        self._cancelled = False

    def read(self) -> int:
        self._started_s = self._clock()
        cursor = self._running[self._request.id] = self._duck.cursor()
        try:
            if self._cancelled:
                raise QueryCancelled("cancelled")
            return int(cursor.arrow(self._request.sql).num_rows)
        finally:
            del self._running[self._request.id]
            cursor.close()

    def tell(self, outcome: Outcome) -> None:
        outcome.started_s = self._started_s

    def cancel(self) -> None:
        self._cancelled = True
        if (cursor := self._running.get(self._request.id)) is not None:
            cursor.interrupt()

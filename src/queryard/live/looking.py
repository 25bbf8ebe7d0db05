"""What is to be seen of a host: its queries, what each waits for, when they end, what it costs."""

from __future__ import annotations

import time

from queryard.backends.protocol import Backend
from queryard.core.explain import Why
from queryard.sim.forecast import Forecast

from .background import Background
from .coordinating import Coordinator
from .door import Door
from .estimates.forecasts import Forecaster, Forecasts, Fork
from .expected import Expected, expected, in_order
from .facts import QueryView
from .loop import Loop
from .monitor import SessionReport
from .overview import ClusterView, Load, Overview
from .policy_in_force import PolicyInForce
from .recording import Recorder
from .ticket import Ticket, TimedForecast
from .tickets import Tickets
from .why import WaitReport, wait_report

# At most this share of a core goes into forecasts that were not asked for.
FORECAST_SHARE = 0.005


class Looking:
    """It changes nothing; from any thread."""

    def __init__(
        self,
        door: Door,
        loop: Loop,
        tickets: Tickets,
        backend: Backend,
        recorder: Recorder,
        policy: PolicyInForce,
        background: Background,
    ) -> None:
        self._door = door
        self._loop = loop
        self._tickets = tickets
        self._backend = backend
        self._recorder = recorder
        self._policy = policy
        self._background = background
        self._forecaster = Forecaster(self.fork, loop.now, background.problem)
        self._next_forecast_s = 0.0

    # --- queries ---------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """A number that goes up whenever something has happened to a query."""
        return self._loop.decisions

    def views(self) -> tuple[QueryView, ...]:
        """All active queries, the earliest first."""
        return tuple(self._door.ask(Coordinator.views))

    def overview(self) -> Overview:
        """All active queries and what holds each; cheaper than `why` of every query."""
        found = self._door.ask(lambda coordinator: coordinator.overview(self._loop.now()))
        facts = (ticket.facts for ticket in self._tickets.active())
        return found._replace(facts=tuple(each for each in facts if each.ended_s is None))

    def expected(self, overview: Overview) -> dict[str, Expected]:
        """In how many seconds each query of it starts and ends, about; at once."""
        return expected(overview, self.recent_forecasts(FORECAST_SHARE), *in_order(overview))

    def load(self) -> Load:
        """How much there is to do."""
        found = self._door.ask(Coordinator.load)
        return found._replace(decisions=self._loop.decisions, decide_s=self._loop.decide_s)

    def cluster(self) -> ClusterView:
        """All nodes, and the queries that run there."""
        return self._door.ask(lambda coordinator: coordinator.cluster(self._loop.now()))

    def why(self, query: str) -> Why | None:
        """What holds a query; None if it is not known."""
        return self._door.ask(lambda coordinator: coordinator.why(query))

    def wait_report(self, ticket: Ticket) -> WaitReport:
        """What there is to say of a query."""
        self._door.owner.check()
        if ticket.ended:
            return wait_report(ticket, None, None, None, self._loop.now())
        # Before the forecast, which holds Python's lock while it is computed.
        why = self.why(ticket.id)
        newest = self._forecaster.newest()
        forecast = newest.by_query.get(ticket.id)
        made_s = None if forecast is None else newest.made_s
        return wait_report(ticket, why, forecast, made_s, self._loop.now())

    # --- forecasts -------------------------------------------------------------------------------

    def forecasts(self, wait_s: float) -> dict[str, Forecast]:
        """When each query is expected to start and end; waits for a new forecast for some time."""
        self._door.owner.check()
        return dict(self._forecaster.newest(wait_s).by_query)

    def recent_forecasts(self, share: float) -> Forecasts:
        """The last forecast of all queries; it is renewed for a share of a core at most."""
        return self._forecaster.recent(share)

    def fork(self) -> Fork:
        """The kernel as it is now, to be simulated."""
        return self._loop.ask(
            lambda coordinator: Fork(coordinator.kernel.fork(), coordinator.sharers())
        )

    @property
    def forecast_due(self) -> bool:
        """Whether the next forecast is to be recorded."""
        return time.monotonic() >= self._next_forecast_s

    def record_forecast(self, ticket: Ticket) -> None:
        """Record a forecast, to compare it later with what happened; not too often."""
        if ticket.ended or not self.forecast_due:
            return
        began_s = time.monotonic()
        newest = self._forecaster.newest()
        took_s = time.monotonic() - began_s
        self._next_forecast_s = time.monotonic() + took_s / FORECAST_SHARE
        for query, forecast in newest.by_query.items():
            other = self._tickets.held(query)
            if other is not None and other.first_forecast is None and not other.ended:
                other.first_forecast = TimedForecast(forecast, newest.made_s)
                self._recorder.forecast(query, other.first_forecast)

    # --- cost ------------------------------------------------------------------------------------

    def report(self) -> SessionReport:
        """What the host itself has cost so far."""
        self._door.owner.check()
        tickets = self._tickets.active()
        running = sum(ticket.facts.started_s is not None for ticket in tickets)
        cost = self._backend.report()
        return SessionReport(
            now_s=self._loop.now(),
            waiting=len(tickets) - running,
            running=running,
            decisions=self._loop.decisions,
            decide_s=self._loop.decide_s,
            driver_cpu_s=self._loop.cpu_s,
            watch_cpu_s=cost.cpu_s,
            history_cpu_s=self._recorder.cpu_s,
            portfolio_cpu_s=self._policy.cpu_s,
            bursts=cost.bursts,
            burst_s=cost.burst_s,
            sprints=cost.sprints,
            restarts=cost.restarts,
            restart_s=cost.restart_s,
            history_error=self._recorder.error,
            problems=self._background.problems,
        )

    def close(self) -> None:
        """Make no forecast from now on."""
        self._forecaster.close()

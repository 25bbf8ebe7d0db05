"""A workload under a portfolio, in simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from queryard.core.events import Event, PolicyChosen
from queryard.core.model import Node
from queryard.core.state import Settings
from queryard.metrics import RunRows
from queryard.metrics.cost import node_stays_s
from queryard.sim.conditions import Conditions
from queryard.sim.driver import SimDriver
from queryard.sim.estimates import EstimateSource
from queryard.sim.ordering import TIMERS
from queryard.sim.run import SimResult, build, run_to_end
from queryard.workload.model import Workload

from .answers import unsure_by_query
from .scores import QueryEnd, Schedule
from .selection import Decision, Selector
from .settings import PortfolioSettings
from .trials import try_out
from .workers import Workers

MOMENT_S = 1e-3


@dataclass(frozen=True, slots=True)
class PortfolioRun:
    """A run, its decisions, and the usual magnitudes of metrics at its end."""

    run: SimResult
    decisions: tuple[Decision, ...]
    magnitudes: Mapping[str, float]


def simulate_portfolio(
    workload: Workload,
    nodes: Sequence[Node],
    settings: PortfolioSettings,
    *,
    conditions: Conditions | None = None,
    estimates: str | EstimateSource = "oracle",
    seed: int = 0,
    slow_start: float = 1.0,
    on_progress: Callable[[int], None] | None = None,
    trials: Workers | None = None,
) -> PortfolioRun:
    """Run a workload to its end, and choose the policy anew as the queue changes.

    Candidates are tried out in this process, or by `trials` in others.
    """
    selector = Selector(settings, trials=try_out if trials is None else trials.try_out)
    ended = 0

    def note_end(query: str) -> None:
        nonlocal ended
        ended += 1
        if on_progress is not None:
            on_progress(ended)

    driver = build(
        workload,
        nodes,
        settings.candidates[selector.current],
        conditions=conditions,
        estimates=estimates,
        seed=seed,
        settings=Settings(slow_start=slow_start, seed=seed),
        on_end=note_end,
    )
    _Meta(driver, selector, workload)
    run = run_to_end(driver)
    return PortfolioRun(run, tuple(selector.decisions), selector.usual)


def schedule_of(run: RunRows) -> Schedule:
    """A run as a schedule that can be scored. A query that never ended ends with the run."""
    unsure = unsure_by_query(run.answers)
    queries = tuple(
        QueryEnd(
            row.query.id,
            row.submit_s,
            run.closed_s if row.end_s is None else row.end_s,
            row.task_s,
            row.query.deadline_s,
            row.query.tenant,
            unsure.get(row.query.id, ()),
        )
        for row in run.queries.values()
    )
    return Schedule(queries, tuple(node_stays_s(run)))


class _Meta:
    """Looks at the queue now and then, in simulated time."""

    def __init__(self, driver: SimDriver, selector: Selector, workload: Workload) -> None:
        self._driver = driver
        self._selector = selector
        # Of all looks that were planned, the latest one counts.
        self._next_s = -math.inf
        # Until then the latest decision is not in force, and there is no other.
        self._in_force_s = -math.inf
        for arrival in workload.arrivals:
            # A moment later, when the kernel knows of it.
            driver.call_at(arrival.query.submit_s + MOMENT_S, TIMERS, self._look)

    def _look_again(self, now: float) -> list[Event]:
        return self._look(now) if now == self._next_s else []

    def _look(self, now: float) -> list[Event]:
        """The kernel has seen all that happened before; what happens now comes after."""
        selector, settings = self._selector, self._selector.settings
        scheduler = self._driver.scheduler
        if now >= self._in_force_s and selector.is_due(scheduler):
            self._decide(now)
        if scheduler.state.queries:
            self._next_s = max(now + settings.least_s, selector.next_look_s(scheduler))
            self._driver.call_at(self._next_s, TIMERS, self._look_again)
        return []

    def _decide(self, now: float) -> None:
        selector, settings = self._selector, self._selector.settings
        decision = selector.decide(self._driver.scheduler)
        takes_s = decision.launches * settings.launch_cost_s
        latest_s = settings.too_late * settings.period_s
        profile = selector.drop(decision) if takes_s > latest_s else selector.apply(decision)
        if selector.decisions[-1].is_switch:
            self._in_force_s = at_s = now + min(takes_s, latest_s)
            self._driver.post(at_s, TIMERS, PolicyChosen(at_s, profile))
            selector.decisions[-1] = replace(selector.decisions[-1], in_force_s=at_s)
        selector.took(takes_s)

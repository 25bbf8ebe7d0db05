"""A workload under a portfolio, in simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from queryard.core.events import Event, PolicyChosen
from queryard.core.model import Node
from queryard.core.state import Settings
from queryard.sim.conditions import Conditions
from queryard.sim.driver import SimDriver
from queryard.sim.ordering import TIMERS
from queryard.sim.run import Run, build, run_to_end
from queryard.workload.model import Workload

from .scores import QueryEnd
from .selection import Decision, Selector
from .settings import PortfolioSettings


@dataclass(frozen=True, slots=True)
class PortfolioRun:
    """A run, and how its policies came about."""

    run: Run
    decisions: tuple[Decision, ...]


def simulate_portfolio(
    workload: Workload,
    nodes: Sequence[Node],
    settings: PortfolioSettings,
    *,
    conditions: Conditions | None = None,
    estimates: str = "oracle",
    seed: int = 0,
    slow_start: float = 1.0,
    on_progress: Callable[[int], None] | None = None,
) -> PortfolioRun:
    """Run a workload to its end, and choose the policy anew as the queue changes."""
    selector = Selector(settings)
    ended = 0

    def note_end(query: str) -> None:
        nonlocal ended
        ended += 1
        meta.ended(query)
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
    meta = _Meta(driver, selector, workload)
    return PortfolioRun(run_to_end(driver), tuple(selector.decisions))


class _Meta:
    """Looks at the queue now and then, in simulated time."""

    def __init__(self, driver: SimDriver, selector: Selector, workload: Workload) -> None:
        self._driver = driver
        self._selector = selector
        self._arrivals = {arrival.query.id: arrival for arrival in workload.arrivals}
        first_s = min((a.query.submit_s for a in workload.arrivals), default=0.0)
        # A moment later, when the kernel knows of it.
        self._look_at(first_s + 1e-3)

    def _look_at(self, time_s: float) -> None:
        self._driver.call_at(time_s, TIMERS, self._look)

    def _look(self, now: float) -> list[Event]:
        """The kernel has seen all that happened before; what happens now comes after."""
        selector, settings = self._selector, self._selector.settings
        self._look_at(now + settings.least_s)
        if not selector.is_due(self._driver.scheduler):
            return []
        decision = selector.decide(self._driver.scheduler)
        takes_s = decision.launches * settings.launch_cost_s
        if takes_s > settings.too_late * selector.reflection.period_s:
            selector.drop(decision)
            return []
        profile = selector.apply(decision)
        if not decision.is_switch:
            return []
        self._driver.post(now + takes_s, TIMERS, PolicyChosen(now + takes_s, profile))
        return []

    def ended(self, query: str) -> None:
        arrival = self._arrivals[query]
        spec = arrival.query
        end_s = self._driver.now
        task_s = arrival.work_s
        self._selector.ended(QueryEnd(query, spec.submit_s, end_s, task_s, spec.deadline_s))

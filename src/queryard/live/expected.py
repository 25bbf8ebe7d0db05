"""About when each active query starts and ends: reckoned at any moment, in one pass.

A forecast simulates the queue, policy and all, but with many queries it is made rarely, and does
not know of queries that came since. Where there is none that still counts, a query is reckoned to
take the slots that are free first, in the order of the queue, for the work that is left of it.
"""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace
from typing import NamedTuple

from queryard.sim.forecast import Forecast

from .estimates.forecasts import Forecasts
from .facts import QueryFacts
from .overview import Overview


class Expected(NamedTuple):
    """Seconds from now; `start_s` is None of a query that has started, both of a paused one."""

    start_s: float | None
    end_s: float | None


NOT_KNOWN = Expected(None, None)


def in_order(overview: Overview) -> tuple[list[QueryFacts], list[QueryFacts]]:
    """The queries that run, and those that wait, the first one to start first."""
    running = [facts for facts in overview.facts if facts.started_s is not None]
    waiting = [facts for facts in overview.facts if facts.started_s is None]
    waiting.sort(key=lambda facts: (overview.turn(facts), facts.submitted_s))
    return running, waiting


def expected(
    overview: Overview,
    forecasts: Forecasts,
    running: list[QueryFacts],
    waiting: list[QueryFacts],
) -> dict[str, Expected]:
    """The start and end of all queries; `running` and `waiting` are those of `in_order`."""
    found = _reckoned(overview, running, waiting)
    age_s = overview.now_s - forecasts.made_s
    for name, forecast in forecasts.by_query.items():
        reckoned = found.get(name)
        if reckoned is None or reckoned is NOT_KNOWN:
            continue
        ahead = _ahead(forecast, overview.now_s, reckoned.start_s is not None)
        # Queries have come and gone since: a forecast counts for half of its way.
        if ahead is not None and ahead.end_s is not None and age_s <= ahead.end_s:
            found[name] = ahead
    for facts in (each for each in overview.facts if each.shares_with):
        first = found.get(facts.shares_with)
        if first is not None and first is not NOT_KNOWN:
            start_s = None if facts.started_s is not None else first.start_s or 0.0
            found[facts.id] = Expected(start_s, first.end_s)
    return found


def _ahead(forecast: Forecast, now_s: float, waits: bool) -> Expected | None:
    """What a forecast says from now on; None if what it says has passed without coming true."""
    if forecast.end_s is None or forecast.end_s < now_s:
        return None
    if not waits:
        return Expected(None, forecast.end_s - now_s)
    if forecast.start_s is None or forecast.start_s < now_s:
        return None
    return Expected(forecast.start_s - now_s, forecast.end_s - now_s)


def _reckoned(
    overview: Overview, running: list[QueryFacts], waiting: list[QueryFacts]
) -> dict[str, Expected]:
    """Each query in turn takes its part of the slots, those that are free first."""
    slots = max(1, overview.slots)
    # When each slot is free.
    free = [0.0] * slots
    width = max(1, slots // max(1, len(running) + len(waiting)))
    found: dict[str, Expected] = {}
    holders = [(overview.glance(each).slots, each) for each in running if not each.shares_with]
    holders.sort(key=lambda held: -held[0])
    for held, facts in holders:
        found[facts.id] = Expected(None, _take(free, held or width, _left_s(facts))[1])
    is_paused = overview.paused_by is not None
    for facts in waiting:
        if is_paused:
            found[facts.id] = NOT_KNOWN
        elif not facts.shares_with:
            found[facts.id] = Expected(*_take(free, width, _left_s(facts)))
    return found


def _take(free: list[float], slots: int, work_s: float) -> tuple[float, float]:
    """Give work to the slots of a heap that are free first; when it starts and ends.

    >>> free = [0.0, 3.0]
    >>> _take(free, 1, 4.0), _take(free, 1, 2.0), free
    ((0.0, 4.0), (3.0, 5.0), [4.0, 5.0])
    """
    start_s = free[0]
    if slots == 1:
        heapreplace(free, start_s + work_s)
        return start_s, start_s + work_s
    taken = [heappop(free) for _ in range(min(slots, len(free)))]
    # All its slots end together; one that came after the end of the work takes no part.
    end_s = max(taken[-1], (sum(taken) + work_s) / len(taken))
    for _ in taken:
        heappush(free, end_s)
    return start_s, end_s


def _left_s(facts: QueryFacts) -> float:
    """Core-seconds that are left of a query."""
    return max(0.0, facts.expected_s * (1.0 - facts.progress))

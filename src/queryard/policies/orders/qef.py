"""Query efficiency and fairness: the smallest query, unless others have waited too long."""

from __future__ import annotations

import math
from collections.abc import Collection
from heapq import heappop, heappush
from typing import Self

from queryard.core.entities import Candidate, QueryState
from queryard.core.parts import QueryOrder
from queryard.core.state import State

from ..checks import above_zero, whole

MAX_LOAD = 0.95
URGENT, SLOWED, NORMAL = 0.0, 1.0, 2.0


class EfficientFair(QueryOrder):
    """Serve the smallest WRD, but first whoever is slowed too much. O(log n), amortised.

    TLS Alg. 1: a query slowed by more than 2D goes first (of several, the smallest); else, if
    more than `limit_slow` are slowed by more than D, the most slowed; else the smallest WRD.
    slowdown = (sojourn + remaining) / alone, remaining = alone · WRD left / WRD in all.
    D = 1 / (1 - ρ); the text leaves ρ open: here the WRD that arrived in the last `window_s`
    over slots × window_s, at most 0.95; in a pool, the WRD of its own queries. Load, clock and
    |L_slow| are those of the last refresh.

    At half load D = 2: a query that would take 10 s alone is urgent once it must take over 40.
    """

    name = "qef"
    citation = "TLS §4.1.2, Alg. 1"
    changes_with = frozenset({"work", "time"})

    def __init__(self, window_s: float = 600.0, limit_slow: int = 3) -> None:
        self.window_s = above_zero("window_s", window_s)
        self.limit_slow = whole("limit_slow", limit_slow, 0)
        self.threshold = 1.0
        self._clock_s = 0.0
        self._many_slow = False
        # Arrivals of the window, earliest first, and their WRD in all.
        self._arrived: list[tuple[float, int, float]] = []
        self._known: set[int] = set()
        self._arrived_s = 0.0

    def fork(self) -> Self:
        twin = super().fork()
        twin._arrived = self._arrived.copy()
        twin._known = self._known.copy()
        return twin

    def attach(self, state: State) -> None:
        self._clock_s = state.now

    def take_over(self, before: Self, state: State) -> None:
        self._arrived, self._known = before._arrived, before._known
        self._arrived_s = before._arrived_s
        self.threshold, self._many_slow = before.threshold, before._many_slow

    def prepare(self, candidates: Collection[Candidate], state: State) -> None:
        now = self._clock_s = state.now
        self._expire(now - self.window_s)
        load = self._arrived_s / (self.window_s * (state.total_slots or 1))
        self.threshold = threshold = 1.0 / (1.0 - min(MAX_LOAD, load))
        slow = 0
        for candidate in candidates:
            if threshold < self._slowdown(candidate.query) <= 2 * threshold:
                slow += 1
        self._many_slow = slow > self.limit_slow

    def key(self, candidate: Candidate, state: State) -> tuple[float, float]:
        query = candidate.query
        # Every query passes here as soon as it can use a slot: that is its arrival.
        if query.uid not in self._known and query.submit_s > state.now - self.window_s:
            self._arrive(query)
        slowdown = self._slowdown(query)
        if slowdown > self.threshold:
            if slowdown > 2 * self.threshold:
                return (URGENT, query.left_s)
            if self._many_slow:
                return (SLOWED, -slowdown)
        return (NORMAL, query.left_s)

    def _slowdown(self, query: QueryState) -> float:
        # What is expected to take no time cannot be slowed.
        sojourn_s = self._clock_s - query.submit_s
        return sojourn_s / (query.alone_s or math.inf) + query.left_s / (query.total_s or math.inf)

    def _arrive(self, query: QueryState) -> None:
        self._known.add(query.uid)
        heappush(self._arrived, (query.submit_s, query.uid, query.total_s))
        self._arrived_s += query.total_s

    def _expire(self, before_s: float) -> None:
        arrived = self._arrived
        while arrived and arrived[0][0] <= before_s:
            _, uid, work_s = heappop(arrived)
            self._known.discard(uid)
            self._arrived_s -= work_s
        if not arrived:
            self._arrived_s = 0.0  # no rounding left over

"""Small queries soon, large ones not much later than if all were served alike."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Self

from queryard.core.entities import Candidate, QueryState
from queryard.core.parts import QueryOrder
from queryard.core.state import State

from ..checks import above_zero, share
from .alike import Alike


class SrptFair(QueryOrder):
    """Serve the smallest (work left - `ageing` · work owed). O(log n) per decision.

    Owed is what a query would have had by now under equal sharing, less what it has had. With
    `ageing` 0 the least work left goes first (SRPT), with 1 the query that ends first under
    equal sharing (FSP); keys stand still while a query waits. What is left of work that has begun
    counts `begun`, so that slots do not change hands for estimates that err a little; before a
    deadline that is closer than `slack` times what the query takes alone from here, it counts
    `hurry`. A higher priority goes before all of this.

    Of 10 and 60 core-seconds that come together the 10 go first; the 60 pass another 10 that
    come when they are owed (60 - 10) / 0.1 = 500, or with a deadline in sight.
    """

    name = "srpt-fair"
    citation = "after FSP (Friedman and Henderson 2003)"
    changes_with = frozenset({"work"})

    def __init__(
        self, ageing: float = 0.1, begun: float = 0.6, slack: float = 3.0, hurry: float = 0.3
    ) -> None:
        self.ageing = share("ageing", ageing)
        self.begun = share("begun", begun)
        self.slack = above_zero("slack", slack)
        self.hurry = share("hurry", hurry)
        self._alike = Alike()
        # When deadlines come into sight or pass, the next one of each query.
        self._moments: list[tuple[float, int]] = []
        self._next: dict[int, float] = {}

    def fork(self) -> Self:
        twin = super().fork()
        twin._alike = self._alike.fork()
        twin._moments = self._moments.copy()
        twin._next = self._next.copy()
        return twin

    def take_over(self, before: Self, state: State) -> None:
        self._alike = before._alike

    def elapse(self, seconds: float, slots: float, queries: int, state: State) -> Iterable[int]:
        if not queries:
            self._alike = Alike()  # nothing is left over, be it by rounding or wrong estimates
        self._alike.serve(seconds * slots)
        if len(self._alike) > 100 + 4 * queries:
            self._alike.forget({query.uid for query in state.queries.values()})
        due = []
        while self._moments and self._moments[0][0] <= state.now:
            time_s, uid = heappop(self._moments)
            if self._next.get(uid) == time_s:
                del self._next[uid]
                due.append(uid)
        return due

    def wake_s(self, state: State) -> float | None:
        return self._moments[0][0] if self._moments else None

    def key(self, candidate: Candidate, state: State) -> tuple[float, float]:
        query = candidate.query
        left_s, total_s = query.left_s, query.total_s
        self._alike.expect(query.uid, total_s)
        had_s = self._alike.came_s(query.uid) + total_s - left_s
        if query.started_s is not None:
            left_s *= self.begun
        if query.deadline is not None and self._hurries(query, state):
            left_s *= self.hurry
        return (-query.spec.priority, left_s + self.ageing * had_s)

    def _hurries(self, query: QueryState, state: State) -> bool:
        """Whether its deadline is in sight; when that will change is noted."""
        assert query.deadline is not None
        in_sight_s = query.deadline - self.slack * query.alone_left_s
        if state.now >= query.deadline:
            return False
        time_s = query.deadline if state.now >= in_sight_s else in_sight_s
        if time_s < self._next.get(query.uid, float("inf")):
            self._next[query.uid] = time_s
            heappush(self._moments, (time_s, query.uid))
        return state.now >= in_sight_s

"""Query efficiency and fairness: the smallest query, unless others have waited too long."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Self

from queryard.core.entities import Candidate, QueryState
from queryard.core.lines import Line, Lines, Moving
from queryard.core.parts import QueryOrder
from queryard.core.rankings import Key, Ranking
from queryard.core.state import State

from ..checks import above_zero, whole

MAX_LOAD = 0.95
URGENT, SLOWED, NORMAL = 0.0, 1.0, 2.0


class WorkRanking(Moving):
    """Queries by their WRD; those slowed beyond a limit once more, the others by slowdown.

    Keys are (WRD, slope of the slowdown, time at which it was 0). Queries pass from `others` to
    `urgent` when their line crosses the limit; back, as the limit rises or their work gets less,
    only when they are looked at.
    """

    __slots__ = ("by_work", "others", "urgent")

    def __init__(self) -> None:
        super().__init__()
        self.by_work = Ranking()
        self.urgent = Ranking()
        self.others = Lines()

    def _set(self, uid: int, old: Key | None, new: Key | None) -> None:
        if new is None:
            self.by_work.drop(uid)
            (self.urgent if uid in self.urgent.keys else self.others).drop(uid)
            return
        left_s, slope, zero_s = new  # type: ignore[misc]
        self.by_work.put(uid, left_s)
        if uid in self.urgent.keys:
            self.urgent.put(uid, left_s)
        else:
            self.others.put(uid, Line(slope, zero_s))

    def slowdown(self, uid: int, now: float) -> float:
        _, slope, zero_s = self.keys[uid]  # type: ignore[misc]
        return (now - zero_s) * slope

    def settle(self, limit: float, now: float) -> float:
        """Divide the queries at a limit as far as the first ones matter; the largest slowdown.

        It is infinite where one is beyond the limit.
        """
        others, urgent = self.others, self.urgent
        while (largest := others.first(now)) > limit:
            uid = others.winner
            others.drop(uid)
            urgent.put(uid, self.by_work.keys[uid])
        while urgent.keys:
            _, uid = urgent.entries[0]
            slowdown = self.slowdown(uid, now)
            if slowdown > limit:
                return math.inf
            self._calm(uid)
            largest = max(largest, slowdown)
        return largest

    def sift(self, limit: float, now: float) -> None:
        """Let all queries that are not beyond the limit stand among the others."""
        for uid in [uid for uid in self.urgent.keys if self.slowdown(uid, now) <= limit]:
            self._calm(uid)

    def _calm(self, uid: int) -> None:
        _, slope, zero_s = self.keys[uid]  # type: ignore[misc]
        self.urgent.drop(uid)
        self.others.put(uid, Line(slope, zero_s))

    def fork(self) -> Self:
        copy = super().fork()
        copy.by_work = self.by_work.fork()
        copy.urgent = self.urgent.fork()
        copy.others = self.others.fork()
        return copy

    @property
    def is_sound(self) -> bool:
        works, urgent, lines = self.by_work.keys, self.urgent.keys, self.others.lines
        return (
            self.by_work.is_sound
            and self.urgent.is_sound
            and self.others.is_sound
            and works.keys() == self.keys.keys()
            and urgent.keys() == works.keys() - lines.keys()
            and all(self.keys[uid] == (works[uid], *line) for uid, line in lines.items())
            and all(works[uid] == left_s for uid, left_s in urgent.items())
        )


class EfficientFair(QueryOrder):
    """Serve the smallest WRD, unless other queries are slowed too much. O(log² n), amortised.

    TLS Alg. 1: a query slowed by more than 2D goes first (of several, the smallest); else, if
    more than `limit_slow` are slowed by more than D, the most slowed; else the smallest WRD.
    slowdown = (sojourn + remaining) / alone, remaining = alone · WRD left / WRD in all.
    D = 1 / (1 - ρ); the text leaves ρ open: here the WRD that arrived in the last `window_s`
    over slots × window_s, at most 0.95; in a pool, the WRD of its own queries. All is as of the
    time of the decision.

    At half load D = 2: a query that would take 10 s alone is urgent once it must take over 40.
    """

    name = "qef"
    citation = "TLS §4.1.2, Alg. 1"
    changes_with = frozenset({"work", "time"})

    def __init__(self, window_s: float = 600.0, limit_slow: int = 3) -> None:
        self.window_s = above_zero("window_s", window_s)
        self.limit_slow = whole("limit_slow", limit_slow, 0)
        # Arrivals of the window, earliest first, and their WRD in all.
        self._arrived: list[tuple[float, int, float]] = []
        self._known: set[int] = set()
        self._arrived_s = 0.0
        # The threshold and the branch of the algorithm for a leaf, and of when. Slots are dealt by
        # the hundred while nothing changes.
        self._found = (1.0, NORMAL)
        self._found_for: tuple[float, ...] = ()

    def fork(self) -> Self:
        twin = super().fork()
        twin._arrived = self._arrived.copy()
        twin._known = self._known.copy()
        twin._found_for = ()  # copied rankings count their changes anew
        return twin

    def take_over(self, before: Self, state: State) -> None:
        self._arrived, self._known = before._arrived, before._known
        self._arrived_s = before._arrived_s

    def ranking(self) -> WorkRanking:
        return WorkRanking()

    def key(self, candidate: Candidate, state: State) -> tuple[float, float, float]:
        query = candidate.query
        # Every query passes here as soon as it can use a slot: that is its arrival.
        if query.uid not in self._known and query.submit_s > state.now - self.window_s:
            self._arrive(query)
        # What is expected to take no time cannot be slowed.
        left = query.left_s / (query.total_s or math.inf)
        slope = 1.0 / (query.alone_s or math.inf)
        return (query.left_s, slope, query.submit_s - query.alone_s * left)

    def threshold(self, state: State) -> float:
        """D, by what has arrived in the window that ends now."""
        arrived, before_s = self._arrived, state.now - self.window_s
        while arrived and arrived[0][0] <= before_s:
            _, uid, work_s = heappop(arrived)
            self._known.discard(uid)
            # No rounding is left over where the window is empty.
            self._arrived_s = self._arrived_s - work_s if arrived else 0.0
        load = self._arrived_s / (self.window_s * (state.total_slots or 1))
        return 1.0 / (1.0 - min(MAX_LOAD, load))

    def key_now(self, key: Key, leaf: Sequence[Ranking], state: State) -> Key:
        left_s, slope, zero_s = key  # type: ignore[misc]
        threshold = self.threshold(state)
        slowdown = Line(slope, zero_s).at(state.now)
        if slowdown > 2 * threshold:
            return (URGENT, left_s)
        if slowdown > threshold:
            rankings = _filled(leaf)
            for ranking in rankings:
                ranking.settle(2 * threshold, state.now)
            if self._many_slow(rankings, threshold, state.now):
                return (SLOWED, -slowdown)
        return (NORMAL, left_s)

    def turns(
        self, ranking: Ranking, leaf: Sequence[Ranking], state: State
    ) -> Iterable[tuple[Key, int]]:
        assert isinstance(ranking, WorkRanking)
        now = state.now
        asked_for = (now, state.total_slots, len(leaf), sum([other.changes for other in leaf]))
        if asked_for != self._found_for:
            self._found_for, self._found = asked_for, self._look(leaf, state)
        threshold, branch = self._found
        if branch == NORMAL:
            return ranking.by_work.entries
        return self._turns(ranking, leaf, branch, threshold, now)

    def _look(self, leaf: Sequence[Ranking], state: State) -> tuple[float, float]:
        now, threshold = state.now, self.threshold(state)
        rankings = _filled(leaf)
        largest = max([other.settle(2 * threshold, now) for other in rankings], default=0.0)
        if largest == math.inf:
            return threshold, URGENT
        slowed = largest > threshold and self._many_slow(rankings, threshold, now)
        return threshold, SLOWED if slowed else NORMAL

    def _turns(
        self,
        ranking: WorkRanking,
        leaf: Sequence[Ranking],
        branch: float,
        threshold: float,
        now: float,
    ) -> Iterator[tuple[Key, int]]:
        """The queries of the three branches, one branch after the other."""
        limit = 2 * threshold
        for left_s, uid in ranking.urgent.entries:
            if ranking.slowdown(uid, now) > limit:
                yield (URGENT, left_s), uid  # type: ignore[misc]
        if branch == SLOWED or self._many_slow(_filled(leaf), threshold, now):
            limit = threshold
            for slowdown, uid in ranking.others.turns(now):
                if -slowdown <= threshold:
                    break
                yield (SLOWED, slowdown), uid
        for work, uid in ranking.by_work.entries:
            if ranking.slowdown(uid, now) <= limit:
                yield (NORMAL, work), uid  # type: ignore[misc]

    def _many_slow(self, rankings: Sequence[WorkRanking], threshold: float, now: float) -> bool:
        """Whether more than `limit_slow` queries are slowed by more than D, and not by 2D."""
        found: set[int] = set()
        for ranking in rankings:
            ranking.sift(2 * threshold, now)
            if ranking.others.first(now) <= threshold:
                continue
            for slowdown, uid in ranking.others.turns(now):
                if -slowdown <= threshold:
                    break
                found.add(uid)
                if len(found) > self.limit_slow:
                    return True
        return False

    def _arrive(self, query: QueryState) -> None:
        self._known.add(query.uid)
        heappush(self._arrived, (query.submit_s, query.uid, query.total_s))
        self._arrived_s += query.total_s


def _filled(leaf: Sequence[Ranking]) -> list[WorkRanking]:
    return [ranking for ranking in leaf if ranking.keys and isinstance(ranking, WorkRanking)]

"""Clairvoyant shortest remaining work first of a fluid, under each query's own maximum."""

from __future__ import annotations

import math
from heapq import heappop, heappush, heapreplace

_ROUNDING = 1e-9


class _Fluid:
    """A query with `left_s` core-seconds to do at `since_s`, and its rate since then."""

    __slots__ = ("left_s", "number", "rate", "since_s", "version", "widest")

    def __init__(self, now_s: float, number: int, work_s: float, widest: float) -> None:
        self.number = number
        self.widest = widest
        self.left_s = work_s
        self.since_s = now_s
        self.rate = 0.0
        self.version = 0

    def run(self, rate: float, now_s: float) -> None:
        self.left_s = self.left_at(now_s)
        self.since_s = now_s
        self.rate = rate
        self.version += 1

    def left_at(self, now_s: float) -> float:
        return max(0.0, self.left_s - self.rate * (now_s - self.since_s))

    @property
    def end_s(self) -> float:
        return self.since_s + self.left_s / self.rate


class Shortest:
    """Shortest remaining work first with maximum rates.

    Some queries run at their maximum, at most one gets what is then left, the others wait in
    the order of their work. The order among those at their maximum does not matter until one
    of them must yield, so the one with most left is looked for only then: an old value of
    what is left can only be too high, so the heap's top is measured anew until it stays on top.
    An arrival costs about O(log n), and as much again for every query that yields to it.
    """

    def __init__(self, slots: float) -> None:
        self._slots = slots
        self._now_s = 0.0
        self._used = 0.0
        self._full: dict[int, _Fluid] = {}
        self._partial: _Fluid | None = None
        self._waiting: list[tuple[float, int, _Fluid]] = []
        self._ends: list[tuple[float, int, int]] = []
        self._most_left: list[tuple[float, int, int]] = []

    def arrive(self, now_s: float, number: int, work_s: float, widest: float) -> None:
        self._now_s = now_s
        self._wait(_Fluid(now_s, number, work_s, widest))
        self._settle()

    def next_end_s(self) -> float:
        end_s = math.inf if self._partial is None else self._partial.end_s
        while self._ends:
            full_end_s, number, version = self._ends[0]
            if self._is_full(number, version):
                return min(end_s, full_end_s)
            heappop(self._ends)
        return end_s

    def end(self) -> int:
        self._now_s = end_s = self.next_end_s()
        if self._partial is not None and self._partial.end_s == end_s:
            number = self._partial.number
            self._partial = None
        else:
            number = self._ends[0][1]
            self._stop(self._full[number])
        self._settle()
        return number

    def _is_full(self, number: int, version: int) -> bool:
        return number in self._full and self._full[number].version == version

    def _wait(self, query: _Fluid) -> None:
        query.run(0.0, self._now_s)
        heappush(self._waiting, (query.left_s, query.number, query))

    def _start(self, query: _Fluid) -> None:
        query.run(query.widest, self._now_s)
        self._used += query.widest
        self._full[query.number] = query
        heappush(self._ends, (query.end_s, query.number, query.version))
        heappush(self._most_left, (-query.left_s, query.number, query.version))

    def _stop(self, query: _Fluid) -> None:
        del self._full[query.number]
        self._used = self._used - query.widest if self._full else 0.0

    def _settle(self) -> None:
        """Serve by the work left: start while there is room, or make a longer query yield."""
        if self._partial is not None:
            self._wait(self._partial)
            self._partial = None
        while self._waiting:
            left_s, _, query = self._waiting[0]
            free = self._slots - self._used
            if query.widest <= free + _ROUNDING * self._slots:
                heappop(self._waiting)
                self._start(query)
            elif (longest := self._longest()) and longest.left_at(self._now_s) > left_s:
                self._stop(longest)
                self._wait(longest)
            else:
                if free > _ROUNDING * self._slots:
                    heappop(self._waiting)
                    query.run(free, self._now_s)
                    self._partial = query
                return

    def _longest(self) -> _Fluid | None:
        """The query at its maximum with the most work left."""
        heap = self._most_left
        while heap:
            old, number, version = heap[0]
            if not self._is_full(number, version):
                heappop(heap)
                continue
            query = self._full[number]
            now = -query.left_at(self._now_s)
            if now <= old or len(heap) == 1:
                return query
            heapreplace(heap, (now, number, version))
            if heap[0][1] == number:
                return query
        return None

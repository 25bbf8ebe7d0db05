"""Ideal processor sharing of a fluid: equal rates under each query's own maximum."""

from __future__ import annotations

import math
from heapq import heappop, heappush
from itertools import count

_ROUNDING = 1e-9


class _Level:
    """The queries with one and the same maximum rate, which at any time have the same rate.

    `served_s` is what each would have got since the level came up, so a query that joins with
    some work is done when `served_s` has grown by as much. It holds as of `mark`: a time while
    the level runs at its maximum (`full`), a height of the water while it shares.
    """

    __slots__ = ("full", "mark", "members", "served_s", "version", "widest")

    def __init__(self, widest: float, mark: float) -> None:
        self.widest = widest
        self.mark = mark
        self.full = False
        self.served_s = 0.0
        self.members: list[tuple[float, int]] = []  # a heap of (served_s at the end, number)
        self.version = 0


class Sharing:
    """Processor sharing with maximum rates, in about O(log n) per arrival or end.

    All queries that share have the same rate, so the water's height (that rate, summed over
    time) tells the ends of all of them; levels at their maximum have fixed ends. When the rate
    passes a level's maximum, the level changes sides. Heaps keep old entries until they come
    up; `version` tells which are still true.
    """

    def __init__(self, slots: float) -> None:
        self._slots = slots
        self._now_s = 0.0
        self._height = 0.0
        self._rate = 0.0
        self._levels: dict[float, _Level] = {}
        self._versions = count(1)
        self._sharers = 0
        self._full_rate = 0.0
        self._lowest_sharing: list[float] = []
        self._highest_full: list[float] = []  # negated, as the heap gives the smallest
        self._sharing_ends: list[tuple[float, float, int]] = []
        self._full_ends: list[tuple[float, float, int]] = []

    def arrive(self, now_s: float, number: int, work_s: float, widest: float) -> None:
        self._advance(now_s)
        level = self._levels.get(widest)
        if level is None:
            level = self._levels[widest] = _Level(widest, self._height)
            heappush(self._lowest_sharing, widest)
        self._update(level)
        heappush(level.members, (level.served_s + work_s, number))
        self._count(level, 1)
        self._announce(level)
        self._settle()

    def next_end_s(self) -> float:
        end_s = math.inf
        if self._live(self._full_ends):
            end_s = self._full_ends[0][0]
        if self._live(self._sharing_ends):
            left = max(0.0, self._sharing_ends[0][0] - self._height)
            end_s = min(end_s, self._now_s + left / self._rate)
        return end_s

    def end(self) -> int:
        end_s = self.next_end_s()
        full_first = self._live(self._full_ends) and self._full_ends[0][0] <= end_s
        _, widest, _ = (self._full_ends if full_first else self._sharing_ends)[0]
        self._advance(end_s)
        level = self._levels[widest]
        self._update(level)
        level.served_s, number = heappop(level.members)  # exactly, whatever rounding says
        self._count(level, -1)
        if level.members:
            self._announce(level)
        else:
            del self._levels[widest]
        if not self._levels:
            self._height = self._full_rate = 0.0  # start clean, without rounding left over
        self._settle()
        return number

    def _advance(self, now_s: float) -> None:
        if self._sharers:
            self._height += self._rate * (now_s - self._now_s)
        self._now_s = now_s

    def _update(self, level: _Level) -> None:
        """Bring what the level has been served up to now."""
        if level.full:
            level.served_s += level.widest * (self._now_s - level.mark)
            level.mark = self._now_s
        else:
            level.served_s += self._height - level.mark
            level.mark = self._height

    def _announce(self, level: _Level) -> None:
        """Tell the end of the level's first query; earlier announcements are void."""
        level.version = next(self._versions)
        left_s = level.members[0][0] - level.served_s
        if level.full:
            end_s = self._now_s + left_s / level.widest
            heappush(self._full_ends, (end_s, level.widest, level.version))
        else:
            heappush(self._sharing_ends, (self._height + left_s, level.widest, level.version))

    def _live(self, ends: list[tuple[float, float, int]]) -> bool:
        """Drop void announcements; is there one left?"""
        while ends:
            _, widest, version = ends[0]
            level = self._levels.get(widest)
            if level is not None and level.version == version:
                return True
            heappop(ends)
        return False

    def _top(self, heap: list[float], *, full: bool) -> _Level | None:
        """The level on top of a heap of one side, past those that have left it."""
        while heap:
            level = self._levels.get(abs(heap[0]))
            if level is not None and level.full is full:
                return level
            heappop(heap)
        return None

    def _count(self, level: _Level, queries: int) -> None:
        if level.full:
            self._full_rate += queries * level.widest
        else:
            self._sharers += queries

    def _settle(self) -> None:
        """Find the common rate anew, and move the levels on the wrong side of it."""
        while (level := self._top(self._highest_full, full=True)) is not None:
            if level.widest <= self._common_rate():
                break
            self._change_sides(level)
            heappush(self._lowest_sharing, level.widest)
        while (level := self._top(self._lowest_sharing, full=False)) is not None:
            if level.widest > self._common_rate():
                break
            self._change_sides(level)
            heappush(self._highest_full, -level.widest)
        self._rate = self._common_rate()

    def _common_rate(self) -> float:
        left = self._slots - self._full_rate
        if self._sharers:
            return left / self._sharers
        return 0.0 if left < -_ROUNDING * self._slots else math.inf

    def _change_sides(self, level: _Level) -> None:
        self._update(level)
        self._count(level, -len(level.members))
        level.full = not level.full
        level.mark = self._now_s if level.full else self._height
        self._count(level, len(level.members))
        self._announce(level)

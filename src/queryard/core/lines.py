"""Values that grow evenly with time: which one is the largest now.

A kinetic tournament. Each inner node of a binary tree knows the larger of its two children and
until when that is sure: two lines cross once, at a time that can be computed. So only what has
changed, or crossed since, is compared again: O(log n) for a change, O(log² n) amortised for
crossings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple, Self

from .rankings import Key, Ranking

# Values closer than this share of their size are compared again at each look, as rounding could
# tell otherwise than the time of the crossing does. The result then never depends on earlier looks.
_NEAR = 1e-12


class Line(NamedTuple):
    """A value of 0 at `zero_s`, which grows by `slope` per second."""

    slope: float
    zero_s: float

    def at(self, now: float) -> float:
        return (now - self.zero_s) * self.slope


class Lines:
    """Numbers with a line each, the largest value first; of equals, the smallest number.

    >>> lines = Lines()
    >>> lines.put(1, Line(1.0, 0.0)); lines.put(2, Line(3.0, 10.0))
    >>> [list(lines.turns(now)) for now in (10.0, 20.0)]
    [[(-10.0, 1), (-0.0, 2)], [(-30.0, 2), (-20.0, 1)]]
    """

    __slots__ = ("_free", "_places", "_size", "_sure_s", "_winners", "lines")

    def __init__(self) -> None:
        self.lines: dict[int, Line] = {}
        # Leaves of the tree, by number; and those that are free.
        self._places: dict[int, int] = {}
        self._size = 2
        self._free = [3, 2]
        # By node, the root being 1: the number with the largest value below it (-1 for none), and
        # until when. A node that must be looked at has all nodes above it looked at as well.
        self._winners = [-1] * 4
        self._sure_s = [-math.inf, -math.inf, math.inf, math.inf]

    def put(self, uid: int, line: Line) -> None:
        if uid not in self.lines:
            if not self._free:
                self._grow()
            place = self._places[uid] = self._free.pop()
            self._winners[place] = uid
        elif self.lines[uid] == line:
            return
        self.lines[uid] = line
        self._unsettle(self._places[uid])

    def drop(self, uid: int) -> None:
        del self.lines[uid]
        place = self._places.pop(uid)
        self._winners[place] = -1
        self._free.append(place)
        self._unsettle(place)

    def first(self, now: float) -> float:
        """The largest value; minus infinity if there is none."""
        if not self.lines:
            return -math.inf
        if self._sure_s[1] <= now:
            self._settle(1, now)
        return self.lines[self._winners[1]].at(now)

    @property
    def winner(self) -> int:
        """The number that had the largest value when that was last asked for; -1 if none has."""
        return self._winners[1]

    def turns(self, now: float) -> Iterator[tuple[float, int]]:
        """(value below zero, number), the largest value first: O(log n) for each that is taken."""
        if not self.lines:
            return
        if self._sure_s[1] <= now:
            self._settle(1, now)
        winners, lines, size = self._winners, self.lines, self._size
        uid = winners[1]
        heap = [(-lines[uid].at(now), uid, 1)]
        while heap:
            value, uid, node = heappop(heap)
            yield value, uid
            # What has lost against it, from here down to its leaf, may be next.
            while node < size:
                node *= 2
                loser = node + 1
                if winners[node] != uid:
                    node, loser = loser, node
                other = winners[loser]
                if other >= 0:
                    heappush(heap, (-lines[other].at(now), other, loser))

    def fork(self) -> Self:
        copy = type(self)()
        copy.lines = self.lines.copy()
        copy._places = self._places.copy()
        copy._size = self._size
        copy._free = self._free.copy()
        copy._winners = self._winners.copy()
        copy._sure_s = self._sure_s.copy()
        return copy

    @property
    def is_sound(self) -> bool:
        """Whether the leaves hold the numbers that there are (see `validate`)."""
        held = {uid: place for place, uid in enumerate(self._winners) if place >= self._size}
        held.pop(-1, None)
        return held == self._places and held.keys() == self.lines.keys()

    # --- the tree ----------------------------------------------------------------------------

    def _unsettle(self, node: int) -> None:
        sure_s = self._sure_s
        node >>= 1
        while node and sure_s[node] != -math.inf:
            sure_s[node] = -math.inf
            node >>= 1

    def _grow(self) -> None:
        """Twice as many leaves, all below nodes that are looked at anew."""
        before, size = self._size, 2 * self._size
        winners = [-1] * (2 * size)
        winners[size : size + before] = self._winners[before:]
        self._winners = winners
        self._sure_s = [-math.inf] * size + [math.inf] * size
        self._places = {uid: place + before for uid, place in self._places.items()}
        self._free = list(range(2 * size - 1, size + before - 1, -1))
        self._size = size

    def _settle(self, node: int, now: float) -> None:
        """Compare again below a node what is not sure any more."""
        sure_s, winners = self._sure_s, self._winners
        left = 2 * node
        right = left + 1
        if sure_s[left] <= now:
            self._settle(left, now)
        if sure_s[right] <= now:
            self._settle(right, now)
        one, other = winners[left], winners[right]
        until_s = min(sure_s[left], sure_s[right])
        if one < 0 or other < 0:
            winners[node] = max(one, other)
        else:
            lines = self.lines
            slope, zero_s = lines[one]
            other_slope, other_zero_s = lines[other]
            value, other_value = (now - zero_s) * slope, (now - other_zero_s) * other_slope
            if slope == other_slope:
                # They never cross.
                one_first = (zero_s, one) < (other_zero_s, other)
            else:
                one_first = (-value, one) < (-other_value, other)
                ahead = value - other_value if one_first else other_value - value
                closing = other_slope - slope if one_first else slope - other_slope
                meet_s = max(0.0, ahead / closing)
                near = _NEAR * (abs(value) + abs(other_value) + meet_s * max(slope, other_slope))
                if ahead <= near:
                    until_s = min(until_s, now)
                elif closing > 0:
                    until_s = min(until_s, now + (ahead - near) / closing)
            winners[node] = one if one_first else other
        sure_s[node] = until_s


class Moving(Ranking):
    """A ranking that follows the clock: it has no entries, `QueryOrder.turns` says what is next.

    A kind of it keeps what it needs for that in `_set`, which is told of each key that changes.
    """

    __slots__ = ()

    def put(self, uid: int, key: Key) -> None:
        old = self.keys.get(uid)
        if old != key:
            self.changes += 1
            self.keys[uid] = key
            self._set(uid, old, key)

    def drop(self, uid: int) -> None:
        self.changes += 1
        self._set(uid, self.keys.pop(uid), None)

    def refill(self, keys: Iterable[tuple[int, Key]]) -> None:
        for uid, key in keys:
            self.put(uid, key)

    def _set(self, uid: int, old: Key | None, new: Key | None) -> None:
        raise NotImplementedError

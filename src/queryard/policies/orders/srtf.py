"""Shortest remaining time first, in its share form."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from heapq import merge
from typing import Self

from queryard.core.entities import Candidate
from queryard.core.lines import Line, Lines, Moving
from queryard.core.parts import QueryOrder
from queryard.core.rankings import Key, Ranking
from queryard.core.state import State

# A query with nothing left by its estimate would ask for infinitely many slots.
LEAST_WORK_S = 1e-3


class ClaimRanking(Moving):
    """Queries by the slots they hold, and among equals by their claims, which are lines.

    A claim is s'·σ without the factor that all queries share. Keys are (slots, slope of the claim,
    time at which it was 0).
    """

    __slots__ = ("by_slots",)

    def __init__(self) -> None:
        super().__init__()
        self.by_slots: dict[float, Lines] = {}

    def _set(self, uid: int, old: Key | None, new: Key | None) -> None:
        slots = None
        if new is not None:
            slots, slope, zero_s = new  # type: ignore[misc]
            lines = self.by_slots.get(slots)
            if lines is None:
                lines = self.by_slots[slots] = Lines()
            lines.put(uid, Line(slope, zero_s))
        if old is not None and old[0] != slots:  # type: ignore[index]
            lines = self.by_slots[old[0]]  # type: ignore[index]
            lines.drop(uid)
            if not lines.lines:
                del self.by_slots[old[0]]  # type: ignore[index]

    def fork(self) -> Self:
        copy = super().fork()
        copy.by_slots = {slots: lines.fork() for slots, lines in self.by_slots.items()}
        return copy

    @property
    def is_sound(self) -> bool:
        held = {
            uid: (slots, *line)
            for slots, lines in self.by_slots.items()
            for uid, line in lines.lines.items()
        }
        return held == self.keys and all(lines.is_sound for lines in self.by_slots.values())


class ShortestRemaining(QueryOrder):
    """Serve the smallest deficit Δ = s - s'·σ. O(g log² n) per decision, amortised.

    s are the slots a query holds; s' = n / (w · Σ 1/w) those it should hold, n being all slots
    and w its remaining core-seconds; σ = (elapsed + w/s) / (W/n) guards against starvation,
    W being its whole work. With no slot yet, σ takes max(s, 1). POSUM §5.3.2, after hSRTF.

    Two fresh queries of 10 and 30 core-seconds on 4 slots should have 3 and 1. Deviation: the
    sum runs over the queries that can use a slot, as the others could not take their share,
    and elapsed time counts from submission. Among queries with the same number of slots the order
    does not depend on the sum; g is how many such numbers there are.
    """

    name = "srtf"
    citation = "POSUM §5.3.2 (hSRTF)"
    changes_with = frozenset({"slots", "work", "time"})

    def __init__(self) -> None:
        # 1/w by candidate, the sum, and how often a rounded step was added to it.
        self._inverses: dict[int, float] = {}
        self._inverse = 0.0
        self._steps = 0

    def fork(self) -> Self:
        twin = super().fork()
        twin._inverses = self._inverses.copy()
        return twin

    def ranking(self) -> ClaimRanking:
        return ClaimRanking()

    def key(self, candidate: Candidate, state: State) -> tuple[float, float, float]:
        query = candidate.query
        slots = query.slots
        left_s = max(query.left_s, LEAST_WORK_S)
        total_s = max(query.total_s, LEAST_WORK_S)
        self._count(candidate.uid, 1.0 / left_s)
        # (elapsed + w/s) / (w · W) as a line
        return (slots, 1.0 / (left_s * total_s), query.submit_s - left_s / (slots or 1))

    def key_now(self, key: Key, leaf: Sequence[Ranking], state: State) -> float:
        slots, slope, zero_s = key  # type: ignore[misc]
        return slots - self._scale(state) * Line(slope, zero_s).at(state.now)

    def turns(
        self, ranking: Ranking, leaf: Sequence[Ranking], state: State
    ) -> Iterator[tuple[Key, int]]:
        assert isinstance(ranking, ClaimRanking)
        now, scale = state.now, self._scale(state)
        groups = ranking.by_slots.items()
        if not scale:  # there are no slots
            yield from sorted((slots, uid) for slots, lines in groups for uid in lines.lines)
        elif groups:
            # Nearly always the first takes the slot, and there is no need to merge.
            first = min((slots - scale * lines.first(now), lines.winner) for slots, lines in groups)
            yield first
            merged = merge(*(_deficits(slots, lines, scale, now) for slots, lines in groups))
            yield from (each for each in merged if each[1] != first[1])

    def left(self, uid: int) -> None:
        self._count(uid, 0.0)
        del self._inverses[uid]

    def _scale(self, state: State) -> float:
        """n² / Σ 1/w."""
        return state.total_slots**2 / (self._inverse or 1.0)

    def _count(self, uid: int, inverse: float) -> None:
        before = self._inverses.get(uid, 0.0)
        if inverse != before:
            self._inverses[uid] = inverse
            self._inverse += inverse - before
            self._steps += 1
            if self._steps > len(self._inverses):
                self._inverse, self._steps = math.fsum(self._inverses.values()), 0


def _deficits(slots: float, lines: Lines, scale: float, now: float) -> Iterator[tuple[float, int]]:
    for claim, uid in lines.turns(now):
        yield slots + scale * claim, uid

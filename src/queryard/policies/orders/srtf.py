"""Shortest remaining time first, in its share form."""

from __future__ import annotations

from collections.abc import Collection

from queryard.core.entities import Candidate
from queryard.core.parts import QueryOrder
from queryard.core.state import State

# A query with nothing left by its estimate would ask for infinitely many slots.
LEAST_WORK_S = 1e-3


class ShortestRemaining(QueryOrder):
    """Serve the smallest deficit Δ = s - s'·σ. O(log n) a decision, amortised.

    s are the slots a query holds; s' = n / (w · Σ 1/w) those it should hold, n being all slots
    and w its remaining core-seconds; σ = (elapsed + w/s) / (W/n) guards against starvation,
    W being its whole work. With no slot yet, σ takes max(s, 1). POSUM §5.3.2, after hSRTF.

    Two fresh queries of 10 and 30 core-seconds on 4 slots should have 3 and 1. Deviation: the
    sum runs over the queries that can use a slot, as the others could not take their share,
    and elapsed time counts from submission. Sum and clock are those of the last refresh.
    """

    name = "srtf"
    citation = "POSUM §5.3.2 (hSRTF)"
    changes_with = frozenset({"slots", "work", "time"})

    def __init__(self) -> None:
        self._clock_s = 0.0
        # n² / Σ 1/w, which is s'·σ without what differs between queries.
        self._scale = 0.0

    def attach(self, state: State) -> None:
        self.prepare(state.queries.values(), state)

    def prepare(self, candidates: Collection[Candidate], state: State) -> None:
        self._clock_s = state.now
        inverse = 0.0
        for candidate in candidates:
            inverse += 1.0 / max(candidate.left_s, LEAST_WORK_S)
        self._scale = state.total_slots**2 / (inverse or 1.0)

    def key(self, candidate: Candidate, state: State) -> float:
        query = candidate.query
        slots = query.slots
        elapsed_s = self._clock_s - query.submit_s
        left_s, total_s = query.left_s, query.total_s
        if left_s < LEAST_WORK_S:
            left_s = LEAST_WORK_S
        if total_s < LEAST_WORK_S:
            total_s = LEAST_WORK_S
        # s'·σ = n / (w · Σ 1/w) · (elapsed + w/s) / (W/n)
        return slots - self._scale * (elapsed_s / left_s + 1.0 / (slots or 1)) / total_s

"""The most slowed query first."""

from __future__ import annotations

from collections.abc import Collection

from queryard.core.entities import Candidate
from queryard.core.parts import QueryOrder
from queryard.core.state import State

from ..checks import above_zero


class LargestSlowdown(QueryOrder):
    """Serve the query of the largest elapsed / max(work, MinE). O(log n) a decision, amortised.

    Work is the estimated core-seconds of the whole query (POSUM Eq. 5.2; the text gives the
    finished form, this is the one that can be known while the query runs). Ten seconds after
    submission a query of 5 core-seconds has a slowdown of 2 and passes one of 100 with 0.1.

    Slowdowns grow at different speeds, so the order drifts. All are taken at the time of the
    last refresh: a query that happens to be looked at in between must not gain by it.
    """

    name = "largest-slowdown"
    citation = "POSUM §4.3.1 (LSF)"
    changes_with = frozenset({"size", "time"})

    def __init__(self, min_e_s: float = 1.0) -> None:
        self.min_e_s = above_zero("min_e_s", min_e_s)
        self._clock_s = 0.0

    def attach(self, state: State) -> None:
        self._clock_s = state.now

    def prepare(self, candidates: Collection[Candidate], state: State) -> None:
        self._clock_s = state.now

    def key(self, candidate: Candidate, state: State) -> float:
        query = candidate.query
        return (query.submit_s - self._clock_s) / max(query.total_s, self.min_e_s)

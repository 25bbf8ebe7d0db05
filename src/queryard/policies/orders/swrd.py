"""The query with the least work left first."""

from __future__ import annotations

from queryard.core.entities import Candidate
from queryard.core.parts import QueryOrder
from queryard.core.state import State


class SmallestDemand(QueryOrder):
    """Serve the query with the smallest weighted resource demand. O(log n) per decision.

    WRD (TLS Eq. 4) is the expected core-seconds of all tasks without a result; the weights α
    and β are 1. A query of 40 core-seconds passes one of 400 of which 300 are done.
    """

    name = "swrd"
    citation = "TLS §4.1.2"
    changes_with = frozenset({"work"})

    def key(self, candidate: Candidate, state: State) -> float:
        return candidate.left_s

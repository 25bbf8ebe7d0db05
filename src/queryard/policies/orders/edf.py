"""Earliest deadline first."""

from __future__ import annotations

import math

from queryard.core.entities import Candidate
from queryard.core.parts import QueryOrder
from queryard.core.state import State


class EarliestDeadline(QueryOrder):
    """Serve the query with the earliest deadline. O(log n) per decision.

    Queries without a deadline come after all others, by submission (POSUM has them in another
    queue). With deadlines 90, 60, none, the order is the second, the first, the third; a
    deadline that has passed is still the earliest.
    """

    name = "edf"
    citation = "POSUM §4.3.1"

    def key(self, candidate: Candidate, state: State) -> tuple[float, float]:
        query = candidate.query
        deadline_s = query.deadline
        return (math.inf if deadline_s is None else deadline_s, query.submit_s)

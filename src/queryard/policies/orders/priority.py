"""The more important query first."""

from __future__ import annotations

from queryard.core.entities import Candidate
from queryard.core.parts import QueryOrder
from queryard.core.state import State


class Priority(QueryOrder):
    """Serve the query of the highest priority; ties by submission. O(log n) per decision.

    A query of priority 5 passes all those of priority 0 that came before it, but takes no slot
    from a task that runs. Nothing keeps a low priority from starving.
    """

    name = "priority"
    citation = "Hadoop's FIFO with priorities (POSUM §2.3)"

    def key(self, candidate: Candidate, state: State) -> tuple[float, float]:
        query = candidate.query
        return (-query.spec.priority, query.submit_s)

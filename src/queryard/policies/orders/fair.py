"""Fair sharing inside a leaf: the least served candidate first."""

from __future__ import annotations

from queryard.core.entities import Candidate
from queryard.core.parts import QueryOrder
from queryard.core.state import State

# How long leased slots are held before queries that wait longer may have them.
TURN_S = 1.0


class Fair(QueryOrder):
    """Serve the query that holds the fewest slots; ties by submission. O(log n) per decision.

    Numbers are given in the order of submission, so that they are the whole tie-break.
    Divisible work would never give way to more of its kind than there are slots. There, of
    queries with equally many slots the one that has waited longest comes first, and one that has
    held some for a turn comes last.
    """

    name = "fair"
    citation = "ReLAQS §6 (resource-fair baseline)"
    changes_with = frozenset({"slots", "leased"})

    def key(self, candidate: Candidate, state: State) -> float:
        queued_s = candidate.queued_s
        if queued_s is None:
            return candidate.slots
        if candidate.lease_began_s is not None:
            if state.now - candidate.lease_began_s < TURN_S:
                return candidate.slots
            queued_s = state.now
        # A time as a part of 1: the earlier, the less.
        return candidate.slots + queued_s / (1.0 + queued_s)


class FairJobs(Fair):
    """Serve the job that holds the fewest slots, as Hadoop's fair scheduler does."""

    name = "fair-jobs"
    citation = "TLS §2 (HFS)"
    unit = "job"

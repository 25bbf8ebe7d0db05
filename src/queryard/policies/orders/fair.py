"""Fair sharing inside a leaf: the least served candidate first."""

from __future__ import annotations

from queryard.core.entities import Candidate
from queryard.core.parts import QueryOrder
from queryard.core.state import State


class Fair(QueryOrder):
    """Serve the query that holds the fewest slots; ties by submission. O(log n) a decision.

    Numbers are given in the order of submission, so that they are the whole tie-break.
    """

    name = "fair"
    citation = "ReLAQS §6 (resource-fair baseline)"
    changes_with = frozenset({"slots"})

    def key(self, candidate: Candidate, state: State) -> float:
        return candidate.slots


class FairJobs(Fair):
    """Serve the job that holds the fewest slots, as Hadoop's fair scheduler does."""

    name = "fair-jobs"
    citation = "TLS §2 (HFS)"
    unit = "job"

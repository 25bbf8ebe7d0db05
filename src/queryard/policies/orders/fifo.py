"""First in, first out, by query or (as Hadoop does) by job."""

from __future__ import annotations

from queryard.core.entities import Candidate
from queryard.core.parts import QueryOrder
from queryard.core.state import State


class Fifo(QueryOrder):
    """Serve the query that was submitted first. O(1) per decision.

    With arrivals a, b and slots for one task, all of a runs before b.
    """

    name = "fifo"
    citation = "TuMM §3"

    def key(self, candidate: Candidate, state: State) -> float:
        return candidate.query.submit_s


class FifoJobs(QueryOrder):
    """Serve the job that became ready first, whatever query it belongs to.

    This is FIFO inside a queue of Hadoop's capacity scheduler: a query's later jobs queue
    behind earlier jobs of all others, which is what stalls small queries (TLS §2).
    """

    name = "fifo-jobs"
    citation = "TLS §2 (HCS)"
    unit = "job"

    def key(self, candidate: Candidate, state: State) -> float:
        return candidate.ready_s  # type: ignore[union-attr]

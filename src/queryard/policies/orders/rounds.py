"""Online queries in rounds: the one with the fewest answers first."""

from __future__ import annotations

from typing import ClassVar

from queryard.core.entities import Candidate
from queryard.core.parts import Change, QueryOrder
from queryard.core.state import State


class Rounds(QueryOrder):
    """Serve the query that has gone round the fewest batches. O(log n) per decision.

    Queries over one table that go round it together all have a first answer after one round, and
    read each part of it at about the same time, so that what one has parsed serves the others.
    A query without answers, an exact one say, counts as one that has yet to begin.

    Ten queries of a hundred batches on one slot: each has its first answer after ten batches at
    most, where one after another the last would wait for nine hundred.
    """

    name = "rounds"
    changes_with: ClassVar[frozenset[Change]] = frozenset({"work"})

    def key(self, candidate: Candidate, state: State) -> int:
        return sum(job.answers[-1].batch for job in candidate.query.jobs if job.answers)

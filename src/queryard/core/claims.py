"""Which candidate of a leaf makes the most of one more slot, where queries have speed-up curves.

The order of a leaf says which query is to end first. It need not have all slots for that: a query
that hardly gets faster by its second slot does better to leave it to the next. The first of m
queries keeps all m waiting, the second m - 1 of them, and so on; three more are taken to be on
their way. So a slot is worth, to a candidate, what it adds to the speed, times the number of
queries from its place on; each slot goes where it is worth most. With perfect curves that is the
first candidate, as without curves. Of two queries on two slots the first has both if its speed on
two is above 1.8 (if none came any more, 1.5 would make the mean response least); of a hundred it
has both if it is above 1.99. For equal curves and no arrivals the optimum is known and has the
same form (heSRPT; Berg, Vesilo, Harchol-Balter 2020).
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from .entities import Candidate, JobState

# Queries that will arrive before the first one ends.
ON_THEIR_WAY = 3


class Claims:
    """The candidates of one leaf in a deal; O(log slots) per slot."""

    def __init__(self, queries: int, line: Iterable[Candidate]) -> None:
        self._queries = queries
        # Those without a slot yet, by place: all gain as much by their first, so the first is next.
        self._line = list(line)
        self._at = 0
        # (the negative worth of one more slot, place, candidate).
        self._more: list[tuple[float, int, Candidate]] = []

    def best(self) -> tuple[int, Candidate] | None:
        """The place and the candidate for which the next slot is worth most; None if none is left.

        It is taken out; `again` puts it back.
        """
        waits = self._at < len(self._line)
        if self._more and not (waits and -self._more[0][0] < self._from(self._at)):
            _, place, candidate = heappop(self._more)
            return place, candidate
        if not waits:
            return None
        self._at += 1
        return self._at - 1, self._line[self._at - 1]

    def again(self, place: int, candidate: Candidate, job: JobState) -> None:
        """A candidate of which this job was given a slot claims another."""
        gain = 1.0 if job.map is not None else job.speedup.gain(job.slots)
        heappush(self._more, (-gain * self._from(place), place, candidate))

    def _from(self, place: int) -> float:
        """How many queries stand from a place on."""
        return max(1, self._queries + ON_THEIR_WAY - place)

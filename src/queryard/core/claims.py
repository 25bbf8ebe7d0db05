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

A query that may be late with the slots it has is worth its place by each further slot: that it ends
soon enough matters more than what the others would gain.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush, heapreplace

from .entities import Candidate, JobState

# Queries that will arrive before the first one ends.
ON_THEIR_WAY = 3
# A query may be late if it would take so many times as long as there is time, since it begins later
# and takes longer than expected; and it is not given up until it would be with all its slots.
SLACK, HOPELESS = 3.0, 4.0


# The negative worth of one more slot, the place, the candidate, the job of it that was given a slot
# last, and the speed of the job with one more.
Claim = tuple[float, int, Candidate, JobState, float]


def is_pressed(job: JobState, now: float) -> bool:
    """Whether its query may miss its deadline with the slots it has, and not for certain."""
    deadline = job.query.deadline
    if deadline is None:
        return False
    left_s, speedup = job.left_s, job.speedup
    time_s = deadline - now
    return left_s * SLACK > time_s * speedup.speed(
        job.slots
    ) and left_s < HOPELESS * time_s * speedup.speed(job.width)


class Claims:
    """The candidates of one leaf in a deal; O(log slots) per slot."""

    def __init__(self, queries: int, line: Iterable[Candidate], now: float) -> None:
        self._now = now
        # Those without a slot yet, by place: all gain as much by their first, so the first is next.
        self._line = list(line)
        self._at = 0
        self._more: list[Claim] = []
        # How many queries stand from the first place on.
        self._from_first = max(queries, len(self._line)) + ON_THEIR_WAY

    def best(self) -> tuple[int, Candidate] | None:
        """The place and the candidate for which the next slot is worth most; None if none is left.

        It is taken out; `again` puts it back.
        """
        if self.first() is not None:
            _, place, candidate, _, _ = heappop(self._more)
            return place, candidate
        if self._at == len(self._line):
            return None
        self._at += 1
        return self._at - 1, self._line[self._at - 1]

    def first(self) -> Claim | None:
        """The claim of that candidate, if it was given a slot before."""
        if not self._more:
            return None
        claim = self._more[0]
        waits = self._at < len(self._line)
        return None if waits and -claim[0] < self._from_first - self._at else claim

    def again(self, place: int, candidate: Candidate, job: JobState) -> None:
        """A candidate of which this job was given a slot claims another."""
        speed = job.speedup.speed(job.slots + 1)
        worth = self._worth(place, job, speed - job.speedup.speed(job.slots))
        heappush(self._more, (-worth, place, candidate, job, speed))

    def drop_first(self) -> None:
        heappop(self._more)

    def raise_first(self, speed: float) -> None:
        """The job of the first claim was given its slot; with another it would be so fast."""
        _, place, candidate, job, before = self._more[0]
        worth = self._worth(place, job, speed - before)
        heapreplace(self._more, (-worth, place, candidate, job, speed))

    def _worth(self, place: int, job: JobState, gain: float) -> float:
        if job.map is not None or is_pressed(job, self._now):
            gain = 1.0
        return gain * (self._from_first - place)

"""What is likely to arrive while a queue is served: what came of late, once more.

A trial without arrivals favours policies that serve newcomers first: what newcomers take from the
queries that wait is not seen in it. So the latest past comes again, tenant by tenant. A trial can
follow a few arrivals only, and small queries come in great numbers: neighbours of one stream come
together, as one query with the work of all. Policies take it for one of them, so that they order it
as such.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import NamedTuple

from queryard.core.entities import QueryState
from queryard.core.events import EstimateChanged
from queryard.core.model import Divisible, Job, Query
from queryard.sim.estimates import EstimateSource
from queryard.workload.model import Arrival, JobTruth

from .scores import QueryEnd

# How far back arrivals count, how many of them at most, and how short a past may be.
PAST_S, MOST_PAST, LEAST_PAST_S = 10.0, 1024, 5.0
# Of what comes later than this, such a past says nothing.
MOST_AHEAD_S = 20.0
# What comes within so long is one moment.
MOMENT_S = 0.05
# A trial follows so many arrivals at most.
MOST = 32
# No more is expected than this share of what the machine can do; else no queue would end.
MOST_LOAD = 0.8
# Sizes of one stream are apart by at most this factor.
SIZE_STEP = 8.0
# How the ids of expected queries begin.
MARK = "expected "
JOB = "all"


class Arrived(NamedTuple):
    """A query that came: when, whose, its core-seconds, and the time until its deadline."""

    time_s: float
    tenant: str
    work_s: float
    due_in_s: float | None = None

    @classmethod
    def of(cls, query: QueryState) -> Arrived:
        """A query that waits or runs, by its estimate."""
        due_s = query.spec.deadline_s
        due_in_s = None if due_s is None else due_s - query.submit_s
        return cls(query.submit_s, query.spec.tenant, query.total_s, due_in_s)


class Expected(NamedTuple):
    """So many queries of one stream, which come together; `work_s` is that of all."""

    time_s: float
    tenant: str
    work_s: float
    queries: int = 1
    due_in_s: float | None = None


class Recent:
    """The queries that came of late and have ended; the same calls give the same answers."""

    def __init__(self, began_s: float = 0.0) -> None:
        self._began_s = began_s
        self._came: deque[Arrived] = deque(maxlen=MOST_PAST)

    def note(self, arrived: Arrived) -> None:
        """A query has ended."""
        self._came.append(arrived)

    def expected(
        self, waiting: Iterable[Arrived], now: float, queue_s: float, slots: int
    ) -> tuple[Expected, ...]:
        """What is likely to come while those `waiting`, a queue `queue_s` long, are served.

        >>> recent = Recent()
        >>> for n in range(11):
        ...     recent.note(Arrived(float(n), "web", 0.2))
        >>> [each.time_s for each in recent.expected([], 10.0, 2.5, 1)]
        [10.5, 11.5, 12.5]
        """
        began_s = self._began_s
        if len(self._came) == MOST_PAST:
            began_s = max(began_s, self._came[0].time_s)
        past_s = min(PAST_S, now - began_s)
        if past_s < LEAST_PAST_S:
            return ()
        came = _steady(each for each in (*self._came, *waiting) if each.time_s >= now - past_s)
        load = sum(each.work_s for each in came) / past_s / max(1, slots)
        share = min(1.0, MOST_LOAD / load) if load else 0.0
        ahead_s = min(queue_s / (1.0 - load * share), MOST_AHEAD_S)
        streams = _streams(came)
        counts = [len(stream) * share * ahead_s / past_s for stream in streams]
        found: list[Expected] = []
        for stream, count, together in zip(streams, counts, _together(counts), strict=True):
            every_s = together * ahead_s / count
            work_s = together * fmean(each.work_s for each in stream)
            due = [each.due_in_s for each in stream if each.due_in_s is not None]
            due_in_s = fmean(due) if due else None
            times_s = (now + (n + 0.5) * every_s for n in range(math.ceil(count / together)))
            found += [
                Expected(at_s, stream[0].tenant, work_s, together, due_in_s)
                for at_s in times_s
                if at_s < now + ahead_s
            ]
        return tuple(sorted(found, key=lambda each: (each.time_s, each.tenant, each.work_s)))


def _steady(came: Iterable[Arrived]) -> list[Arrived]:
    """What came of each tenant but its largest moment: one batch is no reason to expect another.

    >>> [each.work_s for each in _steady([Arrived(1.0, "a", 9.0), Arrived(2.0, "a", 1.0)])]
    [1.0]
    """
    moments: dict[str, list[list[Arrived]]] = {}
    for each in sorted(came, key=lambda each: each.time_s):
        of = moments.setdefault(each.tenant, [])
        if of and each.time_s <= of[-1][-1].time_s + MOMENT_S:
            of[-1].append(each)
        else:
            of.append([each])
    found = []
    for of in moments.values():
        largest = max(of, key=lambda moment: sum(each.work_s for each in moment))
        found += [each for moment in of if moment is not largest for each in moment]
    return found


def _streams(came: Iterable[Arrived]) -> list[list[Arrived]]:
    """Queries of a tenant that are about as large, by time."""
    streams: dict[tuple[str, int, bool], list[Arrived]] = {}
    for each in sorted(came, key=lambda each: each.time_s):
        size = math.floor(math.log(max(each.work_s, 1e-4), SIZE_STEP))
        streams.setdefault((each.tenant, size, each.due_in_s is None), []).append(each)
    return [streams[key] for key in sorted(streams)]


def _together(counts: Sequence[float]) -> list[int]:
    """How many of each stream come together, so that few come in all: first of the most numerous.

    >>> _together([60.0, 1.0]), _together([8.0, 1.0])
    ([2, 1], [1, 1])
    """
    together = [1] * len(counts)
    left = list(counts)
    while sum(left) > MOST and max(left) > 1:
        most = left.index(max(left))
        together[most] *= 2
        left[most] /= 2
    return together


def as_arrivals(expected: Sequence[Expected], slots: int) -> list[Arrival]:
    """Expected queries as a simulation takes them: work that all slots can serve."""
    found = []
    for number, each in enumerate(expected):
        due_s = None if each.due_in_s is None else each.time_s + each.due_in_s
        job = Job(JOB, divisible=Divisible(max(1, slots)))
        query = Query(
            f"{MARK}{number}", (job,), each.tenant, submit_s=each.time_s, deadline_s=due_s
        )
        found.append(Arrival(query, {JOB: JobTruth(work_s=each.work_s)}))
    return found


def as_one(expected: Sequence[Expected]) -> EstimateSource:
    """Estimates of these arrivals: queries that come together are taken for one of them."""
    work_s = {f"{MARK}{n}": each.work_s / each.queries for n, each in enumerate(expected)}

    def source(now: float, arrival: Arrival) -> list[EstimateChanged]:
        query = arrival.query
        return [EstimateChanged(now, query.job_id(JOB), work_s=work_s[query.id])]

    return source


def one_by_one(expected: Expected, end: QueryEnd, slots: int) -> list[QueryEnd]:
    """The ends of queries that were put together, as if each had come alone."""
    if expected.queries == 1:
        return [end]
    task_s = end.task_s / expected.queries
    others_s = (end.task_s - task_s) / max(1, slots)
    end_s = max(end.submit_s, end.end_s - others_s)
    return [end._replace(end_s=end_s, task_s=task_s)] * expected.queries

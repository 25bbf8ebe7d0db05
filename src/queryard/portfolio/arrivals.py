"""What is likely to arrive soon: what has arrived of late, once more.

A trial without arrivals favours policies that serve newcomers first: of what they take from others
it shows nothing. So the latest past is played again behind the present, tenant by tenant. What
came at once counts as one query: a batch is no reason to expect another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from queryard.core.model import Divisible, Job, Query
from queryard.workload.model import Arrival, JobTruth

# How far back arrivals count, how many of them at most, and how short a past may be.
PAST_S, MOST_PAST, LEAST_PAST_S = 20.0, 512, 1.0
# A tenant that came less often is not expected again.
LEAST = 3
# What comes within so long is one moment.
MOMENT_S = 0.02
# A trial knows so many arrivals at most.
MOST = 64
# New queries may take up to this share of the machine; else the present would never end.
MOST_LOAD = 0.8
# How the ids of expected queries begin.
MARK = "expected "


class Arrived(NamedTuple):
    """A query that came, or is expected: when, whose, its core-seconds, and its time."""

    time_s: float
    tenant: str
    work_s: float
    due_in_s: float | None = None


class Recent:
    """Remembers what came; the same calls give the same answers."""

    def __init__(self, began_s: float = 0.0) -> None:
        self._began_s = began_s
        self._came: deque[Arrived] = deque(maxlen=MOST_PAST)
        self._seen: dict[str, None] = {}

    def note(self, query: str, arrived: Arrived) -> None:
        """A query has come; that it is told of again does not matter."""
        if query in self._seen:
            return
        self._seen[query] = None
        if len(self._seen) > 2 * MOST_PAST:
            del self._seen[next(iter(self._seen))]
        self._came.append(arrived)

    def expected(self, now: float, queue_s: float, slots: int) -> tuple[Arrived, ...]:
        """What is likely to come while the queue, `queue_s` long, is served.

        >>> recent = Recent()
        >>> for n in range(10):
        ...     recent.note(f"q{n}", Arrived(float(n), "web", 0.2))
        >>> [(each.time_s, each.tenant) for each in recent.expected(10.0, 2.5, 1)]
        [(10.0, 'web'), (11.0, 'web'), (12.0, 'web'), (13.0, 'web')]
        """
        past_s = min(PAST_S, now - self._began_s)
        if past_s < LEAST_PAST_S:
            return ()
        came = _steady(each for each in self._came if each.time_s > now - past_s - 1e-9)
        load = sum(each.work_s for each in came) / past_s / max(1, slots)
        until_s = now + queue_s / (1.0 - min(load, MOST_LOAD))
        found: list[Arrived] = []
        turn = 1
        while came and len(found) < MOST:
            for each in came:
                at_s = each.time_s + turn * past_s
                if at_s >= until_s or len(found) == MOST:
                    return tuple(found)
                found.append(each._replace(time_s=max(now, at_s)))
            turn += 1
        return tuple(found)


def _steady(came: Iterable[Arrived]) -> list[Arrived]:
    """One query per moment and tenant, of tenants that came at several moments; by time."""
    by_tenant: dict[str, list[Arrived]] = {}
    for each in sorted(came):
        found = by_tenant.setdefault(each.tenant, [])
        if not found or each.time_s > found[-1].time_s + MOMENT_S:
            found.append(each)
    return sorted(
        each for found in by_tenant.values() if len(found) >= LEAST for each in found
    )


def as_arrivals(expected: Sequence[Arrived], slots: int) -> list[Arrival]:
    """Expected queries as a simulation takes them: work that all slots can serve."""
    found = []
    for number, each in enumerate(expected):
        due_s = None if each.due_in_s is None else each.time_s + each.due_in_s
        job = Job("all", divisible=Divisible(max(1, slots)))
        name = f"{MARK}{number}"
        query = Query(name, (job,), each.tenant, submit_s=each.time_s, deadline_s=due_s)
        found.append(Arrival(query, {"all": JobTruth(work_s=each.work_s)}))
    return found

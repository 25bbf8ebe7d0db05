"""What ideal sharing could do with the same arrivals: fluid references beside the policies.

Work is a fluid here: no tasks, no stages, no start costs, no estimates, rates that change at
will. Two rules bracket what is possible: **processor sharing**, what a fair machine gives, and
**shortest remaining work first**, which knows every query's work and, where any query can use
all slots, has the least mean response there is. A query's rate is at most `work_s / alone_s`
(its own parallelism on the idle cluster) and at most all slots, so that its response is never
below its time alone.

>>> queries = [Demand("long", 0.0, 100.0, 10.0), Demand("short", 0.0, 10.0, 1.0)]
>>> processor_sharing(queries, slots=10)
{'long': 11.0, 'short': 2.0}
>>> shortest_remaining_first(queries, slots=10)
{'long': 11.0, 'short': 1.0}
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from queryard.core.errors import InvalidModel
from queryard.workload.model import Workload

from .fluid_sharing import Sharing
from .fluid_shortest import Shortest


class Demand(NamedTuple):
    """A query as a fluid: when it comes, its core-seconds, and its time alone."""

    id: str
    arrival_s: float
    work_s: float
    alone_s: float


def demands_of(workload: Workload, alone_s: Mapping[str, float]) -> list[Demand]:
    """The arrivals of a workload, without those that are cancelled, or that fail even alone."""
    return [
        Demand(arrival.query.id, arrival.query.submit_s, arrival.work_s, alone_s[arrival.query.id])
        for arrival in workload.arrivals
        if arrival.cancel_s is None and arrival.query.id in alone_s
    ]


def processor_sharing(demands: Iterable[Demand], slots: float) -> dict[str, float]:
    """Responses under equal rates (water-filling), each query below its own maximum rate."""
    return _respond(demands, slots, Sharing(slots))


def shortest_remaining_first(demands: Iterable[Demand], slots: float) -> dict[str, float]:
    """Responses if the query with the least work left always has all the slots it can use.

    The order is taken anew at every arrival and every end.
    """
    return _respond(demands, slots, Shortest(slots))


# As tables call them.
IDEALS: Mapping[str, Callable[[Iterable[Demand], float], dict[str, float]]] = {
    "ideal PS": processor_sharing,
    "clairvoyant SRPT": shortest_remaining_first,
}


class _Discipline(Protocol):
    """Which query is served at which rate: takes arrivals, gives ends."""

    def arrive(self, now_s: float, number: int, work_s: float, widest: float) -> None: ...

    def next_end_s(self) -> float:
        """When the next query ends if none arrives before; infinite if there is none."""

    def end(self) -> int:
        """Move to that time and take the query out."""


def _respond(demands: Iterable[Demand], slots: float, queries: _Discipline) -> dict[str, float]:
    """Run the arrivals through a discipline; responses in the order of the demands."""
    if not 0 < slots < math.inf:
        raise InvalidModel(f"slots must be a number above 0, got {slots!r}")
    listed = list(demands)
    for demand in listed:
        if not all(0 <= value < math.inf for value in demand[1:]):
            raise InvalidModel(f"{demand!r}: times and work must be at least 0 and finite")
    responses = {demand.id: demand.alone_s for demand in listed}
    if len(responses) < len(listed):
        raise InvalidModel("two of the queries have the same id")

    def end_until(now_s: float) -> None:
        while (end_s := queries.next_end_s()) <= now_s and end_s < math.inf:
            demand = listed[queries.end()]
            responses[demand.id] = max(demand.alone_s, end_s - demand.arrival_s)

    for number, demand in sorted(enumerate(listed), key=lambda item: item[1].arrival_s):
        if demand.work_s:
            end_until(demand.arrival_s)
            widest = min(slots, demand.work_s / demand.alone_s) if demand.alone_s else slots
            queries.arrive(demand.arrival_s, number, demand.work_s, widest)
    end_until(math.inf)
    return responses

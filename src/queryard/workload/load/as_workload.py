"""A load as a workload of the simulator: the same arrivals, with the measured work as the truth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from queryard.core.model import Divisible, Job, Node, Query, Tenant
from queryard.workload.model import Arrival, JobTruth, Workload

from .model import Alone, Request

WHOLE = "whole"
_BOUNDS_S = ((0.01, "up to 10 ms"), (0.1, "up to 100 ms"), (1.0, "up to 1 s"), (10.0, "up to 10 s"))
_BEYOND = "above 10 s"


def size_bin(work_s: float) -> str:
    """The bin of a query by its core-seconds.

    >>> size_bin(0.05), size_bin(60.0)
    ('up to 100 ms', 'above 10 s')
    """
    return next((name for bound_s, name in _BOUNDS_S if work_s <= bound_s), _BEYOND)


def as_workload(
    name: str,
    requests: Iterable[Request],
    alone: Mapping[str, Alone],
    slots: int,
    tenants: tuple[Tenant, ...] = (),
) -> Workload:
    """One divisible job per request, on one node with all the slots.

    Requests of templates that could not be measured are left out.
    """
    arrivals = []
    for request in requests:
        measured = alone.get(request.template)
        if measured is None:
            continue
        truth = JobTruth(work_s=measured.work_s)
        found = size_bin(measured.work_s)
        arrivals.append(Arrival(query_of(request, alone, slots), {WHOLE: truth}, size_bin=found))
    return Workload(name, tuple(arrivals), nodes=(Node("local", slots),), tenants=tenants)


def query_of(request: Request, alone: Mapping[str, Alone], slots: int) -> Query:
    """A request as a query of the kernel."""
    within_s = request.due_within_s(alone)
    return Query(
        request.id,
        (Job(WHOLE, divisible=Divisible(slots)),),
        tenant=request.tenant,
        priority=request.priority,
        submit_s=request.time_s,
        deadline_s=None if within_s is None else request.time_s + within_s,
        class_name=request.template,
    )

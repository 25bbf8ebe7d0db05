"""How long one more query of a tenant would wait: a forecast of the queue with it in it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from queryard.core.events import EstimateChanged, QuerySubmitted, Resumed
from queryard.core.model import Divisible, Job, Query
from queryard.core.scheduler import Scheduler
from queryard.sim.conditions import Conditions
from queryard.sim.forecast import resume

from ..request import QueryRequest

# How long a forecast is reused for further queries of the tenant.
GOOD_FOR_S = 1.0
# In how many steps the simulation checks whether the query has begun.
STEPS = 20
PROBE = "one-more"


class _Known(NamedTuple):
    at_s: float
    wait_s: float


_Kind = tuple[str, float, bool]


def _kind(request: QueryRequest) -> _Kind:
    """Equal for queries with the same rank: of one tenant and equally urgent."""
    return request.tenant, request.priority, request.deadline_s is not None


class Waits:
    """Remembers one forecast per tenant; from any thread.

    `fork` is the kernel as it is, to be simulated; `now` the host's clock.
    """

    def __init__(self, fork: Callable[[], Scheduler], now: Callable[[], float]) -> None:
        self._fork = fork
        self._now = now
        self._lock = threading.Lock()
        self._known: dict[_Kind, _Known] = {}

    def expected_s(self, request: QueryRequest, work_s: float, most_s: float) -> float:
        """Seconds until a query would begin; not simulated much further than `most_s`."""
        now = self._now()
        kind = _kind(request)
        known = self._known.get(kind)
        if known is None or now - known.at_s > GOOD_FOR_S:
            known = _Known(now, _wait_s(self._fork(), request, work_s, 2 * most_s))
            with self._lock:
                self._known = {
                    other: of for other, of in self._known.items() if now - of.at_s <= GOOD_FOR_S
                }
                self._known[kind] = known
        return max(0.0, known.wait_s - (now - known.at_s))

    def entered(self, request: QueryRequest, seconds: float) -> None:
        """A query was admitted, ahead of the next of its tenant."""
        with self._lock:
            for kind, known in self._known.items():
                if kind[0] == request.tenant:
                    self._known[kind] = known._replace(wait_s=known.wait_s + seconds)


def _wait_s(fork: Scheduler, request: QueryRequest, work_s: float, most_s: float) -> float:
    """Simulate the queue with the query until it begins; `most_s` if it does not before."""
    state = fork.state
    now = state.now
    job = Job("probe", divisible=Divisible(max(1, state.total_slots)))
    query = Query(
        PROBE,
        (job,),
        tenant=request.tenant,
        priority=request.priority,
        memory_bytes=float(request.memory_bytes or 0),
        submit_s=now,
        deadline_s=request.deadline_s,
    )
    # Its work is known before the others are resumed, so that it is simulated as they are.
    fork.handle(
        QuerySubmitted(now, query), EstimateChanged(now, query.job_id("probe"), work_s=work_s)
    )
    if state.paused_by is not None:
        # How long a pause lasts is not known: the wait that counts is the one after it.
        fork.handle(Resumed(now))
    driver = resume(fork, Conditions(node_boot_s=0.0))
    for step in range(STEPS + 1):
        probe = state.queries.get(PROBE)
        if probe is None:  # it was so short that it is over by now
            return max(0.0, driver.ends[PROBE] - now - work_s)
        if probe.started_s is not None:
            return probe.started_s - now
        driver.run(now + most_s * step / STEPS)
    return most_s

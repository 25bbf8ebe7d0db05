"""An execution by DuckDB on leased slots, and the jobs of the kernel that bring the slots.

Several identical queries of the kernel may share one execution, and each brings the slots it is
granted. Each is a member, with leases of its own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from queryard.backends.protocol import Usage
from queryard.core.events import WidthChanged
from queryard.engine.meter import Meter, SlotMeter
from queryard.engine.program import Reports
from queryard.engine.statement import Lease
from queryard.estimate.widths import Idling
from queryard.results.fan import Fan
from queryard.results.streams import ResultStream

# A revoked slot that is not back after `OVERSTAY_S` is written off; after `SOON_S` while a tenant
# below its guarantee waits. Slots of an execution that usually take longer than `SOON_S` to come
# back are not waited for.
OVERSTAY_S, SOON_S = 0.05, 0.02
# The weight of the last returned slot in the moving average.
LAST_COUNTS = 0.3
# How long a narrowed query waits before it tries again to use more slots, at first and at most.
RETRY_S = (0.03, 1.6)


class Serving(Protocol):
    """A query on leased slots: `queryard.engine.native.NativeQuery` is one."""

    error: BaseException | None
    ended: bool

    @property
    def on_session(self) -> bool:
        """Whether it runs on a connection that is used again right after it."""

    @property
    def computes(self) -> bool:
        """Whether slots compute now, and are not about to plan or to hand over rows."""

    @property
    def sprints(self) -> bool:
        """Whether it is to sprint, so that it tells by itself when it is ready."""

    @property
    def sprinting(self) -> bool:
        """Whether it need not be polled to see that it is ready."""

    @property
    def lost_sprint_s(self) -> float | None:
        """For how long it sprinted before it began again (0: it did not); None without a sprint."""

    @property
    def current_s(self) -> float:
        """For how long its statement at hand is being served."""

    @property
    def seems_ready(self) -> bool:
        """Whether the next poll may find that it is ready."""

    def serve(self, lease: Lease) -> None: ...
    def withdraw(self, lease: Lease) -> None: ...
    def poll(self) -> None: ...
    def progress(self) -> float: ...
    def memory_bytes(self) -> int | None: ...
    def cancel(self, error: BaseException | None = None) -> None: ...


@runtime_checkable
class Reporting(Protocol):
    """A query that answers after every batch."""

    def reports_to(self, report: Reports, meter: Meter) -> None:
        """Where it tells its answers, and where it learns what it has cost."""


class SlotLease(Lease):
    """A slot of a node, lent to a member."""

    def __init__(self, node: str) -> None:
        super().__init__()
        self.node = node
        self.stay: SlotMeter | None = None
        # When its thread began, and whether that may run on any core by now.
        self.began_s = math.inf
        self.is_free = False
        # When it was revoked; and when it was written off (reported as returned while still busy).
        self.revoked_s: float | None = None
        self.written_off_s: float | None = None


class Member:
    """One divisible job of the kernel: its leases, what they cost, how many it can use."""

    def __init__(
        self,
        query: str,
        job: str,
        width: int,
        output: ResultStream,
        post: Callable[[WidthChanged], None],
        *,
        narrow: bool = False,
    ) -> None:
        """A `narrow` one has one slot, until it is looked at for the first time."""
        self.query = query
        self.output = output
        self.job = job
        self.meter = Meter()
        self.leases: list[SlotLease] = []
        # Whether its end was reported to the kernel.
        self.end_told = False
        self.burst_s = 0.0
        # The node of its first slot.
        self.node = ""
        self._post = post
        self._most = width
        self._told = 1 if narrow else width
        self._narrowed: int | None = 1 if narrow else None
        self._retry_at_s = 0.0
        self._retry_s = RETRY_S[0]

    @property
    def counted(self) -> bool:
        """Whether the kernel counts slots of it."""
        return any(lease.written_off_s is None for lease in self.leases)

    @property
    def usage(self) -> Usage:
        meter = self.meter
        idling = Idling(meter.looks, meter.beside, meter.asleep)
        return Usage(meter.work_s, meter.held_s, self.burst_s, meter.slots, idling)

    # --- width: what the plan allows -------------------------------------------------------------

    def adapt(self, now: float, idle_s: float) -> None:
        """Give up idle slots, and try now and then to use more.

        Some parts of a plan run on one thread; an idle slot is of more use to another query.
        """
        if self._narrowed is not None:
            if now >= self._retry_at_s:
                self._narrowed = None
                self._tell()
            return
        inside, idle = self.meter.idle(idle_s)
        if not idle or inside < 2:
            return
        soon = now - self._retry_at_s < 2 * idle_s + 0.05
        self._retry_s = min(2 * self._retry_s, RETRY_S[1]) if soon else RETRY_S[0]
        self._retry_at_s = now + self._retry_s
        self._narrowed = max(1, inside - idle)
        self._tell()

    def widen(self) -> None:
        """Use idle slots again: no other query needs them."""
        if self._narrowed is not None:
            self._narrowed = None
            self._tell()

    def _tell(self) -> None:
        width = self._narrowed or self._most
        if width != self._told:
            self._told = width
            self._post(WidthChanged(0.0, self.job, width))

    # --- leases ----------------------------------------------------------------------------------

    def choose_leases(self, node: str, slots: int) -> list[SlotLease]:
        """Choose the leases to revoke: idle ones, then those granted last."""
        held = [lease for lease in self.leases if not lease.withdrawn and lease.node == node]
        now = time.monotonic()
        idle: list[SlotLease] = []
        busy: list[SlotLease] = []
        for lease in held:
            is_idle = lease.stay is not None and lease.stay.is_idle(now, 0.01)
            (idle if is_idle else busy).append(lease)
        taken = (idle + busy[::-1])[:slots]
        for lease in taken:
            lease.withdrawn = True
            lease.revoked_s = now
        return taken


class LeasedExecution:
    """One execution by DuckDB, with its members."""

    def __init__(self, name: str, query: Serving, fan: Fan) -> None:
        self.name = name
        self.query = query
        self.fan = fan
        # By job; a member that has left stays here, because part of the cost is its own.
        self.members: dict[str, Member] = {}
        # The queries that want its answer.
        self.wanted: set[str] = set()
        self.end_posted = False
        # When to poll it, when it was last examined, and when it last reported its progress (at
        # first, when slots came).
        self.due_s = 0.0
        self.looked_s = 0.0
        self.told_s = 0.0
        # Since when DuckDB has said at every poll that rows are ready.
        self.seems_ready_s: float | None = None
        self.reports = 0
        # How long revoked slots usually take to leave: DuckDB releases a thread between two steps,
        # and steps take longer in expensive operators.
        self._leaving_s = 0.0

    def left(self, after_s: float) -> None:
        """A slot has left `after_s` after it was revoked."""
        self._leaving_s += LAST_COUNTS * (after_s - self._leaving_s)

    @property
    def patience_s(self) -> float:
        """How long to wait for a revoked slot before it is written off."""
        return OVERSTAY_S if self._leaving_s <= SOON_S else 0.0

    @property
    def is_leaving(self) -> bool:
        """Whether revoked slots have not left yet."""
        return any(
            lease.withdrawn
            for member in list(self.members.values())
            for lease in list(member.leases)
        )

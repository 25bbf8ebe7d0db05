"""What cannot leave the driver's process: it runs there, on slots that nodes lend by name only.

The cluster may have many more slots than the driver has CPUs. Then each job is told that it can use
its part of those CPUs, at least one.
"""

from __future__ import annotations

import threading
from collections import Counter

from queryard.backends.local.leases import Engine, LocalLeases
from queryard.backends.protocol import NATIVE_JOB, BackendEvent, BackendReport, Leased, Post
from queryard.backends.workers import Start
from queryard.core.commands import Grant, Revoke
from queryard.core.events import LeaseEnded, WidthChanged
from queryard.core.model import JobId

from .messages import DRIVER


class AtDriver:
    """Divisible jobs of this process; its owner makes one call at a time."""

    def __init__(self, engine: Engine, start: Start, cpus: int) -> None:
        """`cpus` are the driver's own."""
        self.held: Counter[tuple[str, str]] = Counter()
        """Slots that the kernel counts, by job and node."""
        # Guards `held`; under it no other lock is taken. Threads of slots post under a lock that
        # the owner needs as well, so they must not wait for the owner.
        self._counting = threading.Lock()
        self._post: Post = _nothing
        self._leases = LocalLeases(engine, start, cpus, DRIVER)
        self._jobs: set[str] = set()
        self._cpus = cpus
        # Whether nodes could lend more slots than that.
        self._is_short = False
        # How many slots each job could use by itself, and what the kernel was told.
        self._wanted: dict[str, int] = {}
        self._told: dict[str, int] = {}

    def begin(self, post: Post) -> None:
        """`post` is called from any thread, and takes none of the locks of its owner."""
        self._post = post
        self._leases.begin(self._tell)

    def has(self, job: str) -> bool:
        return job in self._jobs

    @property
    def jobs(self) -> tuple[str, ...]:
        """All that run here, whatever nodes have lent slots to them."""
        return tuple(sorted(self._jobs))

    def has_run(self, query: str) -> bool:
        """Whether the job of a query runs here."""
        return _job(query) in self._jobs

    def add(self, query: str, work: Leased) -> None:
        job = _job(query)
        self._jobs.add(job)
        self._leases.add(query, work)
        with self._counting:
            self._wanted[job] = self._told[job] = 1 if work.narrow else work.width
            self._fit()

    def grant(self, command: Grant) -> None:
        with self._counting:
            self.held[command.job, command.node] += command.slots
            self._fit()
        self._leases.grant(command)

    def revoke(self, command: Revoke) -> None:
        self._leases.revoke(command)

    def _tell(self, event: BackendEvent) -> None:
        """Tell the kernel; not of slots whose node is lost, as it knows that.

        If a job ends that has only such slots, the kernel hears of its end without any.
        """
        with self._counting:
            if isinstance(event, WidthChanged):
                if event.job in self._wanted:
                    self._wanted[event.job] = event.width
                    self._fit()
                return
            if isinstance(event, LeaseEnded) and event.slots:
                lent = event.job, event.node
                held = self.held.get(lent, 0)
                if held:
                    self.held[lent] = held - event.slots
                    if not self.held[lent]:
                        del self.held[lent]
                elif event.outcome != "revoked" and all(job != event.job for job, _ in self.held):
                    event = event._replace(slots=0)
                else:
                    return
            self._post(event)
            if isinstance(event, LeaseEnded):
                self._fit()

    def lent_by(self, slots: int) -> None:
        """The nodes that take part have so many slots from now on."""
        with self._counting:
            self._is_short = slots > self._cpus
            self._fit()

    def _fit(self) -> None:
        """Tell the kernel how many slots each job can use, where that has changed.

        Jobs that hold slots have equal parts of the CPUs; one that holds none is told what it would
        have.
        """
        active = {job for job, _ in self.held}
        for job, wanted in self._wanted.items():
            part = max(1, self._cpus // len(active | {job}))
            width = min(wanted, part) if self._is_short else wanted
            if width != self._told[job]:
                self._told[job] = width
                self._post(WidthChanged(0.0, job, width))

    def lose(self, node: str) -> None:
        """A node is lost: what runs on its slots goes on when the kernel grants others."""
        with self._counting:
            lent = [job for job, at in self.held if at == node]
            lost = [Revoke(job, node, self.held.pop((job, node))) for job in lent]
            self._fit()
        for revoke in lost:
            self._leases.revoke(revoke)

    def stop(self, query: str, error: BaseException) -> None:
        self._leases.stop(query, error)

    def forget(self, query: str) -> None:
        if self.has_run(query):
            self._jobs.discard(_job(query))
            self._leases.forget(query)
            with self._counting:
                del self._wanted[_job(query)], self._told[_job(query)]
                self._fit()

    def set_guarantee_unmet(self, unmet: bool) -> None:
        self._leases.guarantee_unmet = unmet

    def report(self) -> BackendReport:
        return self._leases.report()

    def cancel_all(self) -> None:
        self._leases.cancel_all()

    def close(self) -> None:
        self._leases.close()


def _job(query: str) -> str:
    return str(JobId(query, NATIVE_JOB))


def _nothing(event: object) -> None:
    pass

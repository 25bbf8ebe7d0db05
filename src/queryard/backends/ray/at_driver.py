"""What cannot leave the driver's process: it runs there, on slots that nodes lend by name only."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

from queryard.backends.local.leases import Engine, LocalLeases
from queryard.backends.protocol import NATIVE_JOB, BackendEvent, BackendReport, Leased, Post
from queryard.core.commands import Grant, Revoke
from queryard.core.events import LeaseEnded
from queryard.core.model import JobId

from .messages import DRIVER


class AtDriver:
    """Divisible jobs of this process; its owner makes one call at a time."""

    def __init__(
        self, engine: Engine, start: Callable[[Callable[[], None]], None], slots: int
    ) -> None:
        self.held: Counter[tuple[str, str]] = Counter()
        """Slots that the kernel counts, by job and node."""
        # Guards `held`; under it no other lock is taken. Threads of slots post under a lock that
        # the owner needs as well, so they must not wait for the owner.
        self._counting = threading.Lock()
        self._post: Post = _nothing
        self._leases = LocalLeases(engine, start, slots, DRIVER)
        self._jobs: set[str] = set()

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
        self._jobs.add(_job(query))
        self._leases.add(query, work)

    def grant(self, command: Grant) -> None:
        with self._counting:
            self.held[command.job, command.node] += command.slots
        self._leases.grant(command)

    def revoke(self, command: Revoke) -> None:
        self._leases.revoke(command)

    def _tell(self, event: BackendEvent) -> None:
        """Tell the kernel; not of slots whose node is lost, as it knows that.

        If a job ends that has only such slots, the kernel hears of its end without any.
        """
        with self._counting:
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

    def lose(self, node: str) -> None:
        """A node is lost: what runs on its slots goes on when the kernel grants others."""
        with self._counting:
            lent = [job for job, at in self.held if at == node]
            lost = [Revoke(job, node, self.held.pop((job, node))) for job in lent]
        for revoke in lost:
            self._leases.revoke(revoke)

    def stop(self, query: str, error: BaseException) -> None:
        self._leases.stop(query, error)

    def forget(self, query: str) -> None:
        if self.has_run(query):
            self._jobs.discard(_job(query))
            self._leases.forget(query)

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

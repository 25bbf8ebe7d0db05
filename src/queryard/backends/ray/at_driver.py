"""What cannot leave the driver's process: it runs there, on slots that nodes lend by name only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from queryard.backends.local.leases import Engine, LocalLeases
from queryard.backends.protocol import NATIVE_JOB, BackendReport, Leased, Post
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
        self._leases = LocalLeases(engine, start, slots, DRIVER)
        self._jobs: set[str] = set()

    def begin(self, post: Post) -> None:
        """`post` is called from any thread, and asks `counts` whether to tell the kernel."""
        self._leases.begin(post)

    def has(self, job: str) -> bool:
        return job in self._jobs

    def has_run(self, query: str) -> bool:
        """Whether the job of a query runs here."""
        return _job(query) in self._jobs

    def add(self, query: str, work: Leased) -> None:
        self._jobs.add(_job(query))
        self._leases.add(query, work)

    def grant(self, command: Grant) -> None:
        self.held[command.job, command.node] += command.slots
        self._leases.grant(command)

    def revoke(self, command: Revoke) -> None:
        self._leases.revoke(command)

    def counts(self, event: Any) -> bool:
        """Whether the kernel is to be told; not of slots whose node is lost, as it knows that."""
        if not isinstance(event, LeaseEnded) or not event.slots:
            return True
        held = self.held[event.job, event.node]
        if held:
            self.held[event.job, event.node] = held - event.slots
        return bool(held)

    def lose(self, node: str) -> None:
        """A node is lost: what runs on its slots goes on when the kernel grants others."""
        for (job, at), held in list(self.held.items()):
            if at == node:
                del self.held[job, at]
                if held:
                    self._leases.revoke(Revoke(job, node, held))

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

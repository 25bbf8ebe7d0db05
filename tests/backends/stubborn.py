"""Queries that do nothing; their slots leave when a test says so."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from typing import Any

from queryard.backends.local import NODE, LocalBackend, nodes_of
from queryard.backends.protocol import NATIVE_JOB, Leased
from queryard.core.commands import Grant, Revoke
from queryard.core.events import LeaseEnded, WidthChanged
from queryard.engine.statement import Lease
from queryard.results.streams import ResultStream

PATIENCE_S = 20.0


class AsGiven:
    """An engine that takes a query in place of a statement."""

    def open(self, statement: Any, output: Any) -> Any:
        return statement


class StubbornQuery:
    """What a backend knows of a native query; while `deaf`, its slots hear no call."""

    def __init__(self, deaf: bool = False) -> None:
        self.error: BaseException | None = None
        self.ended = False
        self.computes = False
        self.on_session = False
        self.sprinting = False
        self.lost_sprint_s: float | None = None
        self.current_s = 0.0
        self.seems_ready = False
        self.sprints = False
        self.deaf = deaf
        self.polls = 0
        self.inside = 0
        self._changed = threading.Condition()

    def serve(self, lease: Lease) -> None:
        with self._changed:
            self.inside += 1
            # A slot does not leave in the middle of a step, even if the query has ended.
            self._changed.wait_for(lambda: not self.deaf and (lease.withdrawn or self.ended))
            self.inside -= 1

    def withdraw(self, lease: Lease) -> None:
        with self._changed:
            lease.withdrawn = True
            self._changed.notify_all()

    def hear(self) -> None:
        with self._changed:
            self.deaf = False
            self._changed.notify_all()

    def end(self, error: BaseException | None = None) -> None:
        with self._changed:
            if not self.ended:
                self.ended = True
                self.error = error
            self._changed.notify_all()

    def cancel(self, error: BaseException | None = None) -> None:
        self.end(error or RuntimeError("cancelled"))

    def poll(self) -> None:
        self.polls += 1

    def progress(self) -> float:
        return 0.5

    def memory_bytes(self) -> int | None:
        return None


class Books:
    """A backend, and the slots that a kernel would count for it."""

    def __init__(self, slots: int = 2) -> None:
        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.backend = LocalBackend(AsGiven(), nodes_of((slots, slots), 1 << 30))
        self.backend.start(self.events.put)
        self.held: Counter[str] = Counter()
        self.told: list[LeaseEnded] = []
        # How many slots each can use, as it was told last.
        self.widths: dict[str, int] = {}
        # Slots that are called back, of all that are held.
        self.called: Counter[str] = Counter()

    def add(self, name: str, query: Any, width: int = 2) -> Any:
        leases = self.backend._leases
        run = next((run.name for run in leases._runs.values() if run.query is query), "")
        if run:
            self.backend.add(name, Leased(run, width, ResultStream()))
        else:
            self.backend.add(name, Leased(name, width, ResultStream(), query))
        return leases._jobs[job(name)].members[job(name)]

    def grant(self, name: str, slots: int = 1) -> None:
        self.held[job(name)] += slots
        self.backend.execute(Grant(job(name), NODE, slots))

    def revoke(self, name: str, slots: int = 1) -> None:
        self.called[job(name)] += slots
        self.backend.execute(Revoke(job(name), NODE, slots))

    def read(self, wait_s: float = 0.0) -> list[LeaseEnded]:
        """All that is told within this time."""
        new: list[LeaseEnded] = []
        until = time.monotonic() + wait_s
        while (event := self._take(until - time.monotonic())) is not None:
            new.append(event)
        return new

    def next(self) -> LeaseEnded:
        """The next end of a lease."""
        event = self._take(PATIENCE_S)
        assert event is not None, "nothing was told"
        return event

    def _take(self, wait_s: float) -> LeaseEnded | None:
        """No query may give back slots that it does not hold."""
        until = time.monotonic() + wait_s
        while True:
            try:
                event = self.events.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                return None
            if isinstance(event, WidthChanged):
                self.widths[event.job] = event.width
            if isinstance(event, LeaseEnded):
                self.held[event.job] -= event.slots
                self.called[event.job] -= min(event.slots, self.called[event.job])
                assert self.held[event.job] >= 0, f"{event} was not held"
                self.told.append(event)
                return event


def job(name: str) -> str:
    return f"{name}/{NATIVE_JOB}"

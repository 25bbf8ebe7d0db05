"""The live driver: what really happens goes into the kernel, its decisions go to the backend.

One thread owns the kernel. Everybody else posts to its mailbox, and nobody waits for it.
"""

from __future__ import annotations

import heapq
import itertools
import queue
import threading
import time
from collections.abc import Callable
from typing import Protocol

from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.scheduler import Scheduler


class Backend(Protocol):
    """Where work runs."""

    def obey(self, command: do.Grant | do.Revoke | do.Launch | do.Kill) -> None:
        """Begin to carry out a command; events tell what comes of it."""


class Ends(Protocol):
    """Who wants to know how queries end."""

    def finished(self, query: str) -> None: ...
    def failed(self, query: str, cause: str) -> None: ...
    def broken(self, error: BaseException) -> None: ...


class Driver:
    """A mailbox, a clock, and the thread that calls `Scheduler.handle`."""

    def __init__(
        self, scheduler: Scheduler, ends: Ends, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.scheduler = scheduler
        self._ends = ends
        self._clock = clock
        self._began = clock()
        self._backend: Backend | None = None
        self._mail: queue.SimpleQueue[ev.Event | Callable[[], None]] = queue.SimpleQueue()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="queryard-driver", daemon=True)

    def start(self, backend: Backend) -> None:
        self._backend = backend
        self._thread.start()

    # --- from any thread -------------------------------------------------------------------------

    def now(self) -> float:
        """Seconds since the driver was made, which is the kernel's time."""
        return self._clock() - self._began

    def post(self, event: ev.Event) -> None:
        """Something has happened; the driver gives the event its time."""
        self._mail.put(event)

    def call(self, function: Callable[[], None]) -> None:
        """Run something short on the driver's thread."""
        self._mail.put(function)

    def call_at(self, time_s: float, function: Callable[[], None]) -> None:
        """Run something short at a time."""
        self.call(lambda: heapq.heappush(self._timers, (time_s, next(self._order), function)))

    def stop(self) -> None:
        """Deal with all that was posted, then end."""
        self.call(self._stop)
        if threading.current_thread() is not self._thread and self._thread.is_alive():
            self._thread.join(10.0)

    # --- on the driver's thread ------------------------------------------------------------------

    def _stop(self) -> None:
        self._stopping = True

    def _run(self) -> None:
        try:
            while not self._stopping:
                events = self._gather()
                if events:
                    self._handle(events)
        except BaseException as error:
            # A mistake of Queryard's own; whoever waits must hear of it.
            self._ends.broken(error)
            raise

    def _gather(self) -> list[ev.Event]:
        """All that is there by now; wait for something if there is nothing."""
        events: list[ev.Event] = []
        timeout = max(0.0, self._timers[0][0] - self.now()) if self._timers else None
        try:
            item = self._mail.get(timeout=timeout)
            while True:
                if callable(item):
                    item()
                else:
                    events.append(item)
                item = self._mail.get_nowait()
        except queue.Empty:
            pass
        while self._timers and self._timers[0][0] <= self.now():
            heapq.heappop(self._timers)[2]()
        return events

    def _handle(self, events: list[ev.Event]) -> None:
        # The clock may stand still between two steps; the kernel only minds if it goes back.
        now = max(self.now(), self.scheduler.state.now)
        timed = [event._replace(time_s=now) for event in events]
        for command in self.scheduler.handle(*timed):
            self._obey(command)

    def _obey(self, command: do.Command) -> None:
        match command:
            case do.Grant() | do.Revoke() | do.Launch() | do.Kill():
                assert self._backend is not None
                self._backend.obey(command)
            case do.WakeAt():
                wake = ev.Woke(command.time_s)
                at = (command.time_s, next(self._order), lambda: self.post(wake))
                heapq.heappush(self._timers, at)
            case do.Finish():
                self._ends.finished(command.query)
            case do.Fail():
                self._ends.failed(command.query, command.cause)
            case do.Scale() | do.Release():
                # The size of this machine is fixed; profiles that change it are refused at start.
                raise AssertionError(f"one machine cannot obey {command!r}")

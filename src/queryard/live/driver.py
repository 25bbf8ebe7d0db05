"""The live driver: what really happens goes into the kernel, its decisions go to the backend.

One thread owns the kernel. Everybody else posts to its mailbox, and nobody waits for it.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, Protocol, TypeVar

from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.scheduler import Scheduler

T = TypeVar("T")


class Backend(Protocol):
    """Where work runs."""

    def obey(self, command: do.Grant | do.Revoke | do.Launch | do.Kill) -> None:
        """Begin to carry out a command; events tell what comes of it."""


class Owner(Protocol):
    """Who wants to know what becomes of queries, and can change the number of slots."""

    def began(self, query: str) -> None: ...
    def finished(self, query: str) -> None: ...
    def failed(self, query: str, cause: str) -> None: ...
    def broken(self, error: BaseException) -> None: ...
    def scale(self, nodes: int) -> None: ...
    def let_go(self, node: str) -> None: ...


# How long the kernel may let somebody wait who asks it something.
ASK_S = 30.0


class _Question(Generic[T]):
    """Asked by one thread, answered by another."""

    def __init__(self, question: Callable[[], T]) -> None:
        self.answer: Future[T] = Future()
        self._question = question

    def __call__(self) -> None:
        try:
            self.answer.set_result(self._question())
        except BaseException as error:
            self.answer.set_exception(error)


class Driver:
    """A mailbox, a clock, and the thread that calls `Scheduler.handle`."""

    def __init__(
        self, scheduler: Scheduler, owner: Owner, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.scheduler = scheduler
        # What deciding has cost: how often, and the processor seconds of the kernel and of all
        # that this thread does.
        self.decisions = 0
        self.decide_s = 0.0
        self.cpu_s = 0.0
        self._owner = owner
        self._clock = clock
        self._began = clock()
        self._backend: Backend | None = None
        self._mail: queue.SimpleQueue[tuple[ev.Event, ...] | Callable[[], None]] = (
            queue.SimpleQueue()
        )
        self._questions: deque[_Question[Any]] = deque()
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._stopping = False
        self._over = False
        self._thread = threading.Thread(target=self._run, name="queryard-driver", daemon=True)

    def start(self, backend: Backend) -> None:
        self._backend = backend
        self._thread.start()

    # --- from any thread -------------------------------------------------------------------------

    def now(self) -> float:
        """Seconds since the driver was made, which is the kernel's time."""
        return self._clock() - self._began

    def post(self, *events: ev.Event) -> None:
        """Something has happened, all of it at once; the driver gives the events their time."""
        self._mail.put(events)

    def call(self, function: Callable[[], None]) -> None:
        """Run something short on the driver's thread."""
        self._mail.put(function)

    def ask(self, question: Callable[[Scheduler], T]) -> T:
        """What the kernel says to a question that changes nothing; waits for its thread."""
        asked = _Question(lambda: question(self.scheduler))
        self._mail.put(asked)
        if self._over:
            self._answer_the_rest()
        return asked.answer.result(ASK_S)

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
                # Whoever asks has seen all that came before: it has happened by now.
                self._answer()
        except BaseException as error:
            # A mistake of Queryard's own; whoever waits must hear of it.
            self._owner.broken(error)
            raise
        finally:
            self._over = True
            self._answer_the_rest()

    def _answer(self) -> None:
        with contextlib.suppress(IndexError):  # another one answers as well, at the end
            while True:
                self._questions.popleft()()

    def _answer_the_rest(self) -> None:
        """Nobody reads the mailbox any more; who has asked something must not wait for that."""
        self._answer()
        with contextlib.suppress(queue.Empty):
            while True:
                item = self._mail.get_nowait()
                if isinstance(item, _Question):
                    item()

    def _gather(self) -> list[ev.Event]:
        """All that is there by now; wait for something if there is nothing."""
        events: list[ev.Event] = []
        timeout = max(0.0, self._timers[0][0] - self.now()) if self._timers else None
        try:
            item = self._mail.get(timeout=timeout)
            while True:
                if isinstance(item, _Question):
                    self._questions.append(item)
                elif callable(item):
                    item()
                else:
                    events += item
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
        began_s = time.thread_time()
        commands = self.scheduler.handle(*timed)
        self.decide_s += time.thread_time() - began_s
        self.decisions += 1
        for command in commands:
            self._obey(command)
        self.cpu_s = time.thread_time()

    def _obey(self, command: do.Command) -> None:
        match command:
            case do.Grant() | do.Revoke() | do.Launch() | do.Kill():
                assert self._backend is not None
                if isinstance(command, do.Grant):
                    self._owner.began(command.job.partition("/")[0])
                elif isinstance(command, do.Launch):
                    for task in command.tasks:
                        self._owner.began(task.job.partition("/")[0])
                self._backend.obey(command)
            case do.WakeAt():
                wake = ev.Woke(command.time_s)
                at = (command.time_s, next(self._order), lambda: self.post(wake))
                heapq.heappush(self._timers, at)
            case do.Finish():
                self._owner.finished(command.query)
            case do.Fail():
                self._owner.failed(command.query, command.cause)
            case do.Scale():
                self._owner.scale(command.nodes)
            case do.Release():
                self._owner.let_go(command.node)

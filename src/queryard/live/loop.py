"""The loop: a mailbox, a clock, timers, and the one thread that calls the coordinator.

Any thread may post; none waits for the loop unless it asks something. What the coordinator wants
done is carried out here, in order, by functions that return at once.
"""

from __future__ import annotations

import heapq
import itertools
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from .coordinating import Coordinator
from .effects import Effect, SetTimer
from .inputs import Input

T = TypeVar("T")
# How long `ask` waits for its answer.
ASK_S = 30.0
# So many timers more than are needed are kept; then those of queries that have ended are dropped.
TIMERS = 1_000


class _Question(Generic[T]):
    """Asked by one thread, answered by another."""

    def __init__(self, question: Callable[[Coordinator], T]) -> None:
        self.answer: Future[T] = Future()
        self._question = question

    def put_to(self, coordinator: Coordinator) -> None:
        try:
            self.answer.set_result(self._question(coordinator))
        except BaseException as error:
            self.answer.set_exception(error)


class Mailbox:
    """Where any thread posts what has happened; none waits for it."""

    def __init__(self) -> None:
        self.items: queue.SimpleQueue[Input | _Question[Any] | None] = queue.SimpleQueue()

    def post(self, given: Input) -> None:
        """Something has happened. A finalizer may call it, in the middle of anything."""
        self.items.put(given)


class Loop:
    """`carry_out` is given each effect, `broken` an error that ends the loop."""

    def __init__(
        self,
        mailbox: Mailbox,
        coordinator: Coordinator,
        carry_out: Callable[[Effect], None],
        broken: Callable[[BaseException], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._coordinator = coordinator
        # What deciding has cost: how often, and the processor seconds of the kernel and of all that
        # this thread does.
        self.decisions = 0
        self.decide_s = 0.0
        self.cpu_s = 0.0
        self._carry_out = carry_out
        self._broken = broken
        self._clock = clock
        self._began = clock()
        self._mail = mailbox.items
        self._timers: list[tuple[float, int, Input]] = []
        self._most_timers = TIMERS
        self._order = itertools.count()
        self._over = False
        self._thread = threading.Thread(target=self._run, name="queryard-loop", daemon=True)

    def start(self) -> None:
        self._thread.start()

    # --- from any thread -------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether it has ended: what is posted from now on is ignored."""
        return self._over

    def now(self) -> float:
        """Seconds since the loop was made, which is the kernel's time."""
        return self._clock() - self._began

    def ask(self, question: Callable[[Coordinator], T]) -> T:
        """The answer to a question that changes nothing; all that was posted before has happened.

        It must be instant: everything else waits for it.
        """
        if threading.current_thread() is self._thread:
            return question(self._coordinator)
        asked = _Question(question)
        self._mail.put(asked)
        if self._over:
            self._answer_the_rest()
        return asked.answer.result(ASK_S)

    def stop(self) -> None:
        """Deal with all that was posted, then end."""
        self._mail.put(None)
        if threading.current_thread() is not self._thread and self._thread.is_alive():
            self._thread.join(10.0)

    # --- on the loop's thread --------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while self._step():
                pass
        except BaseException as error:
            # A defect of Queryard's own: every waiting query must get the error.
            self._broken(error)
        finally:
            self._over = True
            self._answer_the_rest()

    def _step(self) -> bool:
        """Handle all posted inputs; wait for one if there is none."""
        given: list[Input] = []
        questions: list[_Question[Any]] = []
        goes_on = True
        timeout = max(0.0, self._timers[0][0] - self.now()) if self._timers else None
        try:
            item = self._mail.get(timeout=timeout)
            while True:
                if item is None:
                    goes_on = False
                elif isinstance(item, _Question):
                    questions.append(item)
                else:
                    given.append(item)
                item = self._mail.get_nowait()
        except queue.Empty:
            pass
        while self._timers and self._timers[0][0] <= self.now():
            given.append(heapq.heappop(self._timers)[2])
        if given:
            self._handle(given)
        for question in questions:
            question.put_to(self._coordinator)
        return goes_on

    def _handle(self, given: list[Input]) -> None:
        first = self._coordinator.take(self.now(), *given)
        # Replies first: the caller continues while the kernel decides.
        self._carry(first)
        carried_s = time.thread_time()
        rest = self._coordinator.decide()
        self.decide_s += time.thread_time() - carried_s
        self.decisions += 1
        self._carry(rest)
        self.cpu_s = time.thread_time()

    def _carry(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, SetTimer):
                heapq.heappush(self._timers, (effect.time_s, next(self._order), effect.input))
                if len(self._timers) > self._most_timers:
                    self._thin_out()
            else:
                self._carry_out(effect)

    def _thin_out(self) -> None:
        """Drop the timers of queries that have ended, however late they are due."""
        awaits = self._coordinator.awaits
        self._timers = [timer for timer in self._timers if awaits(timer[2])]
        heapq.heapify(self._timers)
        self._most_timers = 2 * len(self._timers) + TIMERS

    def _answer_the_rest(self) -> None:
        """The mailbox is not read any more: fail the questions that are still in it."""
        try:
            while True:
                item = self._mail.get_nowait()
                if isinstance(item, _Question):
                    item.put_to(self._coordinator)
        except queue.Empty:
            pass

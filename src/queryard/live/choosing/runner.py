"""The portfolio of a host at work: a thread that looks at the queue, and a process that simulates.

The driver only makes a fork, which is quick. All else happens beside: the fork is written to the
worker by a thread of its own, piece by piece. A worker that is not heard of in time is killed. The
next question starts another one.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Protocol, TypeVar

from queryard.portfolio.documents import Portfolio
from queryard.portfolio.present import try_present
from queryard.portfolio.processes import Answer, Process

from .chooser import Choice, Chooser, Look, Question, View, verdict

T = TypeVar("T")
# A look follows a submission soon, but not each of many.
SOON_S = 0.05
# A look may take this share of the driver's time.
LOOKING_SHARE = 0.01
# What one decision may take in all; a long queue is not followed to its end.
MOST_CPU_S = 2.0
# The share of a core is kept to by waiting between decisions. One under way is wanted soon.
NICE = 1
CLOSE_S = 3.0


class Worker(Protocol):
    """What tries candidates out; a `Process`, or that of a test."""

    def ask(self, request: Callable[..., Any]) -> Answer: ...
    def kill(self) -> None: ...


@dataclass(slots=True)
class _Reply:
    """What became of a question: an answer, or an error."""

    question: Question
    answer: Answer | None = None
    error: str = ""


class Choosing:
    """`ask` puts a question to the coordinator on its thread, `choose` has a policy followed.

    `now` is the clock of the host, and `failed` is told of errors that are defects. From any
    thread.
    """

    def __init__(
        self,
        portfolio: Portfolio,
        ask: Callable[[Callable[[View], Look]], Look],
        choose: Callable[[Choice], None],
        now: Callable[[], float],
        failed: Callable[[BaseException], None],
        start: Callable[[], Worker] | None = None,
    ) -> None:
        self.portfolio = portfolio
        self._ask = ask
        self._choose = choose
        self._now = now
        self._failed = failed
        self._start = start or partial(Process, nice=NICE)
        self._chooser = Chooser(portfolio, now())
        # Guards the chooser, and is never held for long.
        self._changed = threading.Condition()
        self._closed = False
        self._woken = False
        self._next_s = math.inf
        self._worker: Worker | None = None
        # What the worker of now had used when it was last heard of.
        self._seen_cpu_s = 0.0
        self._own_cpu_s = 0.0
        self._question: Question | None = None
        self._replies: list[_Reply] = []
        self._thread = threading.Thread(target=self._run, name="queryard-portfolio", daemon=True)
        self._thread.start()

    # --- from any thread -------------------------------------------------------------------------

    def wake(self) -> None:
        """A query was submitted."""
        if not self._woken:  # without the lock: this is asked for each query
            with self._changed:
                self._woken = True
                self._changed.notify_all()

    def ended(self, query: str, end_s: float | None) -> None:
        """A query has ended; `end_s` is None if it has failed or was cancelled."""
        with self._changed:
            self._chooser.ended(query, end_s)

    def decisions(self, limit: int, ahead_s: float) -> list[dict[str, Any]]:
        """The last ones as plain data, the latest first."""
        with self._changed:
            latest = islice(reversed(self._chooser.decisions), max(0, limit))
            return [each.plain(ahead_s) for each in latest]

    @property
    def current(self) -> str:
        """The candidate in force."""
        return self._chooser.current

    @property
    def cpu_s(self) -> float:
        """The processor seconds of all decisions so far, those of workers included."""
        return self._chooser.budget.spent_s

    @property
    def worker(self) -> Worker | None:
        """The process that simulates, once there is one."""
        return self._worker

    def close(self) -> None:
        """No choice is made after this returns."""
        with self._changed:
            self._closed = True
            worker, self._worker = self._worker, None
            self._changed.notify_all()
        if worker is not None:
            worker.kill()
        if self._thread is not threading.current_thread():
            self._thread.join(CLOSE_S)

    # --- on its thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        looked_s = -math.inf
        pause_s = SOON_S
        while True:
            with self._changed:
                if not self._closed and not self._replies:
                    self._changed.wait(self._timeout_s(looked_s + pause_s))
                if self._closed:
                    return
                replies, self._replies = self._replies, []
            try:
                for reply in replies:
                    self._take(reply)
                self._give_up_late()
                now = self._now()
                if now >= looked_s + pause_s and (self._woken or now >= self._next_s):
                    pause_s = max(SOON_S, self._look() / LOOKING_SHARE)
                    looked_s = self._now()
            except Exception as error:
                # A host that closes answers no more.
                if not self._closed:
                    self._failed(error)
                self._next_s, looked_s = math.inf, self._now()

    def _timeout_s(self, earliest_s: float) -> float | None:
        """Until the next look, or until an answer is late."""
        next_s = max(earliest_s, -math.inf if self._woken else self._next_s)
        if self._question is not None:
            next_s = min(next_s, self._question.asked_s + self.portfolio.late_s)
        return None if next_s == math.inf else max(0.0, next_s - self._now())

    def _look(self) -> float:
        """Look at the queue; how long that has kept the driver."""
        asked_s, took_s = self._now(), 0.0

        def look(view: View) -> Look:
            nonlocal took_s
            began_s = time.thread_time()
            with self._changed:
                found = self._chooser.look(asked_s, self._now(), view)
            took_s = time.thread_time() - began_s
            return found

        self._woken = False
        found = self._ask(look)
        with self._changed:
            self._own_cpu_s += took_s
            self._next_s = found.next_s
            if found.choice is not None and not self._closed:
                self._choose(found.choice)
            self._question = found.question or self._question
        if found.question is not None:
            asking = threading.Thread(
                target=self._put, args=(found.question,), name="queryard-trials", daemon=True
            )
            asking.start()
        return took_s

    def _take(self, reply: _Reply) -> None:
        """What a worker has answered."""
        if reply.question is not self._question:
            return  # it was given up
        began_s = time.thread_time()
        self._question = None
        settings = self.portfolio.settings
        if reply.answer is None:
            # What it has used is not known: it cannot be more than the time that has passed.
            cpu_s = self._now() - reply.question.asked_s + self._own()
            self._drop_worker()
            with self._changed:
                self._chooser.failed(reply.question, reply.error, self._now(), cpu_s)
            return
        found = verdict(settings.objective, list(settings.candidates), reply.answer.found)
        used_s = max(0.0, reply.answer.cpu_s - self._seen_cpu_s)
        self._seen_cpu_s = reply.answer.cpu_s
        with self._changed:
            used_s += self._own() + time.thread_time() - began_s
            choice = self._chooser.answered(reply.question, found, self._now(), used_s)
            # Within the lock: no choice is made once this is closed.
            if choice is not None and not self._closed:
                self._choose(choice)

    def _give_up_late(self) -> None:
        question = self._question
        late_s = self.portfolio.late_s
        if question is None or self._now() < question.asked_s + late_s:
            return
        self._question = None
        self._drop_worker()
        with self._changed:
            why = f"the worker gave no answer within {late_s:g} s"
            self._chooser.failed(question, why, self._now(), late_s + self._own())

    def _drop_worker(self) -> None:
        with self._changed:
            worker, self._worker = self._worker, None
        self._seen_cpu_s = 0.0
        if worker is not None:
            worker.kill()

    def _own(self) -> float:
        """What this process has used for decisions since it was last asked."""
        used_s, self._own_cpu_s = self._own_cpu_s, 0.0
        return used_s

    def _has_taken(self, worker: Worker) -> bool:
        """Keep a worker that has just begun, unless it is too late for it."""
        with self._changed:
            if not self._closed:
                self._worker = worker
            return not self._closed

    # --- on a thread per question ----------------------------------------------------------------

    def _put(self, question: Question) -> None:
        began_s = time.thread_time()
        reply = _Reply(question)
        try:
            with self._changed:
                if self._closed:
                    return
                worker = self._worker
            if worker is None:
                worker = self._start()
                if not self._has_taken(worker):
                    worker.kill()
                    return
            kernel = question.fork.without_sharers()
            candidates = dict(self.portfolio.settings.candidates)
            reply.answer = worker.ask(partial(try_present, kernel, candidates, MOST_CPU_S))
        except Exception as error:
            reply.error = f"the worker failed ({error})"
        with self._changed:
            self._own_cpu_s += time.thread_time() - began_s
            self._replies.append(reply)
            self._changed.notify_all()

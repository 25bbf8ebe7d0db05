"""The portfolio of a host at work: a thread that looks at the queue, and a process that simulates.

The driver only makes a fork, which is quick. All else happens beside: the fork is written to the
worker by a thread of its own, piece by piece. A worker that is not heard of in time is killed. The
next question starts another one.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, TypeVar

from queryard.core.errors import QueryardError
from queryard.portfolio.arrivals import Arrived
from queryard.portfolio.documents import Portfolio
from queryard.portfolio.processes import Answer, ready

from .asking import Reply, Worker, process, put
from .chooser import Chooser
from .questions import Choice, Look, Question, View
from .verdicts import verdict

T = TypeVar("T")
# A look follows a submission soon, but not each of many.
SOON_S = 0.05
# A look may take this share of the driver's time.
LOOKING_SHARE = 0.01
# How long a worker may take to start: it loads modules.
START_LATE_S = 30.0
CLOSE_S = 3.0
# After an error of its own it looks again so much later.
AGAIN_S = 1.0


class WorkerNotStarted(QueryardError):
    """A portfolio has no worker, and makes no decision until there is one."""


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
        self._start = start or process
        self._chooser = Chooser(portfolio, now())
        # Guards the chooser, and is never held for long.
        self._changed = threading.Condition()
        self._closed = False
        self._woken = False
        self._next_s = math.inf
        self._worker: Worker | None = None
        # What the worker of now had used when it was last heard of.
        self._seen_cpu_s = 0.0
        # Of what deciding has cost: what no budget knows of yet, and what was used beside.
        self._own_cpu_s = self._beside_cpu_s = 0.0
        # Since when a worker starts; never, if none does.
        self._starting_s = math.inf
        self._question: Question | None = None
        self._replies: list[Reply] = []
        self._thread = threading.Thread(target=self._run, name="queryard-portfolio", daemon=True)
        self._thread.start()

    # --- from any thread -------------------------------------------------------------------------

    def wake(self) -> None:
        """A query was submitted."""
        if not self._woken:  # without the lock: this is asked for each query
            with self._changed:
                self._woken = True
                self._changed.notify_all()

    def ended(self, query: str, end_s: float | None, came: Arrived, held_s: float) -> None:
        """A query has ended; `end_s` is None if it has failed or was cancelled."""
        with self._changed:
            self._chooser.ended(query, end_s, came, held_s)

    def follow(self, portfolio: Portfolio, choose: Callable[[Mapping[str, Any]], None]) -> None:
        """Go on as the same portfolio whose candidates have other profiles: those of other shares
        of tenants. `choose` has the one in force followed with its new profile.
        """
        with self._changed:
            self.portfolio = portfolio
            choose(self._chooser.follow(portfolio))

    def forget(self) -> Callable[[], None]:
        """Forget what was learnt from queries and decisions; decisions go on being told.

        What it returns gives back what was forgotten.
        """
        with self._changed:
            forgotten = self._chooser.forget()

        def give_back() -> None:
            with self._changed:
                forgotten()

        return give_back

    def decisions(self, limit: int, ahead_s: float) -> list[dict[str, Any]]:
        """The last ones as plain data, the latest first."""
        with self._changed:
            latest = list(islice(reversed(self._chooser.decisions), max(0, limit)))
        # Without the lock, for which the driver would wait.
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
    def beside_cpu_s(self) -> float:
        """Of these, those of workers, and of threads that live for one question."""
        return self._beside_cpu_s

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
            self._beside_cpu_s += self._unseen_s(worker) or 0.0
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
                # One by one, so that an error costs no other one.
                reply = self._replies.pop(0) if self._replies else None
            try:
                if reply is not None:
                    self._take(reply)
                self._give_up_late()
                now = self._now()
                if now >= looked_s + pause_s and (self._woken or now >= self._next_s):
                    pause_s = max(SOON_S, self._look() / LOOKING_SHARE)
                    looked_s = self._now()
            except Exception as error:
                self._recover(error)
                looked_s, pause_s = self._now(), AGAIN_S

    def _recover(self, error: Exception) -> None:
        """A defect of Queryard's own costs the decision under way; looking goes on."""
        # A host that closes answers no more.
        if not self._closed:
            self._failed(error)
        with self._changed:
            asked, now = self._chooser.asked, self._now()
            if asked is not None and asked is not self._question:  # no worker thinks about it
                why = f"deciding failed ({type(error).__name__}: {error})"
                self._chooser.failed(asked, why, now, self._own())
        self._next_s = now + AGAIN_S

    def _timeout_s(self, earliest_s: float) -> float | None:
        """Until the next look, or until an answer is late."""
        next_s = max(earliest_s, -math.inf if self._woken else self._next_s)
        next_s = min(next_s, self._late_s())
        return None if next_s == math.inf else max(0.0, next_s - self._now())

    def _late_s(self) -> float:
        """When a worker is late."""
        if self._question is not None:
            return self._question.asked_s + self.portfolio.late_s
        return self._starting_s + START_LATE_S

    def _look(self) -> float:
        """Look at the queue; how long that has kept the driver."""
        asked_s, took_s = self._now(), 0.0
        has_worker = self._worker is not None and self._starting_s == math.inf
        made: list[Look] = []
        is_given_up = False

        def look(view: View) -> Look:
            nonlocal took_s
            began_s = time.thread_time()
            with self._changed:
                # Nothing waits for its answer any more.
                if is_given_up:
                    return Look()
                made.append(self._chooser.look(asked_s, self._now(), view, has_worker))
            took_s = time.thread_time() - began_s
            return made[0]

        self._woken = False
        try:
            self._ask(look)
        except Exception:
            with self._changed:
                is_given_up = True
            if not made:
                raise
        found = made[0]
        with self._changed:
            self._own_cpu_s += took_s
            self._next_s = found.next_s
            if found.choice is not None and not self._closed:
                self._choose(found.choice)
        if found.question is not None:
            self._question = found.question
            self._beside(found.question)
        elif found.wants_worker and self._starting_s == math.inf:
            self._starting_s = self._now()
            self._beside(None)
        return took_s

    def _beside(self, question: Question | None) -> None:
        """Ask a worker something, or start one, on another thread."""
        threading.Thread(
            target=self._work, args=(question,), name="queryard-trials", daemon=True
        ).start()

    def _take(self, reply: Reply) -> None:
        """What a worker has answered."""
        if reply.question is None:
            self._take_start(reply)
        elif reply.question is self._question:  # else it was given up
            self._question = None
            if reply.answer is None:
                self._fail(reply.question, reply.error)
            else:
                self._decide(reply.question, reply.answer)

    def _take_start(self, reply: Reply) -> None:
        if self._starting_s == math.inf:
            return  # it was given up
        if reply.answer is None:
            self._fail(None, reply.error)
            return
        self._starting_s = math.inf
        # A question that waited for it is asked now.
        self._next_s = -math.inf
        with self._changed:
            self._chooser.started(self._used_s(reply.answer), self._now())

    def _decide(self, question: Question, answer: Answer) -> None:
        began_s = time.thread_time()
        objective = self.portfolio.settings.objective
        found = verdict(objective, list(question.candidates), answer.found, question.since_s)
        with self._changed:
            cpu_s = self._used_s(answer) + self._own() + time.thread_time() - began_s
            choice = self._chooser.answered(question, found, self._now(), cpu_s)
            # Within the lock: no choice is made once this is closed.
            if choice is not None and not self._closed:
                self._choose(choice)
        if not found.vectors:
            # The worker itself may be at fault, by a lack of memory for example.
            self._beside_cpu_s += self._end_worker() or 0.0

    def _used_s(self, answer: Answer) -> float:
        """What the worker has used since it was last heard of."""
        used_s = max(0.0, answer.cpu_s - self._seen_cpu_s)
        self._seen_cpu_s = answer.cpu_s
        self._beside_cpu_s += used_s
        return used_s

    def _unseen_s(self, worker: Worker) -> float | None:
        """The same for one that does not answer; None where that cannot be seen."""
        used_s = worker.cpu_s()
        return None if used_s is None else max(0.0, used_s - self._seen_cpu_s)

    def _give_up_late(self) -> None:
        if self._now() < self._late_s():
            return
        question, self._question = self._question, None
        if question is None:
            self._fail(None, f"the worker has not started within {START_LATE_S:g} s")
        else:
            self._fail(question, f"the worker gave no answer within {self.portfolio.late_s:g} s")

    def _fail(self, question: Question | None, why: str) -> None:
        """A worker is of no use any more: end it. The next question starts another one."""
        began_s = self._starting_s if question is None else question.asked_s
        cpu_s = self._end_worker()
        if cpu_s is None:  # it is no more than the time that has passed
            cpu_s = self._now() - began_s
        self._beside_cpu_s += cpu_s
        with self._changed:
            cpu_s += self._own()
            if question is not None:
                self._chooser.failed(question, why, self._now(), cpu_s)
                return
            self._chooser.not_started(why, self._now(), cpu_s)
        self._failed(WorkerNotStarted(f"portfolio: {why}"))

    def _end_worker(self) -> float | None:
        """What it has used since it was last heard of; None where that cannot be seen."""
        with self._changed:
            worker, self._worker = self._worker, None
        used_s = None if worker is None else self._unseen_s(worker)
        self._seen_cpu_s = 0.0
        self._starting_s = math.inf
        if worker is not None:
            worker.kill()
        return used_s

    def _own(self) -> float:
        """What this process has used for decisions since it was last asked."""
        used_s, self._own_cpu_s = self._own_cpu_s, 0.0
        return used_s

    # --- on a thread per question ----------------------------------------------------------------

    def _work(self, question: Question | None) -> None:
        reply = self._start_worker() if question is None else put(self._worker, question)
        with self._changed:
            used_s = time.thread_time()
            self._own_cpu_s += used_s
            self._beside_cpu_s += used_s
            if reply is not None:
                self._replies.append(reply)
                self._changed.notify_all()

    def _start_worker(self) -> Reply | None:
        reply = Reply(None)
        try:
            worker = self._start()
            with self._changed:
                if not self._closed:
                    self._worker = worker
            if self._closed:
                worker.kill()
                return None
            reply.answer = worker.ask(ready)
        except Exception as error:
            reply.error = f"the worker could not be started ({error})"
        return reply

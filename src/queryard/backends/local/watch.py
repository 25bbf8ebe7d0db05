"""One thread that polls running statements; it sleeps while there are none."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from .member import LeasedExecution

# How often to poll a running statement, within bounds. A poll costs a processor POLL_COST_S, and a
# slot idles from the end of the statement to the next poll: both together cost least with pauses
# that grow with the root of the time that the statement has taken.
POLL_S = (0.001, 0.02)
POLL_COST_S = 0.0001
# How soon to poll again when rows seem to be ready. DuckDB may say so while it computes, some
# statements until their end: the longer it has said so, the rarer the polls, by the same rule.
CONFIRM_S = 0.0005
# How often to examine idle slots and overstaying slots. A statement with revoked slots is polled as
# often; one with a single slot can lend none, and is examined for its progress only.
LOOK_S, LOOK_AT_ONE_S = 0.005, 0.05
# For how long the thread looks by itself for further statements before it sleeps until it is woken.
# To wake it costs more than to poll a short statement.
LINGER_S = 0.2


class Watch:
    """Polls the runs that slots are inside of, and shows each to `look`."""

    def __init__(self, look: Callable[[LeasedExecution, float], None]) -> None:
        self._look = look
        self._changed = threading.Condition()
        # How many slots are inside.
        self._watched: dict[LeasedExecution, int] = {}
        self._closed = False
        # Until when the thread sleeps if it is not woken (0: it is awake), and since when there is
        # nothing to watch.
        self._asleep_until_s = 0.0
        self._idle_since_s = 0.0
        self._thread: threading.Thread | None = None
        self.cpu_s = 0.0

    def add(self, run: LeasedExecution) -> None:
        """A slot is about to work on it."""
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="queryard-watch", daemon=True
                )
                self._thread.start()
            if not run.told_s:
                run.told_s = time.monotonic()
                if run.query.sprints:
                    run.due_s = run.told_s + POLL_S[1]
            self._watched[run] = self._watched.get(run, 0) + 1
            self._wake_for(run)

    def remove(self, run: LeasedExecution) -> None:
        """A slot has left it."""
        with self._changed:
            self._watched[run] -= 1
            if not self._watched[run]:
                del self._watched[run]
                self._idle_since_s = time.monotonic()

    def poll_soon(self, run: LeasedExecution) -> None:
        """Slots were revoked: poll soon, to see whether they have left."""
        with self._changed:
            run.due_s = min(run.due_s, time.monotonic() + LOOK_S)
            self._wake_for(run)

    def _wake_for(self, run: LeasedExecution) -> None:
        if run.due_s < self._asleep_until_s:
            self._changed.notify_all()

    def _run(self) -> None:
        while (due := self._due()) is not None:
            now = time.monotonic()
            for run in due:
                try:
                    run.query.poll()
                    if now - run.looked_s >= self._look_s(run):
                        run.looked_s = now
                        self._look(run, now)
                except BaseException as error:
                    run.query.cancel(error)
                run.due_s = _next(run, now)
            self.cpu_s = time.thread_time()

    def _look_s(self, run: LeasedExecution) -> float:
        several = self._watched.get(run, 0) > 1
        return LOOK_S if several or run.is_leaving else LOOK_AT_ONE_S

    def _due(self) -> list[LeasedExecution] | None:
        """Wait until there is something to look at; None at the end."""
        while True:
            with self._changed:
                if self._closed:
                    return None
                now = time.monotonic()
                due = [run for run in self._watched if run.due_s <= now]
                if due:
                    return due
                until_s = self._next_look(now)
                pause_s = until_s - now
                if pause_s > LOOK_S:
                    self._asleep_until_s = until_s
                    self._changed.wait(None if until_s == math.inf else pause_s)
                    self._asleep_until_s = 0.0
                    continue
            # Too short to be woken: `sleep` costs a tenth of waiting on the condition.
            time.sleep(pause_s)

    def _next_look(self, now: float) -> float:
        """When to look again, if nothing is due."""
        if self._watched:
            return min(run.due_s for run in self._watched)
        return now + POLL_S[1] if now < self._idle_since_s + LINGER_S else math.inf

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(5.0)


def _next(run: LeasedExecution, now: float) -> float:
    """When to look at a run again."""
    # A sprint tells by itself when it is ready.
    shortest, longest = (POLL_S[1], POLL_S[1]) if run.query.sprinting else POLL_S
    pause = min(max(shortest, _pause_s(run.query.current_s)), longest)
    if not run.query.seems_ready:
        run.seems_ready_s = None
    else:
        if run.seems_ready_s is None:
            run.seems_ready_s = now
        pause = min(max(CONFIRM_S, _pause_s(now - run.seems_ready_s)), pause)
    return now + (min(pause, LOOK_S) if run.is_leaving else pause)


def _pause_s(taken_s: float) -> float:
    """The best pause between polls, of something that has taken so long.

    >>> [round(_pause_s(taken_s), 4) for taken_s in (0.005, 0.1, 1.0)]
    [0.001, 0.0045, 0.0141]
    """
    return math.sqrt(2 * POLL_COST_S * taken_s)

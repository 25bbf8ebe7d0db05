"""Requests put to a target in real time, each at its moment."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext

from queryard.core.errors import QueryardError
from queryard.engine.errors import QueryCancelled
from queryard.live.admission.limits import Refused
from queryard.workload.load import Alone, Request

from .outcome import Board, Outcome, Played, State
from .targets import Sent, Target

# How often the target is looked at, and the share of a core that may take at most.
LOOK_S, LOOK_SHARE = 0.25, 0.01
# The longest sleep: a signal may wake another thread than the one that acts on it.
NAP_S = 0.5
# How long cancelled queries may take to end.
PATIENCE_S = 10.0

Show = Callable[[Board], AbstractContextManager[object]]
"""Shows a run as long as the context lasts."""


def play(
    requests: Iterable[Request],
    target: Target,
    alone: Mapping[str, Alone],
    *,
    show: Show | None = None,
) -> Played:
    """Submit every request at its time, read all answers to their ends, and say what became of it.

    Errors and refusals are noted, not raised. Ctrl-C cancels what is on its way and ends the run.
    `alone` turns deadlines given as factors into times.
    """
    outcomes = []
    for request in sorted(requests, key=lambda request: request.time_s):
        within_s = request.due_within_s(alone)
        due_s = None if within_s is None else request.time_s + within_s
        outcomes.append(Outcome(request, due_s))
    return _LoadInProgress(target, outcomes).play(show)


class _LoadInProgress:
    def __init__(self, target: Target, outcomes: list[Outcome]) -> None:
        self._target = target
        self._board = Board(target.name, target.slots, outcomes)
        self._sent: dict[str, tuple[Outcome, Sent]] = {}
        self._left = len(outcomes)
        self._changed = threading.Condition()
        self._over = threading.Event()

    def play(self, show: Show | None) -> Played:
        board, target = self._board, self._target
        interrupted = False
        looker = None
        if show is not None:
            looker = threading.Thread(target=self._look, name="queryard-load-look", daemon=True)
        # What is there before the start is not looked through for garbage in the middle of a run.
        gc.collect()
        gc.freeze()
        with nullcontext() if show is None else show(board):
            cpu_s = time.process_time()
            board.began = time.perf_counter()
            target.begin(board.now_s)
            if looker is not None:
                looker.start()
            try:
                for outcome in board.outcomes:
                    self._send(outcome)
                self._wait()
            except KeyboardInterrupt:
                interrupted = True
                self._stop()
            finally:
                self._over.set()
                gc.unfreeze()
                if looker is not None:
                    looker.join()
            cpu_s = time.process_time() - cpu_s
        cost = target.cost()
        return Played(target.name, target.slots, tuple(board.outcomes), cpu_s, cost, interrupted)

    # --- asking ----------------------------------------------------------------------------------

    def _send(self, outcome: Outcome) -> None:
        """Wait for the moment of a request, submit it, and start a thread that reads its answer."""
        request = outcome.request
        while (wait_s := request.time_s - self._board.now_s()) > 0:
            time.sleep(min(wait_s, NAP_S))
        outcome.sent_s = self._board.now_s()
        outcome.state = "under way"
        within_s = None if outcome.due_s is None else outcome.due_s - outcome.sent_s
        try:
            sent = self._target.send(request, within_s)
        except QueryardError as error:
            self._end(outcome, error)
            return
        self._sent[request.id] = (outcome, sent)
        # `Thread.start` would wait for the new thread to get its turn on a busy machine.
        start_new_thread(self._read, (outcome, sent))

    def _read(self, outcome: Outcome, sent: Sent) -> None:
        error: BaseException | None = None
        try:
            outcome.rows = sent.read()
        except BaseException as raised:
            error = raised
        ended_s = self._board.now_s()
        with contextlib.suppress(Exception):
            sent.tell(outcome)
        self._end(outcome, error, ended_s)

    def _end(
        self, outcome: Outcome, error: BaseException | None, ended_s: float | None = None
    ) -> None:
        outcome.ended_s = self._board.now_s() if ended_s is None else ended_s
        if error is None:
            outcome.state = "finished"
        else:
            outcome.error = str(error) or type(error).__name__
            outcome.state = _state_of(error)
        with self._changed:
            self._sent.pop(outcome.request.id, None)
            self._left -= 1
            self._changed.notify_all()

    # --- the end ---------------------------------------------------------------------------------

    def _wait(self) -> None:
        with self._changed:
            while self._left:
                self._changed.wait(1.0)

    def _stop(self) -> None:
        """Cancel all that is on its way, and wait until it is gone."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            with self._changed:
                under_way = [sent for _, sent in self._sent.values()]
            if not under_way:
                return
            # Again and again: a request that has not begun yet ignores it.
            for sent in under_way:
                sent.cancel()
            with self._changed:
                self._changed.wait(0.1)

    # --- looking ---------------------------------------------------------------------------------

    def _look(self) -> None:
        """For the display: ask the target now and then what is on its way."""
        pause_s = LOOK_S
        while not self._over.wait(pause_s):
            began_s = time.thread_time()
            self._board.glances = self._target.glance()
            pause_s = max(LOOK_S, (time.thread_time() - began_s) / LOOK_SHARE)


def _state_of(error: BaseException) -> State:
    if isinstance(error, QueryCancelled):
        return "cancelled"
    return "refused" if isinstance(error, Refused) else "failed"

"""Recording a session: from any thread, in microseconds, without ever making a query wait.

Rows go into a queue. One thread takes them out and commits them twice per second, so that a crash
of the process loses no more than that. If nothing more can be written, recording ends with a
warning, and the session goes on.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from queryard.core.journal import Step

from .errors import HistoryWarning
from .opening import reason_of
from .retention import Retention
from .rows import (
    AskedRow,
    CostRow,
    DoneRow,
    EndedRow,
    ForecastRow,
    HeldRow,
    LearntRow,
    Recorded,
    SessionRow,
)
from .writing import Writer

COMMIT_S = 0.4
CLOSE_S = 5.0


class _Mark:
    """Stands in the queue for "all that came before is in the file"."""

    def __init__(self, last: bool = False) -> None:
        self.last = last
        self.reached = threading.Event()


class History:
    """One session's record in the making.

    `begin` comes first. `error` says why nothing is recorded any more, None while all is well;
    `history_cpu_s` is what recording has cost.
    """

    def __init__(self, file: str | os.PathLike[str], keep: Retention | None = None) -> None:
        self.file = Path(file)
        self.error: str | None = None
        self.history_cpu_s = 0.0
        self._keep = keep or Retention()
        self._process = os.getpid()
        self._queue: deque[Recorded | _Mark] = deque()
        self._something = threading.Event()
        self._hurry = threading.Event()
        self._hurry.set()  # the first rows are written at once
        self._closed = False
        self._given_up = False
        self._thread = threading.Thread(target=self._run, name="queryard-history", daemon=True)
        self._thread.start()

    @classmethod
    def open(cls, file: str | os.PathLike[str], *, keep: Retention | None = None) -> History:
        """Record into a file, which is made if it is not there; what is amiss is in `error`."""
        return cls(file, keep)

    # --- from any thread -------------------------------------------------------------------------

    def begin(self, row: SessionRow) -> None:
        """What is recorded from now on belongs to this session."""
        self._put(row)

    def step(self, step: Step) -> None:
        self._put(step)

    def asked(self, row: AskedRow) -> None:
        self._put(row)

    def ended(self, row: EndedRow) -> None:
        self._put(row)

    def forecast(self, row: ForecastRow) -> None:
        self._put(row)

    def held(self, row: HeldRow) -> None:
        self._put(row)

    def cost(self, row: CostRow) -> None:
        self._put(row)

    def done(self, row: DoneRow) -> None:
        self._put(row)

    def learnt(self, row: LearntRow) -> None:
        self._put(row)

    def flush(self, timeout: float = CLOSE_S) -> bool:
        """Wait until all that was recorded so far is in the file; whether it is."""
        mark = _Mark()
        self._put(mark)
        self._hurry.set()
        return self._is_recording() and mark.reached.wait(timeout) and self.error is None

    def close(self) -> None:
        """Write what is left, and end; a warning tells if that cannot be written in time."""
        mark = _Mark(last=True)
        self._put(mark)
        self._hurry.set()
        if self._is_recording():
            self._closed = True
            self._thread.join(CLOSE_S)
            if not mark.reached.is_set() and self.error is None:
                self._given_up = True
                self.error = (
                    f"{self.file}: the end of the session was not written within {CLOSE_S:g} s; "
                    "another program holds the file, or its disk is slow"
                )
                _warn(f"the history of the session is incomplete: {self.error}")

    def _put(self, row: Recorded | _Mark) -> None:
        if self._is_recording():
            self._queue.append(row)
            if not self._something.is_set():
                self._something.set()

    def _is_recording(self) -> bool:
        # In a fork the thread is the parent's, and so is the file.
        return self.error is None and not self._closed and os.getpid() == self._process

    # --- on the writer's thread ------------------------------------------------------------------

    def _run(self) -> None:
        marks: list[_Mark] = []
        try:
            self._record(marks)
        except BaseException as error:
            self.error = reason_of(error, str(self.file))
            marks.extend(row for row in self._taken() if isinstance(row, _Mark))
            for mark in marks:
                mark.reached.set()
            _warn(f"the session is no longer recorded: {self.error}")
        self.history_cpu_s = time.thread_time()

    def _record(self, marks: list[_Mark]) -> None:
        # It lives on this thread's stack, so that a fork has nothing to close.
        writer = Writer(self.file, self._keep)
        try:
            while not self._given_up:
                self._collect(writer.rest_s)
                for row in self._taken():
                    if isinstance(row, _Mark):
                        marks.append(row)
                    else:
                        writer.add(row)
                if writer.commit():
                    for mark in marks:
                        mark.reached.set()
                    if any(mark.last for mark in marks):
                        return
                    marks.clear()
                self.history_cpu_s = time.thread_time()
        finally:
            writer.close()

    def _collect(self, rest_s: float) -> None:
        """Sleep until there is something, and then until it is time to commit it."""
        if self._something.wait(rest_s):
            self._hurry.wait(COMMIT_S)
        self._something.clear()
        self._hurry.clear()

    def _taken(self) -> Iterator[Recorded | _Mark]:
        """All that is in the queue by now."""
        for _ in range(len(self._queue)):
            yield self._queue.popleft()


def _warn(problem: str) -> None:
    # Where warnings are errors, this thread has no caller to raise them to.
    with contextlib.suppress(HistoryWarning):
        warnings.warn(problem, HistoryWarning, stacklevel=2)


class Steps(list[Step]):
    """The steps of a kernel's journal that go to a history and are kept nowhere else.

    `Journal(settings, profile, Steps(history))` is the journal of a kernel that may run for weeks.
    Read as a list, it is empty. `shown` may leave something out of a step.
    """

    def __init__(self, history: History, shown: Callable[[Step], Step] = lambda step: step) -> None:
        super().__init__()
        self._history = history
        self._shown = shown

    def append(self, step: Step) -> None:
        self._history.step(self._shown(step))

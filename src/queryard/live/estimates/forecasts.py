"""When queries will start and end: a fork of the kernel, simulated for a bounded time.

One background thread simulates. A caller waits for it for a moment at most, and otherwise gets the
last forecast and its age.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from queryard.core.changes import apply
from queryard.core.events import EstimateChanged
from queryard.core.scheduler import Scheduler
from queryard.sim.conditions import Conditions
from queryard.sim.forecast import Forecast, Limit, forecast

# How long a caller waits for a forecast; how many processor seconds a forecast may take.
PATIENCE_S = 0.1
LIMIT_S = 1.0


class Fork(NamedTuple):
    """A copy of the kernel, and which queries share the execution of another."""

    kernel: Scheduler
    sharers: Mapping[str, str]

    def without_sharers(self) -> Scheduler:
        """The kernel to be simulated; queries that share an execution have no work of their own."""
        state = self.kernel.state
        for sharer, first in self.sharers.items():
            if sharer in state.queries and first in state.queries:
                for job in state.queries[sharer].jobs:
                    apply(state, EstimateChanged(state.now, job.id, work_s=0.0))
        return self.kernel


class Forecasts(NamedTuple):
    """By query, made at a time of the host's clock from all that was known then."""

    by_query: Mapping[str, Forecast]
    made_s: float


class Forecaster:
    """`fork` copies the kernel, `now` is the host's clock; from any thread."""

    def __init__(
        self,
        fork: Callable[[], Fork],
        now: Callable[[], float],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._fork = fork
        self._now = now
        self._failed = failed
        self._changed = threading.Condition()
        self._wanted = False
        self._closed = False
        self._last = Forecasts({}, float("-inf"))
        # Whether one is in the making; the processor seconds of the last one.
        self._at_work = False
        self._cost_s = 0.0
        self._thread: threading.Thread | None = None

    def newest(self, wait_s: float = PATIENCE_S) -> Forecasts:
        """A forecast of the queue as it is now, if it is there in time; else the last one."""
        asked_s = self._now()
        with self._changed:
            if self._closed:
                return self._last
            self._wanted = True
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="queryard-forecaster", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._last.made_s >= asked_s or self._closed, wait_s)
            return self._last

    def recent(self, share: float) -> Forecasts:
        """The last forecast, at once.

        Another one is begun, unless forecasts would then take more than this share of a core.
        """
        last = self._last
        is_due = self._now() - last.made_s > self._cost_s / share
        return self.newest(0.0) if is_due and not self._wanted and not self._at_work else last

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted or self._closed)
                if self._closed:
                    return
                self._wanted = False
                self._at_work = True
            try:
                made_s = self._now()
                began_s = time.thread_time()
                found = forecasts(self._fork())
                self._cost_s = time.thread_time() - began_s
            except Exception as error:
                self._failed(error)
                continue
            finally:
                self._at_work = False
            with self._changed:
                if not self._closed:
                    self._last = Forecasts(found, made_s)
                self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._last = Forecasts({}, float("-inf"))
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(2 * LIMIT_S)


def forecasts(fork: Fork) -> dict[str, Forecast]:
    """When queries are expected to start and end, if every estimate is right.

    Queries that share an execution end together, and its work is counted once. A query has no end
    if the simulation does not reach it in time.
    """
    limit = Limit(seconds=LIMIT_S, clock=time.thread_time)
    # Slots of this machine are there at once.
    found = forecast(fork.without_sharers(), conditions=Conditions(node_boot_s=0.0), limit=limit)
    for sharer, first in fork.sharers.items():
        if sharer in found and first in found:
            found[sharer] = Forecast(sharer, found[first].start_s, found[first].end_s)
    return found

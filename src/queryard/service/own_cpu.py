"""What a server costs by itself: the processor time of its own threads, by what they do.

Threads are told apart by their names. What DuckDB computes for queries is not in it: slots are
threads of their own.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from weakref import WeakKeyDictionary

PARTS = ("driver", "watch", "history", "listeners", "threads", "background", "portfolio")
"""`driver` decides, `watch` looks at what runs, `history` writes, `listeners` are event loops;
`threads` do for listeners what blocks: they enter statements and encode rows. What runs in the
`background` estimates queries, forecasts, and gathers statistics; the `portfolio` chooses policies,
its worker process included."""

_BY_NAME = (
    ("queryard-loop", "driver"),
    ("queryard-watch", "watch"),
    ("queryard-history", "history"),
    ("queryard-http", "threads"),
    ("queryard-look", "threads"),
    ("queryard-postgres", "threads"),
    ("queryard-quack", "threads"),
    ("queryard-yard", "threads"),
    ("queryard-control", "threads"),
    ("queryard-log", "threads"),
    ("queryard-estimator", "background"),
    ("queryard-forecaster", "background"),
    ("queryard-statistics", "background"),
    ("queryard-copies", "background"),
    ("queryard-portfolio", "portfolio"),
)


class OwnCpu:
    """Reads the clocks of threads from outside: a thread that is measured does nothing for it."""

    def __init__(self, clock_of: Callable[[threading.Thread], int | None]) -> None:
        self._clock_of = clock_of
        self._lock = threading.Lock()
        self._named: WeakKeyDictionary[threading.Thread, str] = WeakKeyDictionary()
        # The last reading of each thread. One that has ended keeps its own.
        self._read: dict[threading.Thread, float] = {}
        self._ended = dict.fromkeys(PARTS, 0.0)

    def name_this_thread(self, part: str) -> None:
        """Count the calling thread as a part, whatever it is called."""
        with self._lock:
            self._named[threading.current_thread()] = part

    def read(self) -> dict[str, float]:
        """Processor seconds so far, by part; they only grow."""
        with self._lock:
            for thread in threading.enumerate():
                if self._part(thread) and (clock := self._clock_of(thread)) is not None:
                    # A thread that has just ended has no clock.
                    with contextlib.suppress(OSError):
                        self._read[thread] = time.clock_gettime(clock)
            for thread in [one for one in self._read if not one.is_alive()]:
                self._ended[self._part(thread)] += self._read.pop(thread)
            found = dict(self._ended)
            for thread, seconds in self._read.items():
                found[self._part(thread)] += seconds
            return found

    def _part(self, thread: threading.Thread) -> str:
        """What a thread does; nothing for one that is not a server's own."""
        if (named := self._named.get(thread)) is not None:
            return named
        return next((part for name, part in _BY_NAME if thread.name.startswith(name)), "")


def thread_clock(thread: threading.Thread) -> int | None:
    """The processor clock of a thread, as Linux numbers them; None elsewhere.

    The C library would look into the thread itself, which may have ended by then. A number of a
    thread that has ended is only an error when its clock is read.

    >>> clock = thread_clock(threading.current_thread())
    >>> clock is None or abs(time.clock_gettime(clock) - time.thread_time()) < 10
    True
    """
    if sys.platform != "linux" or thread.native_id is None:
        return None
    return _LINUX_SCHED_CLOCK | (~thread.native_id << 3)


# <linux/posix-timers.h>: a clock per thread (4), of the time that the scheduler counts (2).
_LINUX_SCHED_CLOCK = 4 | 2

_OWN = OwnCpu(thread_clock)


def own_cpu(portfolio_s: float = 0.0) -> dict[str, float]:
    """Processor seconds of this process's own threads so far, by part (`PARTS`).

    `portfolio_s` is what a portfolio has used beside them (`PolicyInForce.beside_cpu_s`).

    >>> sorted(own_cpu()) == sorted(PARTS)
    True
    """
    found = _OWN.read()
    found["portfolio"] += portfolio_s
    return found


def is_listener() -> None:
    """The calling thread runs the event loop of listeners."""
    _OWN.name_this_thread("listeners")

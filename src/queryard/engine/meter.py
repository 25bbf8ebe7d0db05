"""What a query costs while it runs: the time of the slots that work on it, and of their processors.

A thread can read the processor time of another thread by its clock, so measuring stops no thread.
On systems without such clocks the time that a slot is held is used instead.
"""

from __future__ import annotations

import threading
import time

from .threads import ThreadState, of_this_thread

# A thread that computes for less than this share of the time counts as idle.
BUSY_SHARE = 0.05


class SlotMeter:
    """One slot's time at a query, from the inside."""

    __slots__ = ("began_cpu_s", "began_s", "clock", "state", "window_cpu_s", "window_s")

    def __init__(self) -> None:
        self.clock = _clock_of_this_thread()
        # None once the thread has left, since an idle thread may hold its last stay for long, which
        # must hold no file. Other threads may still ask.
        self.state: ThreadState | None = of_this_thread()
        self.began_s = self.window_s = time.monotonic()
        self.began_cpu_s = self.window_cpu_s = self.cpu_s()

    def cpu_s(self) -> float:
        """Processor seconds of the thread so far."""
        if self.clock is None:
            return time.monotonic()
        return time.clock_gettime(self.clock)

    def is_idle(self, now: float, for_s: float) -> bool:
        """Whether the thread has done next to nothing for `for_s`; must be called repeatedly.

        A thread that waits for a processor or a disk is not idle, nor one that has left.
        """
        state = self.state
        if state is None:
            return False
        cpu_s, elapsed_s = self.cpu_s(), now - self.window_s
        if cpu_s - self.window_cpu_s > BUSY_SHARE * max(elapsed_s, for_s):
            self.window_s, self.window_cpu_s = now, cpu_s
            return False
        return elapsed_s >= for_s and state.is_asleep() is not False


class Meter:
    """Adds up the stays of all slots at one query.

    >>> meter = Meter()
    >>> stay = meter.enter()
    >>> total = sum(range(100_000))
    >>> meter.leave(stay)
    >>> meter.work_s > 0 and meter.held_s > 0
    True
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside: set[SlotMeter] = set()
        self._work_s = 0.0
        self._held_s = 0.0
        # Looks at two slots or more, the slots beyond the first of each, and those found asleep.
        self.looks = 0
        self.beside = 0
        self.asleep = 0

    def enter(self) -> SlotMeter:
        """The calling thread begins to work on the query."""
        stay = SlotMeter()
        with self._lock:
            self._inside.add(stay)
        return stay

    def leave(self, stay: SlotMeter) -> None:
        """The calling thread leaves; it must be the one that entered."""
        with self._lock:
            self._inside.discard(stay)
            self._work_s += stay.cpu_s() - stay.began_cpu_s
            self._held_s += time.monotonic() - stay.began_s
        stay.state = None

    def charge(self, work_s: float, held_s: float) -> None:
        """Enter a part of what a slot has done for several queries."""
        with self._lock:
            self._work_s += work_s
            self._held_s += held_s

    @property
    def work_s(self) -> float:
        """Core-seconds so far, those of slots that are inside included."""
        with self._lock:
            return self._work_s + sum(stay.cpu_s() - stay.began_cpu_s for stay in self._inside)

    @property
    def held_s(self) -> float:
        """Slot-seconds so far."""
        now = time.monotonic()
        with self._lock:
            return self._held_s + sum(now - stay.began_s for stay in self._inside)

    @property
    def slots(self) -> int:
        """How many are inside now."""
        return len(self._inside)

    def look(self) -> None:
        """See how many of the slots do nothing at this moment; to be called now and then.

        A slot that waits for a processor or a disk does something.
        """
        with self._lock:
            threads = [stay.state for stay in self._inside if stay.state is not None]
        if len(threads) < 2:
            return
        asleep = [thread.is_asleep() for thread in threads]
        if None not in asleep:
            self.looks += 1
            self.beside += len(threads) - 1
            self.asleep += min(asleep.count(True), len(threads) - 1)

    def idle(self, for_s: float) -> tuple[int, int]:
        """(threads inside, those of them that have been idle for `for_s`)."""
        now = time.monotonic()
        with self._lock:
            # Call it for all of them, so that each keeps its own window.
            idle = [stay.is_idle(now, for_s) for stay in self._inside]
        return len(idle), sum(idle)


def _clock_of_this_thread() -> int | None:
    try:
        return time.pthread_getcpuclockid(threading.get_ident())
    except (AttributeError, OSError):
        return None

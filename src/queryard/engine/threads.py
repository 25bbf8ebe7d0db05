"""What the operating system knows of a thread, and where it lets one run."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable


def all_asleep(threads: Iterable[int]) -> bool | None:
    """Whether none of these threads (by native id) computes; None if the system does not tell.

    >>> import threading
    >>> all_asleep([threading.get_native_id()]) in (False, None)
    True
    """
    try:
        return all(_state(thread) == "S" for thread in threads)
    except OSError:  # not Linux, or the thread is gone
        return None


def _state(thread: int) -> str:
    with open(f"/proc/self/task/{thread}/stat", encoding="ascii", errors="replace") as stat:
        # The name in parentheses may hold anything.
        return stat.read().rpartition(")")[2].split()[0]


# So many confined threads share a core before another core is used.
THREADS_PER_CORE = 2


class CoreConfinement:
    """Confines overstaying threads to the last cores, so that the other cores are free of them.

    A user may change the cores of a thread and undo it; the priority of a thread could only be
    lowered for good. The first core is never used. Nothing happens on one core, or where the
    system cannot choose cores.
    """

    def __init__(self, places: int) -> None:
        """Confine at most this many threads."""
        self._places = places
        self._lock = threading.Lock()
        # Thread -> where it is confined, and where it could run before.
        self._inside: dict[int, tuple[int, set[int]]] = {}

    def confine(self, thread: int) -> None:
        """Let a thread (by native id, 0 for none) run on one of those cores only."""
        with self._lock:
            if not thread or thread in self._inside or len(self._inside) >= self._places:
                return
            try:
                cores = os.sched_getaffinity(thread)
                if len(cores) > 1:
                    core = self._core(sorted(cores)[:0:-1])
                    os.sched_setaffinity(thread, {core})
                    self._inside[thread] = (core, cores)
            except (AttributeError, OSError):  # not Linux, or the thread is gone
                pass

    def _core(self, cores: list[int]) -> int:
        """The first that has room, else the one with the fewest."""
        taken = [core for core, _ in self._inside.values()]
        free = [core for core in cores if taken.count(core) < THREADS_PER_CORE]
        return free[0] if free else min(cores, key=taken.count)

    def release(self, thread: int) -> None:
        """Let a thread run where it could before."""
        with self._lock:
            found = self._inside.pop(thread, None)
            if found is not None:
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(thread, found[1])

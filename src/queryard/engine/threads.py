"""What the operating system knows of a thread, and where it lets one run."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import weakref
from collections.abc import Iterable


class ThreadState:
    """Whether one thread computes, asked by others; `of_this_thread` makes one per thread.

    The file of the system that tells it is open as long as this is held: to open it is most of what
    it costs to read it, and running statements are looked at every few milliseconds.
    """

    def __init__(self, thread: int) -> None:
        self._file = -1
        with contextlib.suppress(OSError):  # not Linux
            self._file = os.open(f"/proc/self/task/{thread}/stat", os.O_RDONLY | os.O_CLOEXEC)
            # Not `__del__`: that runs while other threads still find the state by its weak
            # reference, with a file that is closed, whose number another file will have.
            weakref.finalize(self, os.close, self._file).atexit = False

    def is_asleep(self) -> bool | None:
        """None if the system does not tell, or the thread is gone.

        A thread that waits for a processor or a disk is not asleep.

        >>> of_this_thread().is_asleep() in (False, None)
        True
        """
        if self._file < 0:
            return None
        try:
            told = os.pread(self._file, 512, 0)
        except OSError:
            return None
        # The name in parentheses may hold anything.
        return told[told.rindex(b")") + 2 :].startswith(b"S")


_own = threading.local()


def of_this_thread() -> ThreadState:
    """The state of the calling thread."""
    # Not held here: a thread that waits for work has no file open.
    known: weakref.ref[ThreadState] | None = getattr(_own, "state", None)
    found = None if known is None else known()
    if found is None:
        found = ThreadState(threading.get_native_id())
        _own.state = weakref.ref(found)
    return found


def all_asleep(threads: Iterable[ThreadState]) -> bool | None:
    """Whether none of these threads computes; None if the system does not tell of some."""
    unknown = False
    for thread in threads:
        asleep = thread.is_asleep()
        if asleep is False:
            return False
        unknown = unknown or asleep is None
    return None if unknown else True


class CoreSpread:
    """Has threads that are woken at once begin on cores of their own.

    The system wakes a thread on the core where it ran last, or on that of the thread which wakes
    it. Two that are woken for one query often begin on one core, beside an idle one, and take turns
    there for as long as a short query takes; most of all in a virtual machine, where Linux takes a
    core that sleeps for one that the host has taken away. So a thread is woken on a core with the
    fewest of the others, and runs nowhere else until it is set `free`. Nothing happens where there
    are more cores than slots, since the system finds an idle one then, or where it cannot choose.

    `begin` and `end` are not for several threads at once.
    """

    def __init__(self, slots: int) -> None:
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        self._cores = cores if 1 < len(cores) <= slots else []
        # How many threads have begun on each.
        self._begun = [0] * len(self._cores)

    def begin(self, thread: int) -> int | None:
        """The place of the core on which a thread (by native id) is to be woken; None for any."""
        if not self._cores:
            return None
        # The thread that calls this goes on for a moment.
        here = _core_of_this_thread()
        begun, cores = self._begun, self._cores
        place = min(range(len(cores)), key=lambda at: (begun[at], cores[at] == here))
        try:
            os.sched_setaffinity(thread, {cores[place]})
        except OSError:  # the process may not use this core any more, or the thread is gone
            return None
        begun[place] += 1
        return place

    def free(self, thread: int = 0) -> None:
        """Let a thread, by default the calling one, run where the system would have it."""
        if self._cores:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(thread, self._cores)

    def end(self, place: int | None) -> None:
        """The thread that began there waits again."""
        if place is not None:
            self._begun[place] -= 1


def _core_of_this_thread() -> int:
    """The core on which the calling thread runs; -1 if the system does not tell."""
    return _getcpu() if _getcpu is not None else -1


_getcpu = getattr(ctypes.CDLL(None), "sched_getcpu", None) if os.name == "posix" else None


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

"""Threads for slots, kept for the next piece of work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue


class Workers:
    """Threads that are kept for the next piece of work; there are as many as are needed at once.

    Not a thread pool of the library's: that one makes interpreter exit wait for a running query.
    Nor a condition: a queue wakes a thread at a fraction of the cost, and every query passes here.
    """

    def __init__(self, failed: Callable[[BaseException], None]) -> None:
        """`failed` is told of an error that a piece of work did not deal with itself."""
        self._failed = failed
        self._lock = threading.Lock()
        # None ends the thread that takes it.
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        # Threads that wait, or are about to, beyond the pieces of work that wait for one.
        self._idle = 0
        self._threads: set[threading.Thread] = set()
        self._closed = False

    def start(self, work: Callable[[], None]) -> None:
        with self._lock:
            if self._idle and not self._closed:
                self._idle -= 1
                self._work.put(work)
                return
            name = f"queryard-slot-{len(self._threads)}"
            thread = threading.Thread(target=self._run, args=([work],), name=name, daemon=True)
            self._threads.add(thread)
            thread.start()

    def _run(self, first: list[Callable[[], None]]) -> None:
        # Taken out of the list: a thread holds its arguments until its end.
        work: Callable[[], None] | None = first.pop()
        while work is not None:
            try:
                work()
            except BaseException as error:
                self._failed(error)
            # An idle thread must not keep alive what the last piece of work referred to.
            del work
            with self._lock:
                if self._closed:
                    return
                self._idle += 1
            work = self._work.get()

    def close(self, deadline: float) -> bool:
        """End all threads; False if some go on longer than that."""
        with self._lock:
            self._closed = True
            threads = set(self._threads)
            for _ in threads:
                self._work.put(None)
        others = threads - {threading.current_thread()}
        for thread in others:
            thread.join(max(0.1, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in others)

"""Threads for slots, kept for the next piece of work."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable


class Workers:
    """Threads that are kept for the next piece of work; there are as many as are needed at once.

    Not a thread pool of the library's: that one makes interpreter exit wait for a running query.
    """

    def __init__(self, failed: Callable[[BaseException], None]) -> None:
        """`failed` is told of an error that a piece of work did not deal with itself."""
        self._failed = failed
        self._ready = threading.Condition()
        self._work: deque[Callable[[], None]] = deque()
        self._idle = 0
        self._threads: set[threading.Thread] = set()
        self._closed = False

    def start(self, work: Callable[[], None]) -> None:
        with self._ready:
            self._work.append(work)
            if self._idle >= len(self._work):
                self._ready.notify()
                return
            name = f"queryard-slot-{len(self._threads)}"
            thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._threads.add(thread)
            thread.start()

    def _run(self) -> None:
        while True:
            with self._ready:
                self._idle += 1
                self._ready.wait_for(lambda: self._work or self._closed)
                self._idle -= 1
                if not self._work:
                    return
                work = self._work.popleft()
            try:
                work()
            except BaseException as error:
                self._failed(error)
            # An idle thread must not keep alive what the last piece of work referred to.
            del work

    def close(self, deadline: float) -> bool:
        """End all threads; False if some go on longer than that."""
        with self._ready:
            self._closed = True
            self._ready.notify_all()
        others = self._threads - {threading.current_thread()}
        for thread in others:
            thread.join(max(0.1, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in others)

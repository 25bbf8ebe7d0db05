"""Threads for slots, kept for the next piece of work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Protocol

from queryard.engine.threads import CoreSpread

Work = Callable[[], None]


class Start(Protocol):
    """Starts some work on a thread."""

    def __call__(self, work: Work, *, stays: bool = False) -> None: ...


class _Worker:
    """A thread, the work that it is given (None ends it), and the core to which that keeps."""

    __slots__ = ("core", "id", "thread", "work")

    def __init__(self, first: Work) -> None:
        self.work: SimpleQueue[Work | None] = SimpleQueue()
        self.work.put(first)
        self.thread: threading.Thread | None = None
        self.id = 0
        self.core: int | None = None


class Workers:
    """Threads that are kept for the next piece of work; there are as many as are needed at once.

    Not a thread pool of the library's: that one makes interpreter exit wait for a running query.
    Nor a condition: a queue wakes a thread at a fraction of the cost, and every query passes here.
    """

    def __init__(
        self, failed: Callable[[BaseException], None], spread: CoreSpread | None = None
    ) -> None:
        """`failed` is told of an error that a piece of work did not deal with itself; `spread` says
        on which cores work begins that stays.
        """
        self._failed = failed
        self._spread = spread or CoreSpread(0)
        self._lock = threading.Lock()
        # Those that wait, or are about to; the one that worked last is the next.
        self._idle: list[_Worker] = []
        self._workers: set[_Worker] = set()
        self._closed = False

    def start(self, work: Work, *, stays: bool = False) -> None:
        """Work that `stays` begins on a core of its own, and keeps to it until it is set free."""
        with self._lock:
            if self._idle and not self._closed:
                worker = self._idle.pop()
                worker.core = self._spread.begin(worker.id) if stays else None
                worker.work.put(work)
                return
            worker = _Worker(work)
            name = f"queryard-slot-{len(self._workers)}"
            thread = threading.Thread(target=self._run, args=(worker,), name=name, daemon=True)
            worker.thread = thread
            self._workers.add(worker)
            thread.start()

    def _run(self, worker: _Worker) -> None:
        worker.id = threading.get_native_id()
        while (work := worker.work.get()) is not None:
            if worker.core is None:
                self._spread.free()  # its work before may have kept it to a core
            try:
                work()
            except BaseException as error:
                self._failed(error)
            # An idle thread must not keep alive what the last piece of work referred to.
            del work
            with self._lock:
                self._spread.end(worker.core)
                if self._closed:
                    return
                self._idle.append(worker)

    def close(self, deadline: float) -> bool:
        """End all threads; False if some go on longer than that."""
        with self._lock:
            self._closed = True
            workers = set(self._workers)
            for worker in workers:
                worker.work.put(None)
        threads = {worker.thread for worker in workers if worker.thread is not None}
        others = threads - {threading.current_thread()}
        for thread in others:
            thread.join(max(0.1, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in others)

"""This machine as a cluster of one node: a slot is a thread.

Native queries are served by as many slots as the kernel grants; tasks of staged queries run one a
slot. Whatever happens is posted as an event; the driver gives it its time.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from queryard.core.commands import Grant, Kill, Launch, Revoke
from queryard.core.events import LeaseEnded, Progressed, TaskFailed, TaskFinished, WidthChanged
from queryard.core.model import Kind
from queryard.engine.errors import QueryCancelled
from queryard.engine.native import NativeQuery
from queryard.engine.statement import Lease

NODE = "local"
# How often to look at a running statement: seldom enough to cost nothing, and at a small share
# of the time it has already taken, so that an end is seen soon in relation to the whole.
POLL_S = (0.0003, 0.004)
POLL_SHARE = 0.01
PROGRESS_S = 0.25

Event = LeaseEnded | Progressed | TaskFailed | TaskFinished | WidthChanged


class StagedTasks(Protocol):
    """A staged query, as far as a backend knows it."""

    def run(self, job: str, kind: Kind, index: int) -> float:
        """Run one task on the calling thread; its output in bytes."""

    def cancel(self, error: BaseException) -> None:
        """Stop all tasks that run now."""


class LocalBackend:
    """Slots of this process."""

    def __init__(self, slots: int, post: Callable[[Event], None]) -> None:
        self.slots = slots
        self._post = post
        self._workers = _Workers()
        self._watch = _Watch(self._tell_progress)
        self._lock = threading.Lock()
        self._natives: dict[str, NativeQuery] = {}
        self._leases: dict[str, list[Lease]] = {}
        self._staged: dict[str, StagedTasks] = {}
        self._launched: dict[int, str] = {}
        self._told_s: dict[str, float] = {}

    # --- what there is to run ------------------------------------------------------------------

    def add_native(self, job: str, query: NativeQuery, width: int) -> None:
        """Make a native query known before the kernel hears of it."""
        query.output.on_full = lambda: self._post(WidthChanged(0.0, job, 0))
        wake = query.output.on_room

        def on_room() -> None:
            self._post(WidthChanged(0.0, job, width))
            wake()

        query.output.on_room = on_room
        with self._lock:
            self._natives[job] = query
            self._leases[job] = []

    def errand(self, work: Callable[[], None]) -> None:
        """Run something on a thread beside the slots: planning, handing over rows."""
        self._workers.start(work)

    def add_staged(self, query: str, tasks: StagedTasks) -> None:
        with self._lock:
            self._staged[query] = tasks

    def forget(self, query: str) -> None:
        """A query has ended; nothing of it is running."""
        with self._lock:
            self._staged.pop(query, None)
            for job in [job for job in self._natives if job.rpartition("/")[0] == query]:
                del self._natives[job], self._leases[job]
                self._told_s.pop(job, None)

    # --- commands ------------------------------------------------------------------------------

    def obey(self, command: Grant | Revoke | Launch | Kill) -> None:
        """Begin to carry out a command; what comes of it is posted."""
        match command:
            case Grant():
                self._grant(command)
            case Revoke():
                self._revoke(command)
            case Launch():
                with self._lock:
                    self._launched[command.number] = command.tasks[0].job
                self._workers.start(partial(self._run_tasks, command))
            case Kill():
                self._kill(command)

    def _grant(self, command: Grant) -> None:
        with self._lock:
            query = self._natives[command.job]
            leases = [Lease() for _ in range(command.slots)]
            self._leases[command.job] += leases
        for lease in leases:
            self._watch.add(command.job, query)
            self._workers.start(partial(self._serve, command.job, query, lease))

    def _revoke(self, command: Revoke) -> None:
        with self._lock:
            query = self._natives.get(command.job)
            if query is None:
                return
            held = [lease for lease in self._leases[command.job] if not lease.withdrawn]
            # The one that came last goes first: it has least to lose.
            taken = held[len(held) - command.slots :]
            for lease in taken:
                lease.withdrawn = True
        for lease in taken:
            query.withdraw(lease)

    def _serve(self, job: str, query: NativeQuery, lease: Lease) -> None:
        query.serve(lease)
        self._watch.remove(job)
        with self._lock:
            self._leases[job].remove(lease)
        if not query.ended:
            self._post(LeaseEnded(0.0, job, NODE, 1, "revoked"))
        elif query.error is None:
            self._post(LeaseEnded(0.0, job, NODE, 1, "finished"))
        else:
            self._post(LeaseEnded(0.0, job, NODE, 1, "failed", str(query.error)))

    def _run_tasks(self, command: Launch) -> None:
        output_bytes = 0.0
        try:
            for task in command.tasks:
                query, _, job = task.job.rpartition("/")
                with self._lock:
                    tasks = self._staged.get(query)
                if tasks is None:
                    raise LookupError(f"query {query} has ended")
                output_bytes += tasks.run(job, task.kind, task.index)
        except BaseException as error:
            self._post(TaskFailed(0.0, command.number, str(error) or type(error).__name__))
        else:
            self._post(TaskFinished(0.0, command.number, NODE, output_bytes))
        finally:
            with self._lock:
                self._launched.pop(command.number, None)

    def _kill(self, command: Kill) -> None:
        with self._lock:
            job = self._launched.get(command.number)
            tasks = self._staged.get(job.rpartition("/")[0]) if job is not None else None
        if tasks is not None:
            self._workers.start(partial(tasks.cancel, QueryCancelled("killed")))

    # --- looking on ----------------------------------------------------------------------------

    def _tell_progress(self, job: str, query: NativeQuery, now: float) -> None:
        if now - self._told_s.setdefault(job, now) >= PROGRESS_S:
            self._told_s[job] = now
            self._post(Progressed(0.0, job, query.progress()))

    def close(self, timeout_s: float = 10.0) -> bool:
        """Stop all threads, and cancel what still runs; False if some go on longer than that."""
        deadline = time.monotonic() + timeout_s
        with self._lock:
            queries = list(self._natives.values())
            staged = list(self._staged.values())
        for query in queries:
            query.cancel()
        for tasks in staged:
            tasks.cancel(QueryCancelled("the session was closed"))
        stopped = self._workers.close(deadline)
        self._watch.close()
        return stopped


class _Workers:
    """Threads that are kept for the next piece of work; there are as many as are needed at once.

    Not a thread pool of the library's: that one makes interpreter exit wait for a running query.
    """

    def __init__(self) -> None:
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
            except BaseException:
                # A mistake of Queryard's own; the thread is needed again.
                threading.excepthook(
                    threading.ExceptHookArgs([*sys.exc_info(), threading.current_thread()])
                )
            # An idle thread must not keep alive what the last piece of work referred to.
            del work

    def close(self, deadline: float) -> bool:
        with self._ready:
            self._closed = True
            self._ready.notify_all()
        others = self._threads - {threading.current_thread()}
        for thread in others:
            thread.join(max(0.1, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in others)


class _Watch:
    """One thread that looks at running statements; it sleeps while there are none."""

    def __init__(self, tell: Callable[[str, NativeQuery, float], None]) -> None:
        self._tell = tell
        self._changed = threading.Condition()
        self._watched: dict[str, tuple[NativeQuery, float, int]] = {}
        self._closed = False
        self._thread: threading.Thread | None = None

    def add(self, job: str, query: NativeQuery) -> None:
        """A slot is about to work on it."""
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="queryard-watch", daemon=True
                )
                self._thread.start()
            _, since, slots = self._watched.get(job, (query, time.monotonic(), 0))
            self._watched[job] = (query, since, slots + 1)
            self._changed.notify_all()

    def remove(self, job: str) -> None:
        """A slot has left it."""
        with self._changed:
            query, since, slots = self._watched.pop(job)
            if slots > 1:
                self._watched[job] = (query, since, slots - 1)

    def _run(self) -> None:
        shortest, longest = POLL_S
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._watched or self._closed)
                if self._closed:
                    return
                watched = list(self._watched.items())
            now = time.monotonic()
            pause = longest
            for job, (query, since, _) in watched:
                try:
                    query.poll()
                    self._tell(job, query, now)
                except BaseException as error:
                    query.cancel(error)
                pause = min(pause, max(shortest, (now - since) * POLL_SHARE))
            time.sleep(pause)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(5.0)

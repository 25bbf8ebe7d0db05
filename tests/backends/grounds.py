"""Backends as a conformance test drives them: what runs ends when the test says so."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from queryard.backends.fake import FakeBackend, Script
from queryard.backends.local import LocalBackend
from queryard.backends.protocol import NATIVE_JOB, Backend, Leased, RunEnded, Staged
from queryard.core.commands import Grant, Launch, Revoke
from queryard.core.events import LeaseEnded
from queryard.core.model import JobId, Node, TaskId
from queryard.engine.errors import QueryCancelled
from queryard.results.streams import ResultStream

from .stubborn import PATIENCE_S, AsGiven, StubbornQuery

NODES = (Node("n1", 2, 1e9), Node("n2", 2, 1e9))


class HeldTasks:
    """Tasks that run until they are let go, killed or cancelled."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._ends: dict[int, BaseException | None] = {}
        self._killed: set[int] = set()
        self._cancelled: BaseException | None = None

    def end(self, launch: int, error: BaseException | None) -> None:
        with self._changed:
            self._ends[launch] = error
            self._changed.notify_all()

    @contextmanager
    def reading(self, launch: int, riders: Any) -> Iterator[list[str]]:
        yield [""] * len(riders)

    def cost_s(self, task: TaskId) -> float:
        return 1.0

    def run(self, launch: int, task: TaskId, source: str = "") -> float:
        with self._changed:
            self._changed.wait_for(
                lambda: launch in self._ends or launch in self._killed or self._cancelled,
                PATIENCE_S,
            )
            if self._cancelled is not None:
                raise self._cancelled
            if launch in self._killed:
                raise QueryCancelled("killed")
            error = self._ends[launch]
        if error is not None:
            raise error
        return 10.0

    def kill(self, launch: int) -> None:
        with self._changed:
            self._killed.add(launch)
            self._changed.notify_all()

    def cancel(self, error: BaseException) -> None:
        with self._changed:
            self._cancelled = error
            self._changed.notify_all()


class Ground:
    """One backend, and all that it has told."""

    backend: Backend
    nodes: tuple[str, ...] = tuple(node.id for node in NODES)
    # Whether a run can have slots of several nodes.
    spans = True
    # Whether a query can join the run of another.
    shares = True

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.tasks: dict[str, HeldTasks] = {}

    def leased(self, query: str, run: str = "") -> None:
        """A query of its own, or one that joins the run of another."""
        raise NotImplementedError

    def staged(self, query: str) -> None:
        self.tasks[query] = HeldTasks()
        self.backend.add(query, Staged(self.tasks[query]))

    def grant(self, query: str, slots: int = 1, node: int = 0) -> None:
        self.backend.execute(Grant(str(JobId(query, NATIVE_JOB)), self.nodes[node], slots))

    def revoke(self, query: str, slots: int = 1, node: int = 0) -> None:
        self.backend.execute(Revoke(str(JobId(query, NATIVE_JOB)), self.nodes[node], slots))

    def launch(self, number: int, query: str, node: int = 0) -> None:
        task = TaskId(str(JobId(query, "scan")), "map", number)
        self.backend.execute(Launch(number, self.nodes[node], (task,)))

    def finish(self, run: str, error: BaseException | None = None) -> None:
        """A run that has slots ends."""
        raise NotImplementedError

    def finish_task(self, number: int, query: str, error: BaseException | None = None) -> None:
        raise NotImplementedError

    def until(self, true: Callable[[list[Any]], bool]) -> list[Any]:
        """All that is told until something is true of it."""
        raise NotImplementedError

    def quiet(self) -> list[Any]:
        """All that is told although nothing more is to come."""
        raise NotImplementedError

    def close(self) -> bool:
        return self.backend.close(10.0)

    def until_ended(self, slots: int) -> list[Any]:
        """Until so many slots have been told back."""
        return self.until(lambda told: sum(e.slots for e in ends(told)) >= slots)


def ends(told: list[Any]) -> list[LeaseEnded]:
    return [event for event in told if isinstance(event, LeaseEnded)]


class RealGround(Ground):
    """A backend that works in real time, and tells what happens through a queue."""

    # How long it may take until something is told that is not to come.
    quiet_s: float

    def __init__(self, events: queue.SimpleQueue[Any]) -> None:
        super().__init__()
        self._events = events

    def until(self, true: Callable[[list[Any]], bool]) -> list[Any]:
        until = time.monotonic() + PATIENCE_S
        while not true(self.told):
            self.told.append(self._events.get(timeout=max(0.0, until - time.monotonic())))
        return self.told

    def quiet(self) -> list[Any]:
        time.sleep(self.quiet_s)
        while not self._events.empty():
            self.told.append(self._events.get())
        return self.told


class LocalGround(RealGround):
    """Threads of this process, and queries that do nothing."""

    quiet_s = 0.1

    def __init__(self) -> None:
        super().__init__(queue.SimpleQueue())
        self._queries: dict[str, StubbornQuery] = {}
        self.backend = LocalBackend(AsGiven(), NODES)
        self.backend.start(self._events.put)

    def leased(self, query: str, run: str = "") -> None:
        if run:
            self.backend.add(query, Leased(run, 4, ResultStream()))
            return
        self._queries[query] = StubbornQuery()
        self.backend.add(query, Leased(query, 4, ResultStream(), self._queries[query]))

    def finish(self, run: str, error: BaseException | None = None) -> None:
        self._queries[run].end(error)

    def finish_task(self, number: int, query: str, error: BaseException | None = None) -> None:
        self.tasks[query].end(number, error)


class FakeGround(Ground):
    """Virtual time."""

    def __init__(self) -> None:
        super().__init__()
        self._errors: dict[str, BaseException | None] = {}
        self._task_errors: dict[int, BaseException | None] = {}
        script = Script(
            work_s=lambda run: 1e6,
            error=lambda run: self._errors.get(run),
            task_s=lambda task, attempt: 1e6,
        )
        self.backend = self.fake = FakeBackend(NODES, script)
        self.backend.start(self.told.append)

    def leased(self, query: str, run: str = "") -> None:
        work = Leased(run, 4, None) if run else Leased(query, 4, None, query)
        self.backend.add(query, work)

    def finish(self, run: str, error: BaseException | None = None) -> None:
        self._errors[run] = error
        self.fake.finish(run)

    def finish_task(self, number: int, query: str, error: BaseException | None = None) -> None:
        self.fake.finish_task(number, error)

    def until(self, true: Callable[[list[Any]], bool]) -> list[Any]:
        for _ in range(10_000):
            if true(self.told):
                return self.told
            assert self.fake.next_s is not None, "nothing more happens"
            self.fake.advance(self.fake.next_s)
        raise AssertionError("it does not happen")

    def quiet(self) -> list[Any]:
        self.fake.advance(self.fake.now_s + 1.0)
        return self.told


def ended(told: list[Any]) -> list[RunEnded]:
    return [event for event in told if isinstance(event, RunEnded)]

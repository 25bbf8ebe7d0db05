"""Tasks of staged queries on the threads of this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

from queryard.backends.protocol import LaunchFailed, Post, QueryUsed, TaskSet, Usage
from queryard.core.commands import Kill, Launch
from queryard.core.events import TaskFinished
from queryard.core.model import JobId, TaskId
from queryard.engine.errors import QueryCancelled
from queryard.engine.meter import Meter


class LocalTasks:
    """The launches under way; `start` runs something on a slot's thread."""

    def __init__(
        self, start: Callable[[Callable[[], None]], None], speed: Callable[[str], float]
    ) -> None:
        """A node with a `speed` below 1 is made slower by pauses after its tasks."""
        self._start = start
        self._speed = speed
        self._post: Post = _nothing
        self._lock = threading.Lock()
        self._sets: dict[str, tuple[TaskSet, Meter]] = {}
        self._launched: dict[int, Launch] = {}
        self._killed: set[int] = set()

    def begin(self, post: Post) -> None:
        self._post = post

    def add(self, query: str, tasks: TaskSet) -> None:
        with self._lock:
            self._sets[query] = (tasks, Meter())

    def stop(self, query: str, error: BaseException) -> None:
        with self._lock:
            found = self._sets.get(query)
        if found is not None:
            self._start(partial(found[0].cancel, error))

    def forget(self, query: str) -> None:
        with self._lock:
            self._sets.pop(query, None)

    def launch(self, command: Launch) -> None:
        with self._lock:
            self._launched[command.number] = command
        self._start(partial(self._run, command))

    def kill(self, command: Kill) -> None:
        """Stop one launch, and no other."""
        with self._lock:
            launch = self._launched.get(command.number)
            if launch is None:
                return
            self._killed.add(command.number)
            sets = [self._sets.get(_query(task)) for task in launch.tasks]
        for found in sets:
            if found is not None:
                self._start(partial(found[0].kill, command.number))

    def _run(self, command: Launch) -> None:
        output_bytes = 0.0
        began = time.monotonic()
        query = _query(command.tasks[0])
        error: BaseException | None = None
        try:
            for task in command.tasks:
                query = _query(task)
                output_bytes += self._run_one(task, query, command.number)
            speed = self._speed(command.node)
            time.sleep(max(0.0, (time.monotonic() - began) * (1.0 / speed - 1.0)))
        except BaseException as caught:
            error = caught
        with self._lock:
            self._launched.pop(command.number, None)
            self._killed.discard(command.number)
            used = {_query(task): self._sets.get(_query(task)) for task in command.tasks}
        for name, found in used.items():
            if found is not None:
                self._post(QueryUsed(name, _usage(found[1])))
        if error is None:
            self._post(TaskFinished(0.0, command.number, command.node, output_bytes))
        else:
            self._post(LaunchFailed(command.number, query, error))

    def _run_one(self, task: TaskId, query: str, launch: int) -> float:
        with self._lock:
            found = self._sets.get(query)
            if found is None or launch in self._killed:
                raise QueryCancelled("killed")
        tasks, meter = found
        stay = meter.enter()
        try:
            return tasks.run(launch, task._replace(job=JobId.of(task.job).name))
        finally:
            meter.leave(stay)

    def cancel_all(self) -> None:
        with self._lock:
            sets = list(self._sets.values())
        for tasks, _ in sets:
            tasks.cancel(QueryCancelled("the session was closed"))


def _query(task: TaskId) -> str:
    return JobId.of(task.job).query


def _usage(meter: Meter) -> Usage:
    return Usage(meter.work_s, meter.held_s, 0.0, meter.slots)


def _nothing(event: object) -> None:
    pass

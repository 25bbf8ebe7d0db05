"""Tasks of staged queries on the threads of this process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from queryard.backends.protocol import LaunchFailed, Post, QueryUsed, TaskSet, Usage
from queryard.core.commands import Kill, Launch
from queryard.core.events import TaskFinished
from queryard.core.model import JobId, TaskId
from queryard.engine.errors import QueryCancelled
from queryard.engine.meter import Meter, SlotMeter

# No rider pays nothing.
LEAST_S = 1e-6


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
        """Read what the tasks of a launch share, and run them one after another."""
        began = time.monotonic()
        left_bytes: dict[str, float] = {}
        failures: list[tuple[TaskId, BaseException]] = []
        try:
            with self._reading(command) as sources:
                for task in command.tasks:
                    try:
                        source = sources.get(task, "")
                        left_bytes[task.job] = self._run_one(task, command.number, source)
                    except BaseException as caught:
                        failures.append((task, caught))
            speed = self._speed(command.node)
            time.sleep(max(0.0, (time.monotonic() - began) * (1.0 / speed - 1.0)))
        except BaseException as caught:
            # Which of the riders is at fault is not known: each is tried again alone.
            self._over(command)
            self._post(LaunchFailed(command.number, _query(command.tasks[0]), caught))
            return
        self._over(command)
        rides = len(command.tasks) > 1
        for task, error in failures:
            job = task.job if rides else ""
            self._post(LaunchFailed(command.number, _query(task), error, job))
        if len(failures) < len(command.tasks):
            total = sum(left_bytes.values())
            self._post(
                TaskFinished(
                    0.0, command.number, command.node, total, left_bytes if rides else None
                )
            )

    def _over(self, command: Launch) -> None:
        """A launch has ended: tell what its queries have cost."""
        with self._lock:
            self._launched.pop(command.number, None)
            self._killed.discard(command.number)
            used = {_query(task): self._sets.get(_query(task)) for task in command.tasks}
        for name, found in used.items():
            if found is not None:
                self._post(QueryUsed(name, _usage(found[1])))

    @contextmanager
    def _reading(self, command: Launch) -> Iterator[dict[TaskId, str]]:
        """What the tasks of a launch read; riders pay for it by what is expected of them."""
        known, riders = [], []
        with self._lock:
            for task in command.tasks:
                found = self._sets.get(_query(task))
                if found is not None and command.number not in self._killed:
                    known.append(task)
                    riders.append((*found, _of_plan(task)))
        if not riders:
            raise QueryCancelled("killed")
        stay = SlotMeter()
        together = [(tasks, task) for tasks, _, task in riders]
        with riders[0][0].reading(command.number, together) as sources:
            work_s, held_s = stay.cpu_s() - stay.began_cpu_s, time.monotonic() - stay.began_s
            costs = [max(tasks.cost_s(task), LEAST_S) for tasks, _, task in riders]
            for (_, meter, _), cost_s in zip(riders, costs, strict=True):
                meter.charge(work_s * cost_s / sum(costs), held_s * cost_s / sum(costs))
            yield dict(zip(known, sources, strict=True))

    def _run_one(self, task: TaskId, launch: int, source: str) -> float:
        with self._lock:
            found = self._sets.get(_query(task))
            if found is None or launch in self._killed:
                raise QueryCancelled("killed")
        tasks, meter = found
        stay = meter.enter()
        try:
            return tasks.run(launch, _of_plan(task), source)
        finally:
            meter.leave(stay)

    def cancel_all(self) -> None:
        with self._lock:
            sets = list(self._sets.values())
        for tasks, _ in sets:
            tasks.cancel(QueryCancelled("the session was closed"))


def _of_plan(task: TaskId) -> TaskId:
    """The task, with the name its job has within its query."""
    return task._replace(job=JobId.of(task.job).name)


def _query(task: TaskId) -> str:
    return JobId.of(task.job).query


def _usage(meter: Meter) -> Usage:
    return Usage(meter.work_s, meter.held_s, 0.0, meter.slots)


def _nothing(event: object) -> None:
    pass

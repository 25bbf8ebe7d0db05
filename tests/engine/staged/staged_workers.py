"""Processes that run tasks of staged queries: each is a place, with a DuckDB instance of its own.

Nothing passes between them but bytes and files.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import pickle
import shutil
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import pyarrow as pa
from staged_driving import ready_tasks
from staged_worker import serve

from queryard.core.model import TaskId
from queryard.engine.staged.file_exchange import FileExchange
from queryard.engine.staged.query import StagedQuery
from queryard.engine.staged.store import MissingRows
from queryard.engine.staged.task import TaskSpec
from queryard.sql.planner import StagedPlan

MEMORY_BYTES = 256 << 20


class Worker:
    """A worker process, seen from the driver."""

    def __init__(self, folder: Path, place: str) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.place = place
        self.pipe, theirs = spawn.Pipe()
        self.task: TaskId | None = None
        self._folder = folder
        self._process = spawn.Process(target=serve, args=(theirs, folder, place), daemon=True)
        self._process.start()
        theirs.close()

    def send(self, task: TaskId, spec: TaskSpec) -> None:
        self.task = task
        self.pipe.send_bytes(pickle.dumps(spec))

    def kill(self) -> None:
        """End the process where it is; what it has put is gone."""
        self._process.kill()
        self._process.join()
        self.pipe.close()
        shutil.rmtree(self._folder / self.place)

    def close(self) -> None:
        self.pipe.close()
        self._process.join(30)


class Workers:
    """Some worker processes, and the driver of one query at a time."""

    def __init__(self, folder: Path, count: int) -> None:
        self.exchange = FileExchange(folder, "driver")
        self.runs: Counter[TaskId] = Counter()
        self.places: dict[TaskId, str] = {}
        self._folder = folder
        self._numbers = itertools.count(1)
        self._all: dict[str, Worker] = {}
        for _ in range(count):
            self.add()

    def add(self) -> None:
        worker = Worker(self._folder, f"w{next(self._numbers)}")
        self._all[worker.place] = worker

    def answer(
        self, plan: StagedPlan, after_send: Callable[[StagedQuery, Worker], None] | None = None
    ) -> pa.Table:
        """Run all tasks of a plan, each in the first process that is free."""
        query = StagedQuery(plan, f"q{next(self._numbers)}", MEMORY_BYTES, nodes=len(self._all))
        query.publish(self.exchange)
        self.runs.clear()
        self.places.clear()
        while query.needed():
            running = {worker.task for worker in self._all.values()}
            ready = [task for task in ready_tasks(query) if task not in running]
            idle = [worker for worker in self._all.values() if worker.task is None]
            for worker, task in zip(idle, ready, strict=False):
                try:
                    spec = query.spec(task, self.runs[task] + 1)
                except MissingRows:  # its inputs went with a process that was killed just now
                    break
                self.runs[task] += 1
                worker.send(task, spec)
                if after_send is not None:
                    after_send(query, worker)
            self._hear(query)
        answer = query.result(self.exchange).read_all()
        self.exchange.drop(query.keys())
        return answer

    def kill(self, worker: Worker) -> None:
        worker.kill()
        del self._all[worker.place]
        self.add()

    def _hear(self, query: StagedQuery) -> None:
        busy = {worker.pipe: worker for worker in self._all.values() if worker.task is not None}
        if not busy:  # the only one was killed just now
            return
        found: list[Any] = wait(list(busy), timeout=60)
        assert found, "no process answers"
        for pipe in found:
            worker = busy[pipe]
            assert worker.task is not None
            text = pipe.recv_bytes()
            match text[:4]:
                case b"done":
                    assert query.done(worker.task, pickle.loads(text[4:]))
                    self.places[worker.task] = worker.place
                case b"lost":
                    for holder in json.loads(text[4:]):
                        query.lost(holder)
                case _:
                    raise AssertionError(f"{worker.task}: {text[4:].decode()}")
            worker.task = None

    def close(self) -> None:
        for worker in self._all.values():
            worker.close()

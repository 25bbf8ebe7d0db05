"""Work at nodes that ends when a test says so: by files, since nodes are other processes."""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from queryard.backends.protocol import Ready
from queryard.backends.ray.messages import Gone, NodeFacts, NodeSetting, Tables
from queryard.backends.ray.peers import Peers
from queryard.backends.ray.workplace import versions
from queryard.core.model import TaskId
from queryard.engine.errors import QueryCancelled

from .stubborn import PATIENCE_S, StubbornQuery

LOOK_S = 0.005
POOL_BYTES = 1 << 30


def let_end(folder: Path, name: str, error: BaseException | None) -> None:
    """A query or a task ends from now on."""
    made = folder / f"{name}.new"
    made.write_bytes(pickle.dumps(error))
    made.rename(folder / f"{name}.end")


def _end_of(folder: str, name: str) -> tuple[bool, BaseException | None]:
    try:
        return True, pickle.loads(Path(folder, f"{name}.end").read_bytes())
    except FileNotFoundError:
        return False, None


class HeldQuery(StubbornQuery):
    """A query at a node."""

    def __init__(self, folder: str, name: str) -> None:
        super().__init__()
        threading.Thread(target=self._wait, args=(folder, name), daemon=True).start()

    def _wait(self, folder: str, name: str) -> None:
        while not self.ended:
            ended, error = _end_of(folder, name)
            if ended:
                self.end(error)
                return
            time.sleep(LOOK_S)


class HeldEngine:
    """A statement is the folder and the name of what ends it."""

    def open(self, statement: Any, output: Any) -> Any:
        return HeldQuery(*statement)


class HeldNodeTasks:
    """Tasks at a node."""

    objects = 0

    def __init__(self, folder: str, tell: Any) -> None:
        self._folder = folder
        self._tell = tell
        self._killed: set[int] = set()
        self._cancelled: BaseException | None = None

    def expect(self, launch: int, spec: Any) -> None:
        pass

    def rows(self, wanted: Any) -> Any:
        return Gone(())

    @contextmanager
    def reading(self, launch: int, riders: Any) -> Iterator[list[str]]:
        yield [""] * len(riders)

    def cost_s(self, task: TaskId) -> float:
        return 1.0

    def run(self, launch: int, task: TaskId, source: str = "") -> float:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if self._cancelled is not None:
                raise self._cancelled
            if launch in self._killed:
                raise QueryCancelled("killed")
            ended, error = _end_of(self._folder, str(launch))
            if error is not None:
                raise error
            if ended:
                self._tell(launch, task, None)
                return 10.0
            time.sleep(LOOK_S)
        raise TimeoutError

    def kill(self, launch: int) -> None:
        self._killed.add(launch)

    def cancel(self, error: BaseException) -> None:
        self._cancelled = error

    def close(self) -> None:
        pass


class HeldWorkplace:
    """A node without DuckDB."""

    def __init__(self, setting: NodeSetting) -> None:
        import ray

        self.engine = HeldEngine()
        self.peers = Peers(ray, 0.0)

    def facts(self) -> NodeFacts:
        return NodeFacts(os.getpid(), versions(), POOL_BYTES, POOL_BYTES, ())

    def take(self, tables: Tables) -> None:
        pass

    def open_tasks(self, query: str, opening: Any, tell: Any) -> Any:
        return HeldNodeTasks(opening, tell)

    def close(self) -> None:
        pass


class HeldPlaced:
    """The driver's side of such tasks: each can run at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def opening(self, cluster_bytes: float) -> Any:
        return str(self._folder)

    def next_for(
        self, task: TaskId, attempt: int, making: Container[TaskId], beside: bool
    ) -> Ready | None:
        return Ready(task, None)

    def done(self, task: TaskId, outcome: Any, beside: bool) -> None:
        pass

    def lose_place(self, place: str) -> None:
        pass

    def lose_pieces(self, task: TaskId, error: BaseException) -> BaseException:
        return error

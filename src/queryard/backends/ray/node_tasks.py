"""Tasks of one staged query at one node."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from queryard.core.errors import QueryardError
from queryard.core.model import TaskId
from queryard.engine.access import Access, Reach
from queryard.engine.errors import QueryCancelled
from queryard.engine.pool import InstancePool
from queryard.engine.staged.cancellation import Cancellation
from queryard.engine.staged.instance import open_instance
from queryard.engine.staged.node import StagedNode
from queryard.engine.staged.task import TaskOutcome, TaskSpec
from queryard.sql.planner.plan import StagedPlan

from .exchange import RayExchange

Tell = Callable[[int, TaskId, TaskOutcome], None]
"""Told what a launch has made, before its end is."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What the tasks of a query have in common: sent once to each node that runs some.

    `memory_bytes` is what the query may use at one node.
    """

    plan: StagedPlan
    memory_bytes: int
    bundles: int
    access: Access


class _Opened(NamedTuple):
    node: StagedNode
    to_close: ExitStack


class NodeTasks:
    """Runs the tasks that are sent here; a `TaskSet` of the node's local backend.

    The first task opens a DuckDB instance, with memory that the pool lends until the query ends.
    """

    def __init__(
        self,
        opening: Opening,
        reach: Reach,
        pool: InstancePool,
        temp: Path,
        exchange: RayExchange,
        tell: Tell,
    ) -> None:
        self._opening = opening
        self._reach = reach
        self._pool = pool
        self._temp = temp
        self._exchange = exchange
        self._tell = tell
        self._lock = threading.Lock()
        self._closed = False
        self._open: _Opened | None = None
        self._specs: dict[int, TaskSpec] = {}
        self._launches: dict[int, Cancellation] = {}

    @property
    def objects(self) -> int:
        """How many objects of the store it holds."""
        return self._exchange.objects

    def expect(self, launch: int, spec: Any) -> None:
        """A task is about to be launched."""
        with self._lock:
            self._specs[launch] = spec

    def lose(self, place: str) -> None:
        """Another node is gone, with the rows there."""
        self._exchange.lose(place)

    # --- for the local backend ----------------------------------------------------------------

    @contextmanager
    def reading(self, launch: int, riders: Sequence[tuple[Any, TaskId]]) -> Iterator[list[str]]:
        yield [""] * len(riders)

    def cost_s(self, task: TaskId) -> float:
        return 1.0

    def run(self, launch: int, task: TaskId, source: str = "") -> float:
        cancelled = self._cancellation(launch)
        try:
            spec = self._specs[launch].with_text(self._opening.plan)
            outcome = self._opened().node.run(spec, cancelled)
            self._tell(launch, task, outcome)
            return outcome.output_bytes
        except QueryardError as error:
            raise self._reach.told(error) from None
        finally:
            with self._lock:
                self._launches.pop(launch, None)
                self._specs.pop(launch, None)

    def _cancellation(self, launch: int) -> Cancellation:
        with self._lock:
            found = self._launches.setdefault(launch, Cancellation())
            is_closed = self._closed
        if is_closed:
            found.ask()
        return found

    def kill(self, launch: int) -> None:
        self._cancellation(launch).stop(QueryCancelled("killed"))

    def cancel(self, error: BaseException) -> None:
        with self._lock:
            self._closed = True
            opened = self._open
            launches = list(self._launches.values())
        for each in launches:
            each.ask()
        if opened is not None:
            opened.node.cancel()

    # --- its instance -------------------------------------------------------------------------

    def _opened(self) -> _Opened:
        with self._lock:
            if self._closed:
                raise QueryCancelled("cancelled")
            if self._open is None:
                with ExitStack() as opening:
                    memory_bytes = self._opening.memory_bytes
                    self._pool.lend(memory_bytes)
                    opening.callback(self._pool.take_back, memory_bytes)
                    # Half is for the rows that tasks fetch and sort.
                    half = memory_bytes // 2
                    seal = self._reach.seal()
                    instance = opening.enter_context(open_instance(half, self._temp, seal))
                    node = opening.enter_context(StagedNode(instance, self._exchange))
                    self._open = _Opened(node, opening.pop_all())
            return self._open

    def close(self) -> None:
        """Stop what runs, and free everything."""
        with self._lock:
            self._closed = True
            opened, self._open = self._open, None
        if opened is not None:
            opened.to_close.close()
        self._exchange.close()

"""Tasks of one staged query at one node."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from queryard.core.errors import QueryardError
from queryard.core.model import TaskId
from queryard.engine.access import Access, Reach
from queryard.engine.pool import InstancePool
from queryard.engine.staged.instance import open_instance
from queryard.engine.staged.launched import Launched
from queryard.engine.staged.node import StagedNode
from queryard.engine.staged.task import TaskOutcome, TaskSpec
from queryard.sql.planner.plan import StagedPlan

from .exchange import RayExchange

Tell = Callable[[int, TaskId, TaskOutcome], None]
"""Told what a launch has made, before its end is."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What the tasks of a query have in common: sent once to each node that runs some.

    `memory_bytes` is what the query may use at all nodes, which have `cluster_bytes` together.
    """

    plan: StagedPlan
    memory_bytes: int
    bundles: int
    access: Access
    cluster_bytes: float

    def part(self, node_bytes: float) -> Opening:
        """The same for one node with so much memory: with its part of what the query may use."""
        share = min(1.0, node_bytes / self.cluster_bytes) if self.cluster_bytes else 1.0
        memory_bytes = max(1, int(self.memory_bytes * share))
        return replace(self, memory_bytes=memory_bytes, cluster_bytes=node_bytes)


class NodeTasks:
    """Runs the tasks that are sent here; a `TaskSet` of the node's local backend."""

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
        self._temp = temp
        self._exchange = exchange
        self._tell = tell
        self._lock = threading.Lock()
        self._specs: dict[int, TaskSpec] = {}
        self._launched = Launched(pool, opening.memory_bytes, self._open_node)

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
        cancelled = self._launched.cancellation(launch)
        try:
            spec = self._specs[launch].with_text(self._opening.plan)
            outcome = self._launched.node().run(spec, cancelled)
            self._tell(launch, task, outcome)
            return outcome.output_bytes
        except QueryardError as error:
            raise self._reach.told(error) from None
        finally:
            self._launched.over(launch)
            with self._lock:
                self._specs.pop(launch, None)

    def kill(self, launch: int) -> None:
        self._launched.kill(launch)

    def cancel(self, error: BaseException) -> None:
        self._launched.cancel()

    # --- its instance -------------------------------------------------------------------------

    def _open_node(self, opening: ExitStack, half: int) -> StagedNode:
        instance = opening.enter_context(open_instance(half, self._temp, self._reach.seal()))
        return opening.enter_context(StagedNode(instance, self._exchange))

    def close(self) -> None:
        """Stop what runs, and free everything."""
        self._launched.close()
        self._exchange.close()

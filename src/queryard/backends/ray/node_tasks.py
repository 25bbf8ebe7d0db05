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
from queryard.engine.instances.pool import InstancePool
from queryard.engine.sealing.access import Access, Reach
from queryard.engine.staged.exchange import Piece, PieceLost, Superseded
from queryard.engine.staged.instance import open_instance
from queryard.engine.staged.launched import Launched
from queryard.engine.staged.node import StagedNode
from queryard.engine.staged.task import TaskOutcome, TaskSpec
from queryard.sql.planner.plan import StagedPlan

from .exchange import NodeExchange, as_stream
from .messages import DRIVER, Wanted

# Answers up to this size travel with the event of their task.
TOLD_BYTES = 32 << 10

Tell = Callable[[int, TaskId, TaskOutcome], None]
"""Told what a launch has made, before its end is."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What the tasks of a query have in common: sent once to each node that runs some.

    `memory_bytes` is what the query may use at all nodes, which have `cluster_bytes` together: half
    for statements, half for the rows that tasks have made.
    """

    plan: StagedPlan
    memory_bytes: int
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
        exchange: NodeExchange,
        tell: Tell,
    ) -> None:
        self._opening = opening
        self._reach = reach
        self._temp = temp
        self._exchange = exchange
        self._tell = tell
        self._last_kind = "reduce" if opening.plan.jobs[-1].partitions else "map"
        self._lock = threading.Lock()
        self._specs: dict[int, TaskSpec] = {}
        self._launched = Launched(pool, opening.memory_bytes, self._open_node)

    @property
    def objects(self) -> int:
        """How many outputs of tasks, and objects of the store, it holds."""
        return self._exchange.objects

    def expect(self, launch: int, spec: Any) -> None:
        """A task is about to be launched."""
        with self._lock:
            self._specs[launch] = spec

    def ask_ahead(self, pieces: Sequence[Piece]) -> None:
        """A task will run here that reads these."""
        self._exchange.ask_ahead(pieces)

    def lose(self, place: str) -> None:
        """A place is gone: what was asked for there will not come."""
        self._exchange.lose(place)

    def rows(self, wanted: tuple[Wanted, ...]) -> Any:
        """What another place asks for."""
        return self._exchange.rows(wanted)

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
            self._tell(launch, task, replace(outcome, pieces=self._as_told(task, outcome)))
            return outcome.output_bytes
        except PieceLost:
            raise  # for the driver, which needs what it carries
        except QueryardError as error:
            raise self._reach.told(error) from None
        finally:
            self._launched.over(launch)
            with self._lock:
                self._specs.pop(launch, None)

    def _as_told(self, task: TaskId, outcome: TaskOutcome) -> tuple[Piece, ...]:
        """Where the rows lie; a short answer travels with the event that it is there."""
        is_answer = task.job == self._opening.plan.jobs[-1].name and task.kind == self._last_kind
        if not is_answer or outcome.output_bytes > TOLD_BYTES or len(outcome.pieces) > 1:
            return self._exchange.told(outcome.pieces, outcome.attempt)
        (piece,) = self._exchange.told(outcome.pieces, outcome.attempt)
        try:
            rows = as_stream(self._exchange.fetch([piece]))
        except PieceLost:
            raise Superseded(f"a later attempt of {piece.key} has taken its place") from None
        # The driver has them: they are not lost with this node.
        return (piece._replace(holder=DRIVER, ref=rows.to_pybytes()),)

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

"""A node whose tasks take a given time and do nothing: what is left is the cost of scheduling."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from queryard.backends.ray.exchange import NodeExchange, as_stream
from queryard.backends.ray.messages import NodeSetting
from queryard.backends.ray.node_tasks import NodeTasks, Opening, Tell
from queryard.backends.ray.workplace import DuckWorkplace
from queryard.core.model import TaskId
from queryard.engine.instances.pool import InstancePool
from queryard.engine.sealing.access import Reach
from queryard.engine.staged.exchange import Piece
from queryard.engine.staged.task import TaskOutcome

TASK_S = "QUERYARD_BENCH_TASK_S"
"""The variable that says how long tasks take; nodes have it from the environment."""


class SleepingTasks(NodeTasks):
    """Tasks that wait; each has made one row, of one column."""

    def __init__(self, opening: Opening, *rest: Any) -> None:
        super().__init__(opening, *rest)
        self._task_s = float(os.environ[TASK_S])
        self._row = as_stream(pa.table({"n": [1]})).to_pybytes()

    def run(self, launch: int, task: TaskId, source: str = "") -> float:
        time.sleep(self._task_s)
        spec = self._specs.pop(launch)
        piece = Piece(spec.output.key, None, self._exchange.place, 1, 8, self._row)
        outcome = TaskOutcome(spec.attempt, (piece,), 1, 8.0, self._task_s, 0.0, 0.0)
        self._tell(launch, task, outcome)
        return 8.0


class SleepingWorkplace(DuckWorkplace):
    """A node at which tasks wait."""

    def __init__(self, setting: NodeSetting) -> None:
        super().__init__(setting)
        self._name = setting.name

    def open_tasks(self, query: str, opening: Opening, tell: Tell) -> NodeTasks:
        exchange = NodeExchange(self.peers, self._name, query, 0.0)
        reach: Reach = self.engine.reach(opening.access)
        pool: InstancePool = self._native.pool
        return SleepingTasks(opening, reach, pool, Path(), exchange, tell)

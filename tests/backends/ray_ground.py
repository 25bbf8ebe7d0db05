"""A Ray cluster as a ground of the conformance suite."""

from __future__ import annotations

import queue
from pathlib import Path
from typing import Any

from waiting import wait_until

from queryard.backends.protocol import Leased, Spread
from queryard.backends.ray.backend import RayBackend
from queryard.backends.ray.cluster import Cluster
from queryard.backends.ray.members import MemberSetting
from queryard.core.events import NodeJoined
from queryard.results.streams import ResultStream

from .grounds import RealGround
from .ray_held import HeldPlaced, HeldWorkplace, let_end
from .stubborn import AsGiven


class SharedRay:
    """One backend for many tests: its processes take seconds to start."""

    def __init__(self, cluster: Cluster, nodes: int) -> None:
        """Returns when so many nodes have joined."""
        self.events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.backend = RayBackend(
            cluster, MemberSetting(), AsGiven(), None, lambda given: given, HeldWorkplace
        )
        self.backend.start(lambda event: self.events.put(event))
        self.known: set[str] = set()
        wait_until(lambda: len(self.backend.nodes) >= nodes)

    def fresh(self) -> queue.SimpleQueue[Any]:
        """Nothing of earlier tests is left."""
        for query in self.known:
            self.backend.stop(query, RuntimeError("the test is over"))
        wait_until(lambda: not any(self.busy()))
        for query in self.known:
            self.backend.forget(query)
        self.known.clear()
        self.events = queue.SimpleQueue()
        for node in self.backend.nodes:
            self.events.put(NodeJoined(0.0, node))
        return self.events

    def busy(self) -> list[int]:
        """Slots that are granted, or hold a task."""
        backend = self.backend
        held = [run.held for run in backend._runs]
        return [*held, len(backend._launches._running)]


class RayGround(RealGround):
    """Nodes of a cluster, and queries that do nothing there."""

    spans = False
    shares = False
    quiet_s = 0.3

    def __init__(self, shared: SharedRay, folder: Path) -> None:
        super().__init__(shared.fresh())
        self._shared = shared
        self._folder = folder
        self.backend = shared.backend
        self.nodes = tuple(node.id for node in self.backend.nodes)

    def leased(self, query: str, run: str = "") -> None:
        self._shared.known.add(query)
        statement = None if run else (str(self._folder), query)
        self.backend.add(query, Leased(run or query, 4, ResultStream(), statement))

    def staged(self, query: str) -> None:
        self._shared.known.add(query)
        self.backend.add(query, Spread(HeldPlaced(self._folder)))

    def finish(self, run: str, error: BaseException | None = None) -> None:
        let_end(self._folder, run, error)

    def finish_task(self, number: int, query: str, error: BaseException | None = None) -> None:
        let_end(self._folder, str(number), error)

    def close(self) -> bool:
        self._shared.fresh()
        return True

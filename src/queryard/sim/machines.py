"""The nodes of a simulated cluster: they join, fail, come back, are asked for and given back."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

from queryard.core import commands as do
from queryard.core.events import Event, NodeJoined, NodeLost
from queryard.core.model import Node
from queryard.core.nodes import NodeState
from queryard.core.state import State

from .conditions import Conditions
from .ordering import CLUSTER, Post


class Machines:
    """`post` puts what will happen into the driver's queue."""

    def __init__(self, state: State, conditions: Conditions, post: Post, seed: int) -> None:
        self._state = state
        self._conditions = conditions
        self._post = post
        self._draw = random.Random(f"{seed}:nodes")
        self._booting: set[str] = set()
        # For how long nodes were there that are no more.
        self._stays_s: list[float] = []
        self._names = 0

    def add(self, nodes: Iterable[Node], time_s: float) -> None:
        """Nodes will join; where nodes fail, it is drawn when."""
        for node in nodes:
            self._post(time_s, CLUSTER, NodeJoined(time_s, node))
            if self._conditions.node_mtbf_s:
                fails_s = time_s + self._draw.expovariate(1.0 / self._conditions.node_mtbf_s)
                self._post(fails_s, CLUSTER, NodeLost(fails_s, node.id))

    def join(self, event: NodeJoined, events: list[Event]) -> None:
        if event.node.id not in self._state.nodes:
            self._booting.discard(event.node.id)
            events.append(event)

    def lose(self, now: float, node: NodeState) -> None:
        """A node is gone; unless it was given back, it will be repaired."""
        self._stays_s.append(now - node.since_s)
        if not node.leaving:
            # A moment later at the least: it cannot be back before it is gone.
            back_s = now + max(self._conditions.node_repair_s, 1e-6)
            self._booting.add(node.id)
            self.add([node.spec], back_s)

    def scale(self, command: do.Scale) -> None:
        """More nodes like the first one, so that there are as many as asked for."""
        state = self._state
        template = next(iter(state.nodes.values()), None)
        if template is None:
            return
        missing = command.nodes - len(state.nodes) - len(self._booting)
        for _ in range(missing):
            self._names += 1
            spec = template.spec
            node = replace(spec, id=f"{spec.id.split('+')[0]}+{self._names}")
            self._booting.add(node.id)
            self.add([node], state.now + self._conditions.node_boot_s)

    def release(self, command: do.Release) -> None:
        now = self._state.now
        self._post(now, CLUSTER, NodeLost(now, command.node))

    def stays_s(self, until_s: float) -> tuple[float, ...]:
        """For how long each node was there, up to a time."""
        there = (until_s - node.since_s for node in self._state.nodes.values())
        return (*self._stays_s, *there)

"""Bringing the cluster to the size that provisioning asks for, without losing work.

A smaller cluster is reached by draining: the least busy nodes take no new work, and each is
released when nothing runs there and no reduce needs an output that lives there. Divisible jobs that
have started on a host of which all nodes drain cannot move: they go on there to their end, and the
last nodes are released after it. The cluster is never made so small that the memory of an active
query could not be reserved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from .changes import cluster
from .commands import Command, Release, Scale
from .model import UNBOUNDED
from .nodes import NodeState
from .parts import Provisioning
from .state import State


class Sizing:
    """Remembers what was asked for, so that it is said once."""

    def __init__(self, state: State, provisioning: Provisioning) -> None:
        self.provisioning = provisioning
        self._state = state
        # What provisioning asked for last, and what came of it.
        self._asked: int | None = None
        self._wanted: int | None = None
        self._seen = 0
        self._released: set[str] = set()

    def take_over(self, before: Sizing) -> None:
        """Go on where another policy was, if it sized by the same rule; else begin anew."""
        state = self._state
        if type(self.provisioning) is not type(before.provisioning):
            if leaving := [node.id for node in state.draining if node.leaving]:
                # Nodes that it meant to give up serve again.
                cluster.drain(state, leaving, False)
            return
        self.provisioning.take_over(before.provisioning, state)
        self._asked, self._wanted = before._asked, before._wanted
        self._seen, self._released = before._seen, before._released

    def decide(self) -> Iterator[Command]:
        """Commands that change the number of nodes."""
        state = self._state
        wanted = self.provisioning.nodes(state)
        if wanted is None:
            wanted = self._asked
        self._asked = wanted
        if wanted is not None and state.memory_bytes < UNBOUNDED:
            wanted = max(wanted, self._least())
        if wanted is not None and (wanted, len(state.nodes)) != (self._wanted, self._seen):
            # Said again when nodes came or went otherwise.
            if wanted != self._wanted or len(state.nodes) < min(wanted, self._seen):
                yield Scale(wanted)
            self._wanted, self._seen = wanted, len(state.nodes)
            self._drain_down_to(wanted)
        self._released.intersection_update(state.nodes)
        for node in state.nodes.values():
            idle = node.leaving and node.free == node.spec.slots
            if idle and node.id not in self._released and not self._needed(node):
                self._released.add(node.id)
                yield Release(node.id)

    def _least(self) -> int:
        """So many nodes that the memory of every query could be reserved, if like those here."""
        demand = max((q.memory_bytes for q in self._state.queries.values()), default=0.0)
        memory = min((n.spec.memory_bytes for n in self._state.nodes.values()), default=0.0)
        return math.ceil(demand / memory) if memory > 0 else 0

    def _drain_down_to(self, wanted: int) -> None:
        """The least busy nodes are drained; they serve again when more are wanted."""
        state = self._state
        bound = self._hosts_in_use()
        nodes = sorted(
            state.nodes.values(), key=lambda n: (n.host in bound, n.spec.slots - n.free, n.id)
        )
        surplus = max(0, len(nodes) - max(1, wanted))
        cluster.drain(state, [node.id for node in nodes[surplus:] if node.leaving], False)
        cluster.drain(state, [node.id for node in nodes[:surplus] if not node.leaving], True)

    def _hosts_in_use(self) -> set[str]:
        """The hosts on which divisible jobs have started, where these cannot move."""
        return {job.host for job in self._state.jobs.values()} if self._state.apart else set()

    def _needed(self, node: NodeState) -> bool:
        """Whether outputs of maps live there, or a divisible job that cannot move."""
        if node.serves_bound and node.host in self._hosts_in_use():
            return True
        return any(
            job.map is not None and node.id in job.map.outputs
            for job in self._state.jobs.values()
            if not job.done
        )

    def fork(self, state: State) -> Sizing:
        copy = Sizing(state, self.provisioning.fork())
        copy._asked = self._asked
        copy._wanted = self._wanted
        copy._seen = self._seen
        copy._released = self._released.copy()
        return copy

"""Placement that prefers the node, then the rack, of a split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from queryard.core.entities import JobState
from queryard.core.nodes import NodeState
from queryard.core.parts import Placement
from queryard.core.state import State

from .local import find_local, nearest


class RackFirst(Placement):
    """Run a task that is local to the node, else one local to its rack, else the next one.

    Hadoop's three levels, without waiting for a better one. Nodes without a rack are far from each
    other: then this is `local`. O(1) where a task is local to the node, else O(nodes of the rack).

    A split on n1, of the rack r1, is read by n2, of r1, before a split of r2 is. Divisible work
    starts where most of its splits are: on a node with a free slot, else in a rack with one.
    """

    name = "rack"
    citation = "Hadoop's node, rack and off-switch"

    def __init__(self) -> None:
        # Rack -> its nodes, as of so many changes of the cluster; replaced as a whole.
        self._racks: dict[str, tuple[str, ...]] = {}
        self._resizes = -1

    def pick(self, job: JobState, node: NodeState, state: State) -> int | None:
        assert job.map is not None
        if job.spec.scans:
            index = find_local(job, node.id, state)
            if index is None and node.spec.rack:
                index = self._find_near(job, node, state)
            if index is not None:
                return job.map.take_at(index)
        return job.map.take()

    def _find_near(self, job: JobState, node: NodeState, state: State) -> int | None:
        """A pending task of which the split is in the rack of the node."""
        if state.resizes != self._resizes:
            self._resizes = state.resizes
            racks: dict[str, list[str]] = {}
            for other in state.nodes.values():
                racks.setdefault(other.spec.rack, []).append(other.id)
            self._racks = {rack: tuple(nodes) for rack, nodes in racks.items()}
        found = (find_local(job, other, state) for other in self._racks[node.spec.rack])
        return next((index for index in found if index is not None), None)

    def home(self, job: JobState, nodes: Sequence[NodeState], state: State) -> NodeState | None:
        found = nearest(job, nodes)
        if found is not None:
            return found
        racks: Counter[str] = Counter()
        for _, local in job.scanned:
            for name, splits in local.items():
                if name in state.nodes and (rack := state.nodes[name].spec.rack):
                    racks[rack] += len(splits)
        near = [node for node in nodes if racks[node.spec.rack]]
        return max(near, key=lambda node: (racks[node.spec.rack], node.free), default=None)

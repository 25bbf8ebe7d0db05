"""Placement that prefers tasks of which the split is on the node."""

from __future__ import annotations

from collections.abc import Sequence

from queryard.core.entities import JobState
from queryard.core.nodes import NodeState
from queryard.core.parts import Placement
from queryard.core.state import State


def find_local(job: JobState, node: str, state: State) -> int | None:
    """A pending map task of which the split prefers this node, if any. O(1) amortised."""
    maps = job.map
    if maps is None:
        return None
    offset = 0
    for table, local in job.scanned:
        splits = local.get(node, ())
        if splits:
            taken = maps.open_taken()
            if maps.local_cursors is None:
                maps.local_cursors = {}
            at = maps.local_cursors.get((node, offset), 0)
            while at < len(splits) and taken[offset + splits[at]]:
                at += 1
            maps.local_cursors[node, offset] = at
            if at < len(splits):
                return offset + splits[at]
        offset += len(table.splits)
    return None


def nearest(job: JobState, nodes: Sequence[NodeState]) -> NodeState | None:
    """The node with the most splits of what a divisible job reads; None if none has any.

    Of several, the one with the most free slots, then the fastest.
    """
    found, most = None, (0, 0, 0.0)
    for node in nodes:
        splits = sum(len(local.get(node.id, ())) for _, local in job.scanned)
        key = splits, node.free, node.spec.map_speed
        if splits and key > most:
            found, most = node, key
    return found


class LocalFirst(Placement):
    """Run a task that is local to the node if the job has one, else the next one.

    Divisible work starts on the node with the most splits of what it reads, of those with a free
    slot.
    """

    name = "local"
    citation = "Hadoop's default"

    def pick(self, job: JobState, node: NodeState, state: State) -> int | None:
        assert job.map is not None
        if job.spec.scans:
            index = find_local(job, node.id, state)
            if index is not None:
                return job.map.take_at(index)
        return job.map.take()

    def home(self, job: JobState, nodes: Sequence[NodeState], state: State) -> NodeState | None:
        return nearest(job, nodes)

"""What a session's nodes are doing now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from queryard.backends.protocol import NodeNote
from queryard.core.model import JobId
from queryard.core.scheduler import Scheduler

NOTHING = NodeNote()


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node: its slots, and what they do.

    `silent_s` is for how long a node of a cluster has not answered, and `objects` how many outputs
    of tasks it holds.
    """

    name: str
    slots: int
    busy: int
    memory_bytes: float
    draining: bool
    queries: tuple[str, ...]
    where: str = ""
    silent_s: float = 0.0
    objects: int = 0


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The nodes that take part, and why others do not."""

    nodes: tuple[NodeView, ...]
    refused: tuple[str, ...] = ()


def node_views(kernel: Scheduler) -> tuple[NodeView, ...]:
    """The nodes as the kernel knows them."""
    state = kernel.state
    queries: dict[str, dict[str, None]] = {name: {} for name in state.nodes}
    for run in state.running.values():
        for task in run.tasks:
            queries[run.node][JobId.of(task.job).query] = None
    for job in state.leaseholders.values():
        for node in job.leases:
            queries[node][job.query.id] = None
    return tuple(
        NodeView(
            node.id,
            node.spec.slots,
            node.spec.slots - node.free,
            node.spec.memory_bytes,
            node.draining,
            tuple(queries[node.id]),
        )
        for node in state.nodes.values()
    )


def with_notes(nodes: tuple[NodeView, ...], notes: Mapping[str, NodeNote]) -> tuple[NodeView, ...]:
    """The nodes, with what the backend knows of them."""
    found = []
    for node in nodes:
        where, silent_s, objects = notes.get(node.name, NOTHING)
        found.append(
            NodeView(
                node.name,
                node.slots,
                node.busy,
                node.memory_bytes,
                node.draining,
                node.queries,
                where,
                silent_s,
                objects,
            )
        )
    return tuple(found)

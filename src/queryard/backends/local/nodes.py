"""The slots of this machine as nodes of the kernel, of which some may be out of use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from queryard.core.events import NodeJoined, NodeLost
from queryard.core.model import Node

NODE = "local"


def nodes_of(
    slots: tuple[int, int], memory_bytes: int, kept_bytes: float = 0.0
) -> tuple[Node, ...]:
    """One node with all slots; one node per slot where their number may change.

    >>> [node.id for node in nodes_of((1, 3), 900)]
    ['local-1', 'local-2', 'local-3']
    """
    least, most = slots
    if least == most:
        return (Node(NODE, most, float(memory_bytes), kept_bytes=kept_bytes),)
    share, kept = float(memory_bytes // most), kept_bytes / most
    return tuple(
        Node(f"{NODE}-{number}", 1, share, kept_bytes=kept) for number in range(1, most + 1)
    )


class LocalNodes:
    """Which nodes are in use; all at first, so that the kernel knows how much memory there is."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        # All nodes are this process: a query that started on one can continue on the others.
        self._nodes = {node.id: replace(node, host=NODE) for node in nodes}
        self._joined: set[str] = set()

    @property
    def slots(self) -> int:
        """How many there are at most."""
        return sum(node.slots for node in self._nodes.values())

    def speed(self, node: str) -> float:
        return self._nodes[node].map_speed

    def join_all(self, post: Callable[[NodeJoined | NodeLost], None]) -> None:
        self.scale(len(self._nodes), post)

    def scale(self, wanted: int, post: Callable[[NodeJoined | NodeLost], None]) -> None:
        """Bring more nodes into use."""
        missing = [node for name, node in self._nodes.items() if name not in self._joined]
        for node in missing[: max(0, wanted - len(self._joined))]:
            self._joined.add(node.id)
            post(NodeJoined(0.0, node))

    def release(self, node: str, post: Callable[[NodeJoined | NodeLost], None]) -> None:
        """A node is idle and not wanted any more."""
        self._joined.discard(node)
        post(NodeLost(0.0, node))

"""The slots of this machine as nodes of the kernel, of which some may be out of use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from queryard.backends.local import NODE
from queryard.core.events import NodeJoined, NodeLost
from queryard.core.model import Node


def nodes_of(
    slots: tuple[int, int], memory_bytes: int, kept_bytes: float = 0.0
) -> tuple[Node, ...]:
    """One node with all slots; a node a slot where their number may change.

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
    """Which of them are in use; all at first, so that the kernel knows how much memory there is."""

    def __init__(self, nodes: Sequence[Node], post: Callable[..., None]) -> None:
        # Whatever machines they stand for, all instances of DuckDB are in this process.
        self._nodes = {node.id: replace(node, host=NODE) for node in nodes}
        self._joined = set(self._nodes)
        self._post = post
        post(*(NodeJoined(0.0, node) for node in self._nodes.values()))

    @property
    def slots(self) -> int:
        """How many there are at most."""
        return sum(node.slots for node in self._nodes.values())

    @property
    def speeds(self) -> dict[str, float]:
        return {node.id: node.map_speed for node in self._nodes.values()}

    def scale(self, wanted: int) -> None:
        """Bring more into use."""
        missing = [node for name, node in self._nodes.items() if name not in self._joined]
        for node in missing[: max(0, wanted - len(self._joined))]:
            self._joined.add(node.id)
            self._post(NodeJoined(0.0, node))

    def let_go(self, node: str) -> None:
        """One is idle and not wanted any more."""
        self._joined.discard(node)
        self._post(NodeLost(0.0, node))

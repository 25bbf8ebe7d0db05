"""Slots with a fixed kind: so many for maps, so many for reduces, on every node."""

from __future__ import annotations

from queryard.core.nodes import NodeState
from queryard.core.state import State

from ..checks import whole
from .lanes import BOTH_MAPS_FIRST, BOTH_REDUCES_FIRST, ONLY_MAPS, ONLY_REDUCES, SplitByKind


def divide(slots: int, maps: float, reduces: float) -> tuple[int, int]:
    """A node's slots in the ratio maps : reduces, at least one of each if there are two.

    >>> divide(4, 1, 3), divide(8, 1, 3), divide(4, 99, 1), divide(3, 1, 1)
    ((1, 3), (2, 6), (3, 1), (2, 1))
    >>> divide(1, 1, 1)  # a single slot serves both
    (1, 1)
    """
    if slots == 1:
        return 1, 1
    share = min(max(int(slots * maps / (maps + reduces) + 0.5), 1), slots - 1)
    return share, slots - share


class Static(SplitByKind):
    """Run at most so many maps and so many reduces at once on a node, in a fixed ratio. O(1).

    TuMM §2: Hadoop's configuration, 2:2 on nodes of four slots. The ratio `maps : reduces` is
    scaled to the slots of each node. Leases have no kind: they may take any free slot, as
    divisible work stands in both lanes. A node of one slot serves maps first.

    With 1:3 on one node of four slots, eight maps of 1 s take 8 s, three slots staying idle.
    """

    name = "static"
    citation = "TuMM §2"
    work_conserving = False

    def __init__(self, maps: int = 2, reduces: int = 2) -> None:
        self._set_ratio(whole("maps", maps, 1), whole("reduces", reduces, 1))

    def _set_ratio(self, maps: float, reduces: float) -> None:
        self._ratio = (maps, reduces)
        # By slots of a node. A fork may share it, as another ratio brings another dictionary.
        self._divided: dict[int, tuple[int, int]] = {}

    def _divide(self, slots: int) -> tuple[int, int]:
        divided = self._divided.get(slots)
        if divided is None:
            divided = self._divided[slots] = divide(slots, *self._ratio)
        return divided

    def _slots_of(self, node: NodeState) -> tuple[int, int]:
        """How many maps and how many reduces may run on the node."""
        return self._divide(node.spec.slots)

    def serve(self, node: NodeState, state: State) -> tuple[int, ...]:
        maps, reduces = self._slots_of(node)
        free_maps = maps - node.maps
        free_reduces = reduces - node.reduces
        if free_maps <= 0:
            return ONLY_REDUCES
        if free_reduces <= 0:
            return ONLY_MAPS
        return BOTH_MAPS_FIRST if free_maps >= free_reduces else BOTH_REDUCES_FIRST

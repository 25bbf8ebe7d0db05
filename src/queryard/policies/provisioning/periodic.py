"""What all rules that resize the cluster share: a period, and bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Self

from queryard.core.parts import Provisioning
from queryard.core.state import State

from ..checks import above_zero, whole


class Periodic(Provisioning):
    """Asks `wanted` once per period, and keeps its answer between the bounds.

    It wakes the scheduler while queries are active, and after the last one until the cluster
    has the size it wants to be idle with.
    """

    def __init__(self, period_s: float = 30.0, minimum: int = 1, maximum: int = 64) -> None:
        self.period_s = above_zero("period_s", period_s)
        self.minimum = whole("minimum", minimum, 1)
        self.maximum = whole("maximum", maximum, self.minimum)
        self._next_s = -math.inf
        self._size: int | None = None

    def take_over(self, before: Self, state: State) -> None:
        self._next_s, self._size = before._next_s, before._size

    def wanted(self, state: State) -> int:
        """How many nodes there should be until the next tick."""
        raise NotImplementedError

    def size(self, state: State) -> int:
        """The size last asked for, which the cluster may not have reached yet."""
        return len(state.nodes) if self._size is None else self._size

    def nodes(self, state: State) -> int | None:
        if state.now < self._next_s or not state.nodes:
            return None
        if not state.queries and self._size is None:
            return None
        self._next_s = state.now + self.period_s
        self._size = self._bounded(self.wanted(state))
        return self._size

    def wake_s(self, state: State) -> float | None:
        idle = not state.queries
        if idle and (self._size is None or self._bounded(self.wanted(state)) == self._size):
            return None
        # The scheduler asks for this before it asks for `nodes`: a tick due now is yet to come.
        return self._next_s if self._next_s > state.now else state.now + self.period_s

    def _bounded(self, nodes: int) -> int:
        return min(max(nodes, self.minimum), self.maximum)


def nodes_to_finish(due: Iterable[tuple[float, float]], state: State, soonest_s: float) -> int:
    """How many nodes do all (due time, core-seconds), served in the order they are due.

    By each due time all work due until then must be done: slots = Σ work / time left, and the
    largest such number counts. Nothing is due sooner than in `soonest_s`: a new size cannot
    help earlier, and what is late already must still be done.
    """
    work_s, slots = 0.0, 0.0
    for due_s, left_s in sorted(due):
        work_s += left_s
        slots = max(slots, work_s / max(due_s - state.now, soonest_s))
    per_node = sum(node.spec.slots for node in state.nodes.values()) / max(1, len(state.nodes))
    return math.ceil(slots / max(1.0, per_node) - 1e-9)

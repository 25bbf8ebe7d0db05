"""Which leaves pay for a launch with their slots; several, if their queries ride together."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .entities import JobState
from .policy import Policy
from .ranks import PoolTree

# The leaves that pay for a launch, and how much of a slot.
Parts = tuple[tuple[int, float], ...]
PARTS_PER_SLOT = 1024


class Charges:
    """What each launch costs the pools while it runs; nothing is noted for a lone pool."""

    def __init__(self, policy: Policy, tree: PoolTree) -> None:
        self._tree = tree
        # A lone pool without a cap needs no meter.
        self.meters = policy.pools.order is None or policy.pools.cap < 1
        self._drifts = tree.root.drifts
        # Whether launches are to be told.
        self.counts = self.meters or self._drifts
        # By launch, where pools are metered: the leaf that pays for it; for one on which queries
        # of several leaves ride, the part of each.
        self._charged: dict[int, int | Parts] = {}

    def take_over(self, before: Charges) -> None:
        """Go on with the launches that were charged before."""
        self._charged = before._charged.copy()

    def launched(self, number: int, leaf: int) -> None:
        """A leaf pays for a launch."""
        if self.meters:
            self._charged[number] = leaf
            self._tree.charge(leaf, 1)
            self._tree.pools[leaf].served += 1
        elif self._drifts:
            self._tree.root.served += 1

    def rode(self, number: int, leader: JobState, riders: Sequence[JobState]) -> None:
        """The leaves of the riders of a launch pay for it, in proportion to what is expected of
        their maps; the leader's leaf pays what would bring another above its cap.
        """
        leaf = leader.query.pool
        if not self.meters or all(rider.query.pool == leaf for rider in riders):
            self.launched(number, leaf)
            return
        parts: dict[int, float] = {}
        total_s = sum(rider.map_s for rider in riders) or 1.0
        for rider in riders:
            pool = rider.query.pool
            parts[pool] = parts.get(pool, 0.0) + rider.map_s / total_s
        paid: list[tuple[int, float]] = []
        left = 1.0
        for pool, part in parts.items():
            if pool != leaf:
                # Sums of such parts are exact, so that nothing is left when all are given back.
                part = math.floor(min(part, self._tree.room(pool)) * PARTS_PER_SLOT)
                part /= PARTS_PER_SLOT
                left -= part
                paid.append((pool, part))
                self._tree.charge(pool, part)
        self._tree.charge(leaf, left)
        self._charged[number] = (*paid, (leaf, left))
        self._tree.pools[leaf].served += 1

    def ended(self, number: int) -> None:
        """A launch has ended: what was paid for it is given back."""
        for leaf, part in _paid(self._charged.pop(number)):
            self._tree.charge(leaf, -part)

    def payers(self, number: int) -> Parts:
        """The leaves that pay for a launch, and how much of a slot."""
        return _paid(self._charged[number]) if self.meters else ((0, 1),)


def _paid(charged: int | Parts) -> Parts:
    return ((charged, 1),) if isinstance(charged, int) else charged

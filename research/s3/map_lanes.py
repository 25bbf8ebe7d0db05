"""S³ on a cluster with slots for maps apart from slots for reduces.

A segment of S³ has as many blocks as there are concurrent *map* slots. The part `circular` counts
all free slots, which is the same where slots have no kind. Here they have one, so that the ring
is told what it may count.
"""

from __future__ import annotations

from dataclasses import replace

from queryard.core.entities import JobState
from queryard.core.policy import Policy
from queryard.core.state import State
from queryard.policies.sharing.circular import Circular
from queryard.policies.sharing.merged import MergedScan
from research.trials import kernel_with

# On every node.
MAP_SLOTS = 1


class MapLaneRing(Circular):
    """The circular scan, with segments cut by free map slots."""

    def _scan_for(self, job: JobState, state: State) -> MergedScan | None:
        ring = self._ring_of(job)
        if ring is not None and ring.scan is None:
            free = sum(
                max(0, MAP_SLOTS - node.maps) for node in state.nodes.values() if not node.draining
            )
            most = self.waves * max(1, free)
            first, stop, riders = ring.next_segment(job, most, self._again, state)
            ring.scan = MergedScan(job, self._new_round(job.spec.scans[0]), riders, first, stop)
            ring.position = stop % ring.blocks
        return super()._scan_for(job, state)


def _with_lanes(policy: Policy) -> Policy:
    sharing = policy.sharing
    if isinstance(sharing, Circular):
        ring = MapLaneRing(sharing.waves, sharing.check_s, sharing.when, sharing.reduces)
        return replace(policy, sharing=ring)
    return policy


# The kernel with circular scans that count map slots.
LaneKernel = kernel_with(_with_lanes)

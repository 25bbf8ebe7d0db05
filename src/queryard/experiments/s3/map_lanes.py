"""S³ on a cluster whose nodes keep slots for maps apart from those for reduces.

A segment of S³ has as many blocks as there are concurrent *map* slots. The part `circular` counts
all free slots, which is the same where slots have no kind. Here they have one, so that the ring
is told what it may count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from queryard.core.entities import JobState
from queryard.core.journal import Journal
from queryard.core.parts import Policy
from queryard.core.scheduler import Compose, Scheduler
from queryard.core.state import Settings, State
from queryard.policies.sharing.circular import Circular
from queryard.policies.sharing.merged import MergedScan

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


class LaneKernel(Scheduler):
    """The kernel, whose circular scans count map slots."""

    def __init__(
        self,
        compose: Compose,
        profile: Mapping[str, Any],
        settings: Settings | None = None,
        journal: Journal | None = None,
    ) -> None:
        def with_lanes(data: Mapping[str, Any]) -> Policy:
            policy = compose(data)
            sharing = policy.sharing
            if isinstance(sharing, Circular):
                policy = replace(policy, sharing=MapLaneRing(sharing.waves, sharing.check_s))
            return policy

        super().__init__(with_lanes, profile, settings, journal)

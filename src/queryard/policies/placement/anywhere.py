"""Placement without regard to where the data is."""

from __future__ import annotations

from queryard.core.entities import JobState
from queryard.core.nodes import NodeState
from queryard.core.parts import Placement
from queryard.core.state import State


class Anywhere(Placement):
    """Run the job's next task on whichever node offers a slot. O(1)."""

    name = "any"

    def pick(self, job: JobState, node: NodeState, state: State) -> int | None:
        assert job.map is not None
        return job.map.take()

"""Highest level first."""

from __future__ import annotations

from collections.abc import Sequence

from queryard.core.entities import JobState
from queryard.core.parts import JobOrder
from queryard.core.state import State


class HighestLevel(JobOrder):
    """Serve the job of the highest level: the time along its longest path to the exit. O(jobs).

    HLFET, the baseline of TLS §4.2. With A (1 s) → F (1 s) and E (6 s) → F, E of level 7 goes
    before A of level 2. A job's time is what it takes with all slots, the whole job counted.
    """

    name = "hlfet"
    citation = "TLS §4.2 (baseline)"

    def pick(self, jobs: Sequence[JobState], state: State) -> JobState:
        return min(jobs, key=lambda job: (-job.level_s, job.uid))

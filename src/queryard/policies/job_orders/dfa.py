"""Depth first."""

from __future__ import annotations

from collections.abc import Sequence

from queryard.core.entities import JobState
from queryard.core.parts import JobOrder
from queryard.core.state import State


def deepest(jobs: Sequence[JobState]) -> JobState:
    """The job farthest from the root; ties by the larger WRD from it down to the root."""
    return min(jobs, key=lambda job: (-job.depth, -(job.left_s + job.tail_work_s), job.uid))


class DepthFirst(JobOrder):
    """Serve the deepest runnable job; ties by the larger WRD along its path to the root. O(jobs).

    Depth counts the jobs on the longest way to the root. In A → B → D → F, C → D, E → F it is
    A first, although E may take far longer: finishing A lets B run beside C and E, so more
    jobs are runnable at once. TLS §4.2.
    """

    name = "dfa"
    citation = "TLS §4.2"

    def pick(self, jobs: Sequence[JobState], state: State) -> JobState:
        return deepest(jobs)

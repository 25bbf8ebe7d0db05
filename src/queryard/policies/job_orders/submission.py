"""Jobs in the order in which they were submitted."""

from __future__ import annotations

from collections.abc import Sequence

from queryard.core.entities import JobState
from queryard.core.parts import JobOrder
from queryard.core.state import State


class Submission(JobOrder):
    """Serve the runnable job that became ready first; ties by its place in the query."""

    name = "submission"
    citation = "Hadoop's default"

    def pick(self, jobs: Sequence[JobState], state: State) -> JobState:
        return min(jobs, key=lambda job: (job.ready_s, job.uid))

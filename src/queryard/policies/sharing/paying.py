"""Whether the jobs over a table should parse it together, by what is expected of them."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Self

from queryard.core.entities import JobState
from queryard.core.state import State
from queryard.estimate.sharing import FurtherRiders, sharing_pays


class Company:
    """The jobs over each table that are there now, and how many more usually come.

    A pass of a table begins with a job over it while there is no other, and ends when all of them
    are gone.
    """

    __slots__ = ("_further", "_joined", "jobs")

    def __init__(self) -> None:
        # Table -> ids of its jobs, in the order in which they came.
        self.jobs: dict[str, dict[str, None]] = {}
        # How many have joined the pass under way after its first job; how many usually do.
        self._joined: dict[str, int] = {}
        self._further: dict[str, FurtherRiders] = {}

    def fork(self) -> Self:
        twin = copy.copy(self)
        twin.jobs = {table: jobs.copy() for table, jobs in self.jobs.items()}
        twin._joined = self._joined.copy()
        twin._further = {table: copy.copy(seen) for table, seen in self._further.items()}
        return twin

    def take_over(self, before: Company) -> None:
        """Go on with what was seen of earlier passes; the jobs that are here come anew."""
        self._further = {table: copy.copy(seen) for table, seen in before._further.items()}

    def came(self, job: JobState) -> None:
        table = job.spec.scans[0]
        jobs = self.jobs.setdefault(table, {})
        if job.id in jobs:
            return
        if jobs:
            self._joined[table] = self._joined.get(table, 0) + 1
        jobs[job.id] = None

    def left(self, job: JobState) -> None:
        table = job.spec.scans[0]
        jobs = self.jobs.get(table)
        if jobs is None or job.id not in jobs:
            return
        del jobs[job.id]
        if not jobs:
            del self.jobs[table]
            seen = self._further.setdefault(table, FurtherRiders())
            seen.saw_pass(self._joined.pop(table, 0))

    def further(self, table: str) -> float:
        """How many more jobs are to be expected before the pass under way ends."""
        seen = self._further.get(table, FurtherRiders())
        return max(0.0, seen.expected - self._joined.get(table, 0))

    def pays(self, table: str, state: State) -> bool:
        """Whether parsing once for all that is left to read takes less than each by itself.

        Where nothing is known of the costs of a job, it shares: to read a split together is
        free. O(jobs over the table).
        """
        scans_s, rides_s, make_s = [], [], 0.0
        for job in self._here(table, state):
            if job.make_s is None or job.ride_s is None:
                return True
            if job.map is not None:
                scan_s, left = job.map_s, float(job.map.pending)
            else:
                scan_s, left = job.work_s, 1.0 - job.done_share
            scans_s.append(left * scan_s)
            rides_s.append(left * job.ride_s)
            make_s = max(make_s, left * job.make_s)
        if not scans_s:
            return False
        make_s *= 1.0 - state.kept.get(table, 0.0)
        return sharing_pays(scans_s, make_s, rides_s, self.further(table))

    def _here(self, table: str, state: State) -> Iterable[JobState]:
        for job_id in self.jobs.get(table, ()):
            job = state.jobs.get(job_id)
            if job is not None and not job.done and job.query.stage != "ending":
                yield job

"""What is left of the jobs under way, kept up to date job by job.

TuMM weighs the unscheduled tasks of *running* jobs: those of which a task was launched. A
job's reduces count only once its maps are done. Times are observed means (Welford), before
the first task has ended what is expected of it.
"""

from __future__ import annotations

from queryard.core.entities import JobState
from queryard.core.lifecycle import PENDING, RUNNING
from queryard.core.state import State

# Of one job: maps unscheduled and their core-seconds, reduces likewise, maps and reduces
# running, and the phase.
Portion = tuple[int, float, int, float, int, int, int]
NOTHING: Portion = (0, 0.0, 0, 0.0, 0, 0, 0)
MAPPING, REDUCING = 1, 2


class RunningWork:
    """Sums over the running jobs. O(1) a change."""

    __slots__ = (
        "map_work_s",
        "maps",
        "maps_left",
        "phases",
        "portions",
        "reduce_work_s",
        "reduces",
        "reduces_left",
    )

    def __init__(self) -> None:
        self.portions: dict[int, Portion] = {}
        self.maps_left = 0
        self.map_work_s = 0.0
        self.reduces_left = 0
        self.reduce_work_s = 0.0
        self.maps = 0
        self.reduces = 0
        # Which jobs are in which phase, as one number: it differs when one of them moved on,
        # and is the same again when that was only tried and undone.
        self.phases = 0

    @classmethod
    def of(cls, state: State) -> RunningWork:
        work = cls()
        for job in state.jobs.values():
            work.note(job)
        return work

    def fork(self) -> RunningWork:
        copy = RunningWork()
        copy.portions = self.portions.copy()
        copy.maps_left = self.maps_left
        copy.map_work_s = self.map_work_s
        copy.reduces_left = self.reduces_left
        copy.reduce_work_s = self.reduce_work_s
        copy.maps = self.maps
        copy.reduces = self.reduces
        copy.phases = self.phases
        return copy

    def note(self, job: JobState) -> None:
        """A job changed: count what it has left now in place of what it had."""
        maps = job.map
        if maps is None:
            return
        if job.done or job.query.stage != "running" or maps.counts[PENDING] == maps.spec.tasks:
            if job.uid in self.portions:
                self._count(job.uid, NOTHING)
            return
        pending, running, done = maps.counts
        reduces = job.reduce
        if reduces is not None and done == maps.spec.tasks:
            left, reducing, _ = reduces.counts
            mean = reduces.mean
            work_s = left * (mean.mean if mean.n else job.reduce_s)
            self._count(job.uid, (0, 0.0, left, work_s, 0, reducing, REDUCING))
        else:
            reducing = reduces.counts[RUNNING] if reduces is not None else 0
            mean = maps.mean
            work_s = pending * (mean.mean if mean.n else job.map_s)
            self._count(job.uid, (pending, work_s, 0, 0.0, running, reducing, MAPPING))

    def _count(self, uid: int, now: Portion) -> None:
        was = self.portions.get(uid, NOTHING)
        self.maps_left = left = self.maps_left + now[0] - was[0]
        # No rounding left over, which would be all the work there is once nothing is left.
        self.map_work_s = self.map_work_s + now[1] - was[1] if left else 0.0
        self.reduces_left = left = self.reduces_left + now[2] - was[2]
        self.reduce_work_s = self.reduce_work_s + now[3] - was[3] if left else 0.0
        self.maps += now[4] - was[4]
        self.reduces += now[5] - was[5]
        if now[6] != was[6]:
            # Hashes of whole numbers are the same in every process.
            self.phases ^= hash((uid, was[6])) ^ hash((uid, now[6]))
        if now is NOTHING:
            del self.portions[uid]
        else:
            self.portions[uid] = now

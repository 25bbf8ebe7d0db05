"""What is left of the jobs under way, kept up to date job by job.

TuMM weighs the unscheduled tasks of *running* jobs: those of which a task was launched. A
job's reduces count only once its maps are done. Times are observed means (Welford), before
the first task has ended what is expected of it. Where nothing whatever is known of one kind,
its tasks are taken to last as long as those of the other (1:1). Jobs that could run but have
not begun are counted apart.
"""

from __future__ import annotations

from typing import Self

from queryard.core.entities import JobState
from queryard.core.lifecycle import PENDING, RUNNING
from queryard.core.phases import PhaseState
from queryard.core.state import State

from .lanes import SplitByKind

MAPPING, REDUCING, WAITING = 1, 2, 3
# Of one job: unscheduled tasks of its phase, their core-seconds, its running maps and reduces,
# and the phase.
Portion = tuple[int, float, int, int, int]
NOTHING: Portion = (0, 0.0, 0, 0, 0)


class RunningWork:
    """Sums over the running jobs. O(1) per change."""

    __slots__ = (
        "_portions",
        "jobs_waiting",
        "map_work_s",
        "maps",
        "maps_left",
        "maps_waiting",
        "phases",
        "reduce_work_s",
        "reduces",
        "reduces_left",
    )

    def __init__(self) -> None:
        self._portions: dict[int, Portion] = {}
        self.maps_left = 0
        self.map_work_s = 0.0
        self.reduces_left = 0
        self.reduce_work_s = 0.0
        self.maps = 0
        self.reduces = 0
        self.jobs_waiting = 0
        self.maps_waiting = 0
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
        copy._portions = self._portions.copy()
        copy.maps_left = self.maps_left
        copy.map_work_s = self.map_work_s
        copy.reduces_left = self.reduces_left
        copy.reduce_work_s = self.reduce_work_s
        copy.maps = self.maps
        copy.reduces = self.reduces
        copy.jobs_waiting = self.jobs_waiting
        copy.maps_waiting = self.maps_waiting
        copy.phases = self.phases
        return copy

    def note(self, job: JobState) -> None:
        """A job changed: count what it has left now in place of what it had."""
        maps = job.map
        if maps is None:
            return
        was = self._portions.get(job.uid, NOTHING)
        now = _portion(job, maps)
        if was[4] == now[4] == MAPPING:
            # The most frequent change by far: a map was launched, or has ended.
            self.maps_left = left = self.maps_left + now[0] - was[0]
            self.map_work_s = self.map_work_s + now[1] - was[1] if left else 0.0
        elif was is not now:
            self._add(was, -1)
            self._add(now, 1)
            if was[4] != now[4]:
                self.phases ^= _mark(job.uid, was[4]) ^ _mark(job.uid, now[4])
        self.maps += now[2] - was[2]
        self.reduces += now[3] - was[3]
        if now is not NOTHING:
            self._portions[job.uid] = now
        elif was is not NOTHING:
            del self._portions[job.uid]

    def _add(self, portion: Portion, sign: int) -> None:
        """Add or take away; no rounding is left over once nothing is left."""
        left, work_s, _, _, phase = portion
        if phase == MAPPING:
            self.maps_left += sign * left
            self.map_work_s = self.map_work_s + sign * work_s if self.maps_left else 0.0
        elif phase == REDUCING:
            self.reduces_left += sign * left
            self.reduce_work_s = self.reduce_work_s + sign * work_s if self.reduces_left else 0.0
        elif phase == WAITING:
            self.jobs_waiting += sign
            self.maps_waiting += sign * left


def _portion(job: JobState, maps: PhaseState) -> Portion:
    """What a job has left now."""
    pending, running, done = maps.counts
    tasks = maps.spec.tasks
    stage = job.query.stage
    if pending == tasks and not job.blockers and stage in ("waiting", "running"):
        return (pending, 0.0, 0, 0, WAITING)
    if pending == tasks or job.done or stage != "running":
        return NOTHING
    reduces = job.reduce
    reducing = 0 if reduces is None else reduces.counts[RUNNING]
    if done < tasks or reduces is None:
        prior_s = job.map_s if not job.map_guessed or job.reduce_guessed else job.reduce_s
        return (pending, pending * maps.mean.or_else(prior_s), running, reducing, MAPPING)
    left = reduces.counts[PENDING]
    prior_s = maps.mean.or_else(job.map_s) if job.reduce_guessed else job.reduce_s
    return (left, left * reduces.mean.or_else(prior_s), running, reducing, REDUCING)


def _mark(uid: int, phase: int) -> int:
    """A number for a job in a phase; hashes of whole numbers are the same in every process."""
    return hash((uid, phase)) if phase in (MAPPING, REDUCING) else 0


class SplitByWork(SplitByKind):
    """A split that goes by the work left in running jobs."""

    def __init__(self) -> None:
        self._work = RunningWork()

    def fork(self) -> Self:
        twin = super().fork()
        twin._work = self._work.fork()
        return twin

    def attach(self, state: State) -> None:
        self._work = RunningWork.of(state)

    def note(self, job: JobState, state: State) -> None:
        self._work.note(job)

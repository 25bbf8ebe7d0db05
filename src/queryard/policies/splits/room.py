"""Slots that long tasks may not take, so that whoever comes next finds one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Self

from queryard.core.entities import JobState, NodeState
from queryard.core.lifecycle import RUNNING
from queryard.core.parts import SlotSplit
from queryard.core.phases import PhaseState
from queryard.core.state import State

from ..checks import share as a_share

# Tasks are long beside a typical query, or so many times as long, or so many times that.
DEGREES, WIDER = 3, 10.0
# By how much what is typical moves before all jobs are looked at again.
STEP = 1.1
# How long a while is over which it is seen how many slots shorter tasks need: as long as tasks of
# the degree take at most, who will hold their slots for as long.
WHILE = WIDER
# Of a job of which no task runs.
NONE = (0,) * (DEGREES + 1)
# The lane for a slot: all stand in the first, the longest not in the second, and so on.
SERVED = tuple((lane,) for lane in range(DEGREES + 1))


class Room(SlotSplit):
    """Keep slots for tasks that take no longer than a typical query does alone, some for those up
    to ten times as long, and some for up to a hundred. O(1) a change.

    Tasks are not taken back. If long ones hold every slot, a query of a second waits for one of
    them to end, however soon its turn comes; and one of a minute, where they take hours. What is
    typical is the geometric mean over the latest queries that were completed; before the first, all
    tasks are short.

    Kept are as many slots as shorter tasks have held of late and the square root of that, as many
    more as they need now and then if they come by chance; at least one, and at most a `share` of
    all slots, rounded down, for each degree. Leased slots come back when somebody asks for them, so
    that nothing is kept beside them. A merged scan counts once a rider.

    On 50 slots where queries typically take 2 s, tasks of 10 s may hold 45 at least, those of 100 s
    40 and those of an hour 35; and 49 where shorter ones are few.
    """

    name = "room"
    citation = "after trunk reservation in telephone networks"
    lanes = DEGREES + 1
    map_bits = reduce_bits = lease_bits = (1 << lanes) - 1
    work_conserving = False
    is_for_arrivals = True

    def __init__(self, share: float = 0.1) -> None:
        self.share = a_share("share", share)
        if share * DEGREES >= 1:
            raise ValueError(f"share must be below 1/{DEGREES}: long tasks need slots, too")
        # By job, how many of its tasks run, and how many of these are long by each degree.
        self._tasks: dict[int, tuple[int, ...]] = {}
        # Of all jobs, how many that run are long by each degree, and how many are not.
        self._long = [0] * DEGREES
        self._short = [0] * DEGREES
        # How many are not on average over a while, and from when until when that was reckoned.
        self._usual = [0.0] * DEGREES
        self._since_s = self._until_s = 0.0
        # From when on a task is long by each degree, when all jobs were last looked at.
        self._from_s = [math.inf] * DEGREES

    def fork(self) -> Self:
        twin = super().fork()
        twin._tasks = self._tasks.copy()
        twin._long = self._long.copy()
        twin._short = self._short.copy()
        twin._usual = self._usual.copy()
        return twin

    def attach(self, state: State) -> None:
        self._tasks, self._long, self._short = {}, [0] * DEGREES, [0] * DEGREES
        self._since_s = self._until_s = state.now
        self._look_anew(state)
        for job in state.jobs.values():
            self.note(job, state)

    def _look_anew(self, state: State) -> None:
        typical_s = state.alone_s.value
        self._from_s = [typical_s * WIDER**degree for degree in range(DEGREES)]

    def ended(self, state: State) -> bool:
        if self._from_s[0] / STEP <= state.alone_s.value <= self._from_s[0] * STEP:
            return False
        if math.isinf(self._from_s[0]):
            # Until now nobody could say what was short.
            self._since_s = self._until_s = state.now
        self._look_anew(state)
        return True

    def note(self, job: JobState, state: State) -> None:
        if state.now > self._until_s:
            self._pass_time(state.now)
        now = self._tasks_of(job)
        before = self._tasks.get(job.uid, NONE)
        if now == before:
            return
        running = now[0] - before[0]
        for degree in range(DEGREES):
            long = now[degree + 1] - before[degree + 1]
            self._long[degree] += long
            self._short[degree] += running - long
        if now != NONE:
            self._tasks[job.uid] = now
        else:
            del self._tasks[job.uid]

    def _pass_time(self, now: float) -> None:
        passed_s, before_s = now - self._until_s, self._until_s - self._since_s
        self._until_s = now
        for degree, from_s in enumerate(self._from_s):
            gap = self._short[degree] - self._usual[degree]
            self._usual[degree] += gap * passed_s / (passed_s + min(before_s, WHILE * from_s))

    def _tasks_of(self, job: JobState) -> tuple[int, ...]:
        """How many run, in all and by degree; those of a query that is stopped count no more."""
        if job.query.stage != "running":
            return NONE
        tasks = [0] * (DEGREES + 1)
        for phase, task_s in ((job.map, job.map_s), (job.reduce, job.reduce_s)):
            running = phase.counts[RUNNING] if phase is not None else 0
            if not running:
                continue
            tasks[0] += running
            for degree, from_s in enumerate(self._from_s, 1):
                if task_s <= from_s:
                    break
                tasks[degree] += running
        return tuple(tasks)

    def wrong(self, state: State) -> Iterator[str]:
        found = [self._tasks_of(job) for job in state.jobs.values()]
        for degree in range(DEGREES):
            long = sum(tasks[degree + 1] for tasks in found)
            short = sum(tasks[0] for tasks in found) - long
            if (long, short) != (self._long[degree], self._short[degree]):
                yield (
                    f"{self._long[degree]} tasks count as long by {degree + 1} degrees and "
                    f"{self._short[degree]} as shorter; {long} and {short} are"
                )

    def suits(self, job: JobState, phase: PhaseState, lane: int) -> bool:
        # Of the longest degree in the first lane, of the one below in the second.
        if lane == 0:
            return True
        return (job.map_s if phase is job.map else job.reduce_s) <= self._from_s[DEGREES - lane]

    def serve(self, node: NodeState, state: State) -> tuple[int, ...]:
        if state.leaseholders:
            return SERVED[0]
        slots = state.total_slots
        for degree, held in enumerate(self._long):
            if held >= slots - self._kept(degree, slots):
                return SERVED[DEGREES - degree]
        return SERVED[0]

    def _kept(self, degree: int, slots: int) -> int:
        usual = self._usual[degree]
        most = int(self.share * slots) * (degree + 1)
        return min(most, max(1, math.ceil(usual + math.sqrt(usual))))

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
# The lane for a slot: all stand in the first, the longest not in the second, and so on.
SERVED = tuple((lane,) for lane in range(DEGREES + 1))


class Room(SlotSplit):
    """Keep a `share` of all slots, rounded down, for tasks that take no longer than a typical
    query does alone, as many again for those up to ten times as long, and up to a hundred. O(1) a
    change.

    Tasks are not taken back. If long ones hold every slot, a query of a second waits for one of
    them to end, however soon its turn comes; and one of a minute, where they take hours. What is
    typical is the geometric mean over the latest queries that were completed; before the first, all
    tasks are short. Leased slots come back when somebody asks for them, so that nothing is kept
    beside them. A merged scan counts once a rider.

    On 50 slots where queries typically take 2 s, tasks of 10 s hold 45 at most, those of 100 s 40
    and those of an hour 35; the other five serve tasks of up to 2 s or nobody.
    """

    name = "room"
    citation = "after trunk reservation in telephone networks"
    lanes = DEGREES + 1
    map_bits = reduce_bits = lease_bits = (1 << lanes) - 1
    work_conserving = False

    def __init__(self, share: float = 0.1) -> None:
        self.share = a_share("share", share)
        if share * DEGREES >= 1:
            raise ValueError(f"share must be below 1/{DEGREES}: long tasks need slots, too")
        # By job, how many of its tasks run that are long by each degree; and of all jobs.
        self._long: dict[int, list[int]] = {}
        self._held = [0] * DEGREES
        # From when on a task is long by each degree, when all jobs were last looked at.
        self._from_s = [math.inf] * DEGREES

    def fork(self) -> Self:
        twin = super().fork()
        twin._long = self._long.copy()
        twin._held = self._held.copy()
        return twin

    def attach(self, state: State) -> None:
        self._long, self._held = {}, [0] * DEGREES
        self._look_anew(state)
        for job in state.jobs.values():
            self.note(job, state)

    def _look_anew(self, state: State) -> None:
        typical_s = state.alone_s.value
        self._from_s = [typical_s * WIDER**degree for degree in range(DEGREES)]

    def ended(self, state: State) -> bool:
        if self._from_s[0] / STEP <= state.alone_s.value <= self._from_s[0] * STEP:
            return False
        self._look_anew(state)
        return True

    def note(self, job: JobState, state: State) -> None:
        now = self._long_tasks(job)
        before = self._long.get(job.uid)
        if now == before:
            return
        for degree in range(DEGREES):
            if now is not None:
                self._held[degree] += now[degree]
            if before is not None:
                self._held[degree] -= before[degree]
        if now is not None:
            self._long[job.uid] = now
        else:
            del self._long[job.uid]

    def _long_tasks(self, job: JobState) -> list[int] | None:
        """How many of them run, by degree; those of a query that is stopped count no more."""
        if job.query.stage != "running":
            return None
        held = None
        for phase, task_s in ((job.map, job.map_s), (job.reduce, job.reduce_s)):
            if phase is None or task_s <= self._from_s[0] or not phase.counts[RUNNING]:
                continue
            held = held or [0] * DEGREES
            for degree, from_s in enumerate(self._from_s):
                if task_s > from_s:
                    held[degree] += phase.counts[RUNNING]
        return held

    def wrong(self, state: State) -> Iterator[str]:
        found = [self._long_tasks(job) for job in state.jobs.values()]
        held = [sum(of[degree] for of in found if of) for degree in range(DEGREES)]
        if held != self._held:
            yield f"{self._held} slots count as held by long tasks, {held} are"

    def suits(self, job: JobState, phase: PhaseState, lane: int) -> bool:
        # Of the longest degree in the first lane, of the one below in the second.
        if lane == 0:
            return True
        return (job.map_s if phase is job.map else job.reduce_s) <= self._from_s[DEGREES - lane]

    def serve(self, node: NodeState, state: State) -> tuple[int, ...]:
        if state.leaseholders:
            return SERVED[0]
        slots = state.total_slots
        for degree, held in enumerate(self._held):
            if held >= slots - int(self.share * slots) * (degree + 1):
                return SERVED[DEGREES - degree]
        return SERVED[0]

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

ALL, SHORT = (0,), (1,)
# By how much what is typical moves before all jobs are looked at again.
STEP = 1.1


class Room(SlotSplit):
    """Keep a `share` of all slots, rounded down, for tasks that take no longer than a typical
    query does alone. O(1) a change.

    Tasks are not taken back. If long ones hold every slot, a query of a second waits for one of
    them to end, however soon its turn comes. What is typical is the geometric mean over the latest
    queries that were completed; before the first, all tasks are short. Leased slots come back when
    somebody asks for them, so that nothing is kept beside them. A merged scan counts once a rider.

    On 50 slots, tasks of 20 s hold 45 at most where queries typically take 2 s; the other five
    serve tasks of up to 2 s or nobody.
    """

    name = "room"
    citation = "after trunk reservation in telephone networks"
    # One for all, and one for short tasks only, who stand in both.
    lanes = 2
    map_bits = reduce_bits = lease_bits = 3
    work_conserving = False

    def __init__(self, share: float = 0.1) -> None:
        self.share = a_share("share", share)
        if share == 1:
            raise ValueError("share must be below 1: long tasks need slots, too")
        # By job, its long tasks that run, and how many these are in all.
        self._long: dict[int, int] = {}
        self._held = 0
        # What was typical when all jobs were last looked at.
        self._typical_s = math.inf

    def fork(self) -> Self:
        twin = super().fork()
        twin._long = self._long.copy()
        return twin

    def attach(self, state: State) -> None:
        self._long, self._held = {}, 0
        self._typical_s = state.alone_s.value
        for job in state.jobs.values():
            self.note(job, state)

    def ended(self, state: State) -> bool:
        typical_s = state.alone_s.value
        if self._typical_s / STEP <= typical_s <= self._typical_s * STEP:
            return False
        self._typical_s = typical_s
        return True

    def note(self, job: JobState, state: State) -> None:
        held, before = self._long_tasks(job), self._long.get(job.uid, 0)
        if held != before:
            self._held += held - before
            if held:
                self._long[job.uid] = held
            else:
                del self._long[job.uid]

    def _long_tasks(self, job: JobState) -> int:
        """How many of them run; those of a query that is stopped do not count any more."""
        if job.query.stage != "running":
            return 0
        held = 0
        if job.map is not None and job.map_s > self._typical_s:
            held = job.map.counts[RUNNING]
        if job.reduce is not None and job.reduce_s > self._typical_s:
            held += job.reduce.counts[RUNNING]
        return held

    def wrong(self, state: State) -> Iterator[str]:
        held = sum(self._long_tasks(job) for job in state.jobs.values())
        if held != self._held:
            yield f"{self._held} slots count as held by long tasks, {held} are"

    def suits(self, job: JobState, phase: PhaseState, lane: int) -> bool:
        return lane == 0 or (job.map_s if phase is job.map else job.reduce_s) <= self._typical_s

    def serve(self, node: NodeState, state: State) -> tuple[int, ...]:
        slots = state.total_slots
        is_open = self._held < slots - int(self.share * slots)
        return ALL if is_open or state.leaseholders else SHORT

"""Slots that long tasks may not take, so that the next query finds one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Self

from queryard.core.entities import JobState
from queryard.core.lifecycle import RUNNING
from queryard.core.nodes import NodeState
from queryard.core.parts import SlotSplit
from queryard.core.phases import PhaseState
from queryard.core.state import State

from ..checks import share as a_share

# Tasks are long beside a typical query, or so many times as long, or so many times that.
DEGREES, WIDER = 3, 10.0
# By how much what is typical moves before all jobs are looked at again.
STEP = 1.1
# How long a while is over which it is seen how many slots shorter tasks need: as long as tasks of
# the degree take at most, as these hold their slots for as long.
WHILE = WIDER
# Of a job of which no short task runs.
NONE = (0,) * DEGREES
# The lane for a slot: all stand in the first, the longest not in the second, and so on.
SERVED = tuple((lane,) for lane in range(DEGREES + 1))


class ReserveShort(SlotSplit):
    """Keep slots for tasks that take no longer than a typical query does alone, some for those up
    to ten times as long, and some for up to a hundred. O(1) per change.

    Tasks are not taken back. If long ones hold every slot, a query of a second waits for one of
    them to end, however soon its turn comes; and one of a minute, where they take hours. What is
    typical is the geometric mean over the latest queries that were completed; before the first, all
    tasks are short.

    Kept are as many slots as shorter tasks have held of late and the square root of that, as many
    more as they need now and then if they come by chance; at least one, and at most a `share`
    (below a third) of all slots, rounded down, for each degree. Leased slots come back when
    they are asked for, so that nothing is kept beside them. Short riders of a merged scan count
    one by one.

    On 50 slots where queries typically take 2 s, tasks of 10 s may hold 45 at least, those of 100 s
    40 and those of an hour 35; and 49 where shorter ones are few.
    """

    name = "reserve-short"
    citation = "after trunk reservation in telephone networks"
    lanes = DEGREES + 1
    map_bits = reduce_bits = lease_bits = (1 << lanes) - 1
    work_conserving = False
    is_for_arrivals = True

    def __init__(self, share: float = 0.1) -> None:
        self.share = a_share("share", share, below=1 / DEGREES)
        # How many tasks run that are not long by each degree: by job, in all, and on average over
        # a while, with the time from which and until when that was computed.
        self._by_job: dict[int, tuple[int, ...]] = {}
        self._short = [0] * DEGREES
        self._usual = [0.0] * DEGREES
        self._since_s = self._until_s = 0.0
        # How many slots are kept by each degree, of how many, as long as that holds.
        self._kept: tuple[int, ...] = ()
        self._kept_of = 0
        # From when on a task is long by each degree, when all jobs were last looked at.
        self._from_s = [math.inf] * DEGREES
        # Slots may be free for which only those in this lane, or a later one, were asked.
        self._closed = 0

    def fork(self) -> Self:
        twin = super().fork()
        twin._by_job = self._by_job.copy()
        twin._short = self._short.copy()
        twin._usual = self._usual.copy()
        return twin

    def attach(self, state: State) -> None:
        self._by_job, self._short, self._closed = {}, [0] * DEGREES, 0
        self._since_s = self._until_s = state.now
        self._look_anew(state)
        for job in state.jobs.values():
            self.note(job, state)
        if state.alone_s.value < math.inf:
            # What went before is unknown: as if it had been so for a typical time.
            self._usual = [float(short) for short in self._short]
            self._since_s -= state.alone_s.value
        self._kept = ()

    def take_over(self, before: Self, state: State) -> None:
        if math.isinf(before._from_s[0]):
            return
        if state.now > before._until_s:
            before._pass_time(state.now)
        self._usual, self._since_s = before._usual, before._since_s

    def _look_anew(self, state: State) -> None:
        typical_s = state.alone_s.value
        self._from_s = [typical_s * WIDER**degree for degree in range(DEGREES)]

    def ended(self, state: State) -> bool:
        if self._from_s[0] / STEP <= state.alone_s.value <= self._from_s[0] * STEP:
            return False
        if math.isinf(self._from_s[0]):
            # Until now it was not known what was short.
            self._since_s = self._until_s = state.now
        self._look_anew(state)
        return True

    def note(self, job: JobState, state: State) -> None:
        if state.now > self._until_s:
            self._pass_time(state.now)
        now = self._short_tasks(job)
        before = self._by_job.get(job.uid, NONE)
        if now == before:
            return
        for degree in range(DEGREES):
            self._short[degree] += now[degree] - before[degree]
        if now != NONE:
            self._by_job[job.uid] = now
        else:
            del self._by_job[job.uid]

    def _pass_time(self, now: float) -> None:
        passed_s, before_s = now - self._until_s, self._until_s - self._since_s
        self._until_s = now
        self._kept = ()
        for degree, from_s in enumerate(self._from_s):
            weight = passed_s / (passed_s + min(before_s, WHILE * from_s))
            # Not by a difference, which would make it less than nothing by rounding.
            self._usual[degree] *= 1.0 - weight
            self._usual[degree] += weight * self._short[degree]

    def _short_tasks(self, job: JobState) -> tuple[int, ...]:
        """How many run, by degree; those of a query that is stopped count no more."""
        if job.query.stage != "running":
            return NONE
        short = [0] * DEGREES
        for phase, task_s in ((job.map, job.map_s), (job.reduce, job.reduce_s)):
            running = phase.counts[RUNNING] if phase is not None else 0
            if running:
                for degree, from_s in enumerate(self._from_s):
                    if task_s <= from_s:
                        short[degree] += running
        return tuple(short)

    def violations(self, state: State) -> Iterator[str]:
        found = [self._short_tasks(job) for job in state.jobs.values()]
        short = [sum(tasks[degree] for tasks in found) for degree in range(DEGREES)]
        if short != self._short:
            yield f"{self._short} tasks count as short, {short} are"

    def suits(self, job: JobState, phase: PhaseState, lane: int) -> bool:
        # Of the longest degree in the first lane, of the one below in the second.
        if lane == 0:
            return True
        return (job.map_s if phase is job.map else job.reduce_s) <= self._from_s[DEGREES - lane]

    def serve(self, node: NodeState, state: State) -> tuple[int, ...]:
        lane = self._lane(state)
        self._closed = max(self._closed, lane)
        return SERVED[lane]

    def opened(self, state: State) -> bool:
        if not self._closed:
            return False
        if state.now > self._until_s:
            self._pass_time(state.now)
        freed = (node.free for node in set(state.notes.freed) if not node.draining)
        lane = self._lane(state, sum(freed))
        before, self._closed = self._closed, min(self._closed, lane)
        return lane < before

    def _lane(self, state: State, spent: int = 0) -> int:
        """The one for the next slot, if so many of the free ones are given away."""
        if state.leaseholders:
            return 0
        slots = state.total_slots
        # Launches, as a merged scan of many riders takes one slot; not those on nodes that leave.
        free = slots - len(state.running) - spent
        if state.draining:
            free += sum(node.spec.slots - node.free for node in state.draining)
        if not self._kept or self._kept_of != slots:
            self._keep(slots)
        for degree, kept in enumerate(self._kept):
            if free + self._short[degree] <= kept:
                return DEGREES - degree
        return 0

    def _keep(self, slots: int) -> None:
        most = int(self.share * slots)
        self._kept_of = slots
        self._kept = tuple(
            min(most * (degree + 1), max(1, math.ceil(usual + math.sqrt(usual))))
            for degree, usual in enumerate(self._usual)
        )

"""Batches: jobs that scan one table wait for each other and share one scan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

from queryard.core.entities import JobState
from queryard.core.model import Table
from queryard.core.state import State

from ..checks import above_zero, whole
from .merged import MergedScan, MergedScans, hold, reads_whole_table


class Forming(NamedTuple):
    """A batch that still waits for jobs."""

    jobs: tuple[str, ...]
    table: Table
    closes_s: float


class Batches(MergedScans):
    """Hold jobs back until a batch of them is full or its window is over; then scan once for all.

    MRShare as S³ §II uses it: a batch closes at `count` jobs, or `window_s` after its first,
    whichever comes first, and reads its table from the first block on as one merged job.
    `counts` are the sizes of the first batches of a table where they differ, such as the
    [6, 4] of the paper (with window_s = inf). A job of which a map has already run does not
    share. Cost: O(riders) per launch.

    Two jobs of 100 s, at 0 and at 20 s, in one batch: both end at 120 s.
    """

    name = "mrshare"
    citation = "S³ §II (MRShare)"

    def __init__(self, count: int = 4, window_s: float = 60.0, counts: Sequence[int] = ()) -> None:
        super().__init__()
        self.count = whole("count", count, 1)
        self.counts = tuple(whole("counts", each, 1) for each in counts)
        # Endless: a batch waits until it is full.
        self.window_s = window_s if window_s == math.inf else above_zero("window_s", window_s)
        self._reset()

    def _reset(self) -> None:
        self._forming: dict[str, Forming] = {}
        # Closed batches by round, the round of each job in one, and how many a table had.
        self._scans: dict[str, MergedScan] = {}
        self._round_of: dict[str, str] = {}
        self._closed: dict[str, int] = {}

    def fork(self) -> Self:
        twin = super().fork()
        twin._forming = self._forming.copy()
        twin._scans = {name: scan.fork() for name, scan in self._scans.items()}
        twin._round_of = self._round_of.copy()
        twin._closed = self._closed.copy()
        return twin

    def attach(self, state: State) -> None:
        super().attach(state)
        self._reset()

    def ready(self, job: JobState, state: State) -> list[JobState]:
        maps = job.map
        if maps is None or maps.pending < maps.spec.tasks or not reads_whole_table(job, state):
            return []
        table = job.spec.scans[0]
        batch = self._forming.get(table)
        if batch is None:
            batch = Forming((), job.scanned[0][0], state.now + self.window_s)
        elif batch.table is not job.scanned[0][0]:
            return []  # the table has changed since the batch began
        batch = self._forming[table] = batch._replace(jobs=(*batch.jobs, job.id))
        job.held_back = True
        number = self._closed.get(table, 0)
        size = self.counts[number] if number < len(self.counts) else self.count
        return [job] if len(batch.jobs) < size else self._close(table, state)

    def _close(self, table: str, state: State) -> list[JobState]:
        batch = self._forming.pop(table)
        self._closed[table] = self._closed.get(table, 0) + 1
        # A job may have been cancelled this very instant.
        jobs = [state.jobs[job] for job in batch.jobs if job in state.jobs]
        if not jobs:
            return []
        jobs.sort(key=lambda job: job.uid)
        scan = MergedScan(
            jobs[0], self._new_round(table), [job.id for job in jobs], 0, len(batch.table.splits)
        )
        self._scans[scan.round] = scan
        self._round_of.update((job.id, scan.round) for job in jobs)
        return hold(jobs, False)

    def wake_s(self, state: State) -> float | None:
        soonest = min((batch.closes_s for batch in self._forming.values()), default=math.inf)
        return soonest if soonest < math.inf else None

    def released(self, state: State) -> list[JobState]:
        due = [table for table, batch in self._forming.items() if batch.closes_s <= state.now]
        return [job for table in due for job in self._close(table, state)]

    def companions(self, job: JobState, state: State) -> tuple[str, ...]:
        scan = self._scan_for(job, state)
        others = scan.riders if scan is not None else ()
        return tuple(
            other.query.id
            for job_id in others
            if (other := state.jobs.get(job_id)) is not None and other.query is not job.query
        )

    def scanned_s(self, job: JobState, state: State) -> float | None:
        """When the batch will have read all, its blocks at the pace of its maps so far."""
        if self._scan_for(job, state) is None or job.map is None:
            return None
        pace_s = job.map.mean.or_else(job.map_s)
        return state.now + job.map.left * pace_s / max(1, state.total_slots)

    def _scan_for(self, job: JobState, state: State) -> MergedScan | None:
        return self._scans.get(self._round_of.get(job.id, ""))

    def launched(self, job: JobState, state: State) -> list[JobState]:
        scan = self._scan_for(job, state)
        if scan is not None and not scan.unread:
            # All is read once. A job that must read something again does so alone.
            del self._scans[scan.round]
            for rider in scan.riders:
                del self._round_of[rider]
                self._again.pop(rider, None)
        return []

    def returned(self, job: JobState, index: int, state: State) -> list[JobState]:
        if job.id in self._round_of:
            self._read_again(job, index)
        return []

    def left(self, job: JobState, state: State) -> list[JobState]:
        self._again.pop(job.id, None)
        table = job.spec.scans[0]
        batch = self._forming.get(table)
        if batch is not None and job.id in batch.jobs:
            others = tuple(each for each in batch.jobs if each != job.id)
            if others:
                self._forming[table] = batch._replace(jobs=others)
            else:
                del self._forming[table]
        scan = self._scans.get(self._round_of.pop(job.id, ""))
        if scan is not None:
            scan.riders.remove(job.id)
            if not scan.riders:
                del self._scans[scan.round]
        return []

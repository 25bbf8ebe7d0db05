"""The circular scan of one table, as it turns for its jobs segment by segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from queryard.core.entities import JobState
from queryard.core.model import Table
from queryard.core.state import State

from .merged import MergedScan

# A launch that takes this many times what was to be expected runs on a slow node.
SLOW = 1.5


class Segment(NamedTuple):
    """The blocks [first, stop) and the jobs that all need all of them."""

    first: int
    stop: int
    riders: list[str]


class Ring:
    """The jobs that read a table in circles, where the scan is, and the round under way."""

    __slots__ = (
        "blocks",
        "check_s",
        "jobs",
        "launched_s",
        "opened_s",
        "pace_s",
        "position",
        "running",
        "scan",
        "table",
    )

    def __init__(self, table: Table) -> None:
        # As it was when the ring began to turn: jobs of another state of it do not ride along.
        self.table = table
        self.blocks = len(table.splits)
        # Ids, in the order in which they came.
        self.jobs: dict[str, None] = {}
        # The block at which the next segment begins.
        self.position = 0
        # The round under way, None between two; those of its launches that have not ended.
        self.scan: MergedScan | None = None
        self.running = 0
        self.launched_s = 0.0
        self.check_s = 0.0
        # When the round was opened; what a block took in the last one, None before its end.
        self.opened_s = 0.0
        self.pace_s: float | None = None

    def fork(self) -> Ring:
        copy = Ring(self.table)
        copy.jobs = self.jobs.copy()
        copy.position = self.position
        copy.scan = self.scan.fork() if self.scan else None
        copy.running = self.running
        copy.launched_s = self.launched_s
        copy.check_s = self.check_s
        copy.opened_s = self.opened_s
        copy.pace_s = self.pace_s
        return copy

    @property
    def all_launched(self) -> bool:
        """Whether the round only waits for its launches to end."""
        return self.scan is not None and not self.scan.unread

    def next_segment(
        self, job: JobState, most: int, again: Mapping[str, Sequence[int]], state: State
    ) -> Segment:
        """At most `most` blocks from the first one on that the job needs.

        It ends where a rider needs no more, or another job would begin to need something, so
        that nothing is read twice. Blocks that a job must read `again` it reads alone.
        A query that has not started is left out if its memory does not fit.
        """
        assert job.map is not None
        own = job.map.open_taken()
        first = own.find(0, self.position)
        if first < 0:
            first = own.find(0)
        stop = min(self.blocks, first + most)
        riders = []
        for job_id in self.jobs:
            other = state.jobs[job_id]
            stage = other.query.stage
            fits = other is job or stage == "running" or state.fits(other.query)
            if other.map is None or stage == "ending" or not fits:
                continue
            taken = other.map.open_taken()
            alone = again.get(job_id, ())
            needs_it = not taken[first] and first not in alone
            change = taken.find(1 if needs_it else 0, first + 1, stop)
            stop = change if change >= 0 else stop
            stop = min((block for block in alone if first < block < stop), default=stop)
            if needs_it:
                riders.append((other.uid, job_id))
        return Segment(first, stop, [job_id for _, job_id in sorted(riders)])

    def close_round(self, now: float) -> None:
        """The round under way is over."""
        if self.scan is not None and (blocks := self.scan.stop - self.scan.first):
            self.pace_s = (now - self.opened_s) / blocks
        self.scan = None

    def scanned_s(self, job: JobState, state: State) -> float:
        """When a job will have read all: what it still needs, at the pace of the last round.

        Before a round has ended, a block takes what a map is expected to take over the slots.
        """
        assert job.map is not None
        pace_s = self.pace_s
        if pace_s is None:
            pace_s = job.map_s / max(1, state.total_slots)
        # Of the blocks that are being read, some of the time is over.
        over_s = min(state.now - self.opened_s, job.map.running * pace_s)
        return state.now + job.map.left * pace_s - over_s

    def is_late(self, state: State) -> bool:
        """Whether the launches that have not ended take far longer than the others did."""
        expected_s = 0.0
        for job_id in self.scan.riders if self.scan else ():
            job = state.jobs.get(job_id)
            if job is not None and job.map is not None:
                mean_s = job.map.mean.or_else(job.map_s)
                expected_s = max(expected_s, mean_s)
        return state.now - self.launched_s > SLOW * expected_s


def open_folds(ring: Ring, scan: MergedScan, state: State) -> list[JobState]:
    """A round is over: the reduces of jobs that go on may fold what it has left.

    Where they still fold an earlier round, they do both with the next one.
    """
    opened = []
    for job_id in scan.riders:
        job = state.jobs.get(job_id) if job_id in ring.jobs else None
        if job is None or job.reduce is None or not job.folds_early:
            continue
        if not job.folds and not job.folding and job.query.stage == "running":
            job.folds, job.fold_round = job.reduce.spec.tasks, scan.round
            opened.append(job)
    return opened

"""Circular scans: a job hops on the scan of its table where it is."""

from __future__ import annotations

from typing import Self

from queryard.core.commands import Launch
from queryard.core.entities import JobState
from queryard.core.state import State

from ..checks import above_zero, whole
from .merged import MergedScan, MergedScans, hold, reads_whole_table

# A launch that takes this many times what was to be expected runs on a slow node.
SLOW = 1.5


class Ring:
    """The scan of one table that turns for its jobs, segment by segment."""

    __slots__ = ("blocks", "check_s", "jobs", "launched_s", "position", "running", "segment")

    def __init__(self, blocks: int) -> None:
        self.blocks = blocks
        self.jobs: dict[str, None] = {}
        # The block at which the next segment begins.
        self.position = 0
        # The segment under way, None between two; its launches that have not ended.
        self.segment: MergedScan | None = None
        self.running = 0
        self.launched_s = 0.0
        self.check_s = 0.0

    def fork(self) -> Ring:
        copy = Ring(self.blocks)
        copy.jobs = self.jobs.copy()
        copy.position = self.position
        copy.segment = self.segment.fork() if self.segment else None
        copy.running = self.running
        copy.launched_s = self.launched_s
        copy.check_s = self.check_s
        return copy


class Circular(MergedScans):
    """Read a table in a ring, a segment at a time, for all jobs that still need the segment.

    S³ §IV. A segment has as many blocks as slots are free when its first block is launched,
    times `waves`; jobs that came until then ride on it, others wait for the next. That opens
    when all launches of the round have ended, or at a check every `check_s` that finds the
    rest of them late (1.5 times the mean): slow nodes are left out until they finish. Blocks
    are tracked, not segment numbers: a segment ends where one of its riders needs no more, or
    another job would begin, so that nothing is read twice. Deviations: a ring for every table,
    the one whose query is ranked highest being served; a query whose memory does not fit
    waits for a later segment. Cost: O(riders) a launch, O(jobs in the ring) a segment.

    Two jobs of 100 s, at 0 and at 20 s: the second reads the last 80 % with the first, then
    the first 20 % alone, and both take 100 s.
    """

    name = "circular"
    citation = "S³ §IV"

    def __init__(self, waves: int = 1, check_s: float = 5.0) -> None:
        super().__init__()
        self.waves = whole("waves", waves, 1)
        self.check_s = above_zero("check_s", check_s)
        self._rings: dict[str, Ring] = {}

    def fork(self) -> Self:
        twin = super().fork()
        twin._rings = {table: ring.fork() for table, ring in self._rings.items()}
        return twin

    def attach(self, state: State) -> None:
        super().attach(state)
        self._rings = {}

    # --- who is in a ring ------------------------------------------------------------------

    def ready(self, job: JobState, state: State) -> list[JobState]:
        if job.map is None or not job.map.pending or not reads_whole_table(job, state):
            return []
        table = job.spec.scans[0]
        ring = self._rings.get(table)
        if ring is None:
            ring = self._rings[table] = Ring(job.map.spec.tasks)
        elif ring.blocks != job.map.spec.tasks:
            return []  # the table has changed since the ring began to turn
        ring.jobs[job.id] = None
        return hold([job], ring.segment is not None)

    def left(self, job: JobState, state: State) -> list[JobState]:
        self._again.pop(job.id, None)
        ring = self._ring_of(job)
        if ring is None:
            return []
        del ring.jobs[job.id]
        segment = ring.segment
        if segment is not None and job.id in segment.riders:
            segment.riders.remove(job.id)
            if not segment.riders:
                segment.unread = 0  # nobody needs the rest of it
        return self._settle(job.spec.scans[0], state)

    def _ring_of(self, job: JobState) -> Ring | None:
        ring = self._rings.get(job.spec.scans[0])
        return ring if ring is not None and job.id in ring.jobs else None

    # --- rounds ----------------------------------------------------------------------------

    def _scan_for(self, job: JobState, state: State) -> MergedScan | None:
        ring = self._ring_of(job)
        if ring is None:
            return None
        if ring.segment is None:
            ring.segment = self._open(ring, job, state)
        ring.running += 1
        ring.launched_s = state.now
        return ring.segment

    def _open(self, ring: Ring, job: JobState, state: State) -> MergedScan:
        """The next segment, from the first block on that the job needs."""
        assert job.map is not None
        own = job.map.open_taken()
        first = own.find(0, ring.position)
        if first < 0:
            first = own.find(0)
        free = sum(node.free for node in state.nodes.values() if not node.draining)
        stop = min(ring.blocks, first + self.waves * max(1, free))
        riders = []
        for job_id in ring.jobs:
            other = state.jobs[job_id]
            query = other.query
            if query.stage == "ending" or other.map is None:
                continue
            if query.stage == "waiting" and other is not job and not state.fits(query):
                continue
            taken = other.map.open_taken()
            again = self._again.get(job_id, ())
            needs_it = not taken[first] and first not in again
            # All riders need all of the segment, and nobody else needs any of it.
            change = taken.find(1 if needs_it else 0, first + 1, stop)
            stop = change if change >= 0 else stop
            stop = min((block for block in again if first < block < stop), default=stop)
            if needs_it:
                riders.append(other)
        riders.sort(key=lambda rider: rider.uid)
        ring.position = stop % ring.blocks
        table = job.spec.scans[0]
        return MergedScan(table, self._new_round(table), [r.id for r in riders], first, stop)

    def launched(self, job: JobState, state: State) -> list[JobState]:
        ring = self._ring_of(job)
        if ring is None or ring.segment is None:
            return []
        segment = ring.segment
        if segment.unread and segment.unread < len(segment.read) - 1 and job.id in segment.riders:
            return []  # neither the first nor the last block of it
        ring.check_s = state.now + self.check_s
        return self._settle(job.spec.scans[0], state)

    def ended(self, run: Launch, state: State) -> list[JobState]:
        table = run.round.rpartition("#")[0]
        ring = self._rings.get(table)
        if ring is None or ring.segment is None or ring.segment.round != run.round:
            return []  # of a round that is over
        ring.running -= 1
        return [] if ring.running or ring.segment.unread else self._settle(table, state)

    def returned(self, job: JobState, index: int, state: State) -> list[JobState]:
        if self._ring_of(job) is None:
            return []
        self._read_again(job, index)
        return hold([job], False)

    def _settle(self, table: str, state: State) -> list[JobState]:
        """Turn the ring if the round is over; hold back who cannot ride, let go who is through."""
        ring = self._rings[table]
        segment = ring.segment
        if segment is not None and not segment.unread and not ring.running:
            segment = ring.segment = None
        riders = set(segment.riders) if segment is not None and segment.unread else set()
        changed = []
        for job_id in list(ring.jobs):
            job = state.jobs.get(job_id)
            if job is None or job.map is None:
                continue  # its end is noted in a moment
            again = len(self._again.get(job_id, ()))
            if job.map.pending == again:
                # It has been through all of the ring; what failed on the way it reads alone.
                del ring.jobs[job_id]
                self._again.pop(job_id, None)
                changed += hold([job], False)
            else:
                changed += hold([job], segment is not None and not again and job_id not in riders)
        if not ring.jobs:
            del self._rings[table]
        return changed

    # --- slow nodes ------------------------------------------------------------------------

    def wake_s(self, state: State) -> float | None:
        checks = [ring.check_s for ring in self._rings.values() if _waits(ring)]
        return min(checks, default=None)

    def released(self, state: State) -> list[JobState]:
        changed = []
        for table, ring in list(self._rings.items()):
            if not _waits(ring) or ring.check_s > state.now:
                continue
            ring.check_s = state.now + self.check_s
            if self._is_late(ring, state) and any(node.free for node in state.nodes.values()):
                ring.running = 0  # what still runs is left to itself
                changed += self._settle(table, state)
        return changed

    @staticmethod
    def _is_late(ring: Ring, state: State) -> bool:
        expected_s = 0.0
        for job_id in ring.segment.riders if ring.segment else ():
            job = state.jobs.get(job_id)
            if job is not None and job.map is not None:
                mean_s = job.map.mean.mean if job.map.mean.n else job.map_s
                expected_s = max(expected_s, mean_s)
        return state.now - ring.launched_s > SLOW * expected_s


def _waits(ring: Ring) -> bool:
    """Whether jobs of the ring wait for the last launches of a round."""
    return ring.segment is not None and not ring.segment.unread and ring.running > 0

"""Circular scans: a job hops on the scan of its table where it is."""

from __future__ import annotations

from typing import Literal, Self

from queryard.core.commands import Launch
from queryard.core.entities import JobState
from queryard.core.model import MAP
from queryard.core.state import State

from ..checks import above_zero, one_of, whole
from .merged import MergedScan, MergedScans, hold, reads_whole_table
from .paying import Company
from .ring import Ring, open_folds

When = Literal["always", "pays"]
Reduces = Literal["last", "early"]


class Circular(MergedScans):
    """Read a table in a ring, segment by segment, for all jobs that still need the segment.

    S³ §IV. A segment has as many blocks as slots are free when its first block is launched,
    times `waves`; jobs that came until then ride on it, others wait for the next. That opens
    when all launches of the round have ended, or at a check every `check_s` that finds the
    rest of them late (1.5 times the mean): slow nodes are left out until they finish.
    `why` says when a rider will have read all, by the blocks it needs and the pace of the scan.
    Deviations: blocks are tracked, not segment numbers, see `Ring.next_segment`; every table
    has its ring, and the ring of the highest-ranked query is served. With `when` "pays" jobs
    share only while parsing once and riding (`make`, `ride`) takes less than each by itself,
    with the jobs that usually come later counted in and what is kept parsed left out; this is
    asked when a job comes and when a segment opens, and of divisible jobs at every grant. With
    `reduces` "early" every sub-job has reduces of its own, which fold what it has left while the
    next segments are read; those at the end do the rest. Cost:
    O(riders) per launch, O(jobs over the table) per segment.

    Two jobs of 100 s, at 0 and at 20 s: the second reads the last 80 % with the first, then
    the first 20 % alone, and both take 100 s.
    """

    name = "circular"
    citation = "S³ §IV"

    def __init__(
        self,
        waves: int = 1,
        check_s: float = 5.0,
        when: When = "always",
        reduces: Reduces = "last",
    ) -> None:
        super().__init__()
        self.waves = whole("waves", waves, 1)
        self.check_s = above_zero("check_s", check_s)
        self.when: When = one_of("when", when, ("always", "pays"))
        self.reduces: Reduces = one_of("reduces", reduces, ("last", "early"))
        self._rings: dict[str, Ring] = {}
        self._company = Company()

    def fork(self) -> Self:
        twin = super().fork()
        twin._rings = {table: ring.fork() for table, ring in self._rings.items()}
        twin._company = self._company.fork()
        return twin

    def attach(self, state: State) -> None:
        super().attach(state)
        self._rings = {}
        self._company = Company()

    def take_over(self, before: Self, state: State) -> None:
        self._company.take_over(before._company)

    def _shares(self, table: str, state: State) -> bool:
        return self.when == "always" or self._company.pays(table, state)

    def circle(self, job: JobState, state: State) -> str:
        table = job.spec.scans[0]
        return table if self._shares(table, state) else ""

    def ready(self, job: JobState, state: State) -> list[JobState]:
        table = job.spec.scans[0]
        self._company.came(job)
        if job.map is None or not job.map.pending or not reads_whole_table(job, state):
            return []
        if self.when == "always" or table in self._rings:
            return self._join(job, state)
        if not self._company.pays(table, state):
            return []
        # From now on it pays: also jobs that have read for themselves so far ride along.
        changed = []
        for job_id in self._company.jobs[table]:
            other = state.jobs.get(job_id)
            if other is None or other.map is None or not other.map.pending:
                continue
            if other.query.stage != "ending" and reads_whole_table(other, state):
                changed += self._join(other, state)
        return changed

    def _join(self, job: JobState, state: State) -> list[JobState]:
        table = job.spec.scans[0]
        ring = self._rings.get(table)
        if ring is None:
            ring = self._rings[table] = Ring(job.scanned[0][0])
        elif ring.table is not job.scanned[0][0]:
            return []  # the table has changed since the ring began to turn
        ring.jobs[job.id] = None
        changed = hold([job], ring.scan is not None)
        if self.reduces == "early" and state.settings.folds and job.reduce is not None:
            job.folds_early = True
            changed = [job]
        return changed

    def _ring_of(self, job: JobState) -> Ring | None:
        ring = self._rings.get(job.spec.scans[0])
        return ring if ring is not None and job.id in ring.jobs else None

    def _scan_for(self, job: JobState, state: State) -> MergedScan | None:
        ring = self._ring_of(job)
        if ring is None:
            return None
        if ring.scan is None:
            if not self._shares(job.spec.scans[0], state):
                self._dissolve(job.spec.scans[0])
                return None
            free = sum(node.free for node in state.nodes.values() if not node.draining)
            most = self.waves * max(1, free)
            first, stop, riders = ring.next_segment(job, most, self._again, state)
            table = job.spec.scans[0]
            ring.scan = MergedScan(job, self._new_round(table), riders, first, stop)
            ring.position = stop % ring.blocks
            ring.opened_s = state.now
        ring.running += 1
        ring.launched_s = state.now
        ring.check_s = state.now + self.check_s
        return ring.scan

    def _dissolve(self, table: str) -> None:
        """Between two rounds, when no job is held back: from now on each reads for itself."""
        for job_id in self._rings.pop(table).jobs:
            self._again.pop(job_id, None)

    def launched(self, job: JobState, state: State) -> list[JobState]:
        ring = self._ring_of(job)
        if ring is None or ring.scan is None:
            return []
        scan = ring.scan
        if 0 < scan.unread < len(scan.read) - 1 and job.id in scan.riders:
            return []  # neither the first nor the last block of the round
        return self._settle(job.spec.scans[0], state)

    def ended(self, run: Launch, state: State) -> list[JobState]:
        if run.tasks[0].kind != MAP:
            return []  # a fold of a round that is over
        table = run.round.rpartition("#")[0]
        ring = self._rings.get(table)
        if ring is None or ring.scan is None or ring.scan.round != run.round:
            return []  # of a round that is over
        ring.running -= 1
        return [] if ring.running or ring.scan.unread else self._settle(table, state)

    def returned(self, job: JobState, index: int, state: State) -> list[JobState]:
        if self._ring_of(job) is None:
            return []
        self._read_again(job, index)
        return hold([job], False)

    def left(self, job: JobState, state: State) -> list[JobState]:
        self._again.pop(job.id, None)
        self._company.left(job)
        ring = self._ring_of(job)
        if ring is None:
            return []
        del ring.jobs[job.id]
        if ring.scan is not None and job.id in ring.scan.riders:
            ring.scan.riders.remove(job.id)
            if not ring.scan.riders:
                ring.scan.unread = 0  # no job needs the rest of it
        return self._settle(job.spec.scans[0], state)

    def _settle(self, table: str, state: State) -> list[JobState]:
        """Turn the ring if the round is over; hold back jobs that cannot ride, let others go."""
        ring = self._rings[table]
        changed: list[JobState] = []
        if ring.all_launched and not ring.running:
            if ring.scan is not None and self.reduces == "early":
                changed += open_folds(ring, ring.scan, state)
            ring.close_round(state.now)
        scan = ring.scan
        riders = set(scan.riders) if scan is not None and scan.unread else set()
        for job_id in list(ring.jobs):
            job = state.jobs.get(job_id)
            if job is None or job.map is None:
                continue  # its end is noted in a moment
            again = len(self._again.get(job_id, ()))
            if job.map.pending == again:
                # It has been all around the ring; what failed on the way it reads alone.
                del ring.jobs[job_id]
                self._again.pop(job_id, None)
                changed += hold([job], False)
                if job.folds_early:
                    # Its last reduces may start; they do what was not folded.
                    job.folds_early, job.folds = False, 0
                    changed.append(job)
            else:
                changed += hold([job], scan is not None and not again and job_id not in riders)
        if not ring.jobs:
            del self._rings[table]
        return changed

    def companions(self, job: JobState, state: State) -> tuple[str, ...]:
        ring = self._ring_of(job) if job.spec.scans and job.map is not None else None
        others = ring.jobs if ring is not None else ()
        return tuple(
            other.query.id
            for job_id in others
            if (other := state.jobs.get(job_id)) is not None and other.query is not job.query
        )

    def scanned_s(self, job: JobState, state: State) -> float | None:
        ring = self._ring_of(job) if job.spec.scans and job.map is not None else None
        return None if ring is None else ring.scanned_s(job, state)

    def wake_s(self, state: State) -> float | None:
        if not self._rings:
            return None
        waiting = [ring.check_s for ring in self._rings.values() if ring.all_launched]
        return min(waiting, default=None)

    def released(self, state: State) -> list[JobState]:
        changed = []
        for table, ring in list(self._rings.items()):
            if not ring.all_launched or ring.check_s > state.now:
                continue
            ring.check_s = state.now + self.check_s
            if ring.is_late(state) and any(node.free for node in state.nodes.values()):
                ring.running = 0  # what still runs is left to itself
                changed += self._settle(table, state)
        return changed

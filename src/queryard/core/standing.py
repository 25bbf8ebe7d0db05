"""Which job stands in which ranking: what it could use a slot for, kept up to date.

Work is ranked in lanes (see `SlotSplit`), which say what may stand in them.
"""

from __future__ import annotations

from collections.abc import Iterable

from .entities import JobState
from .lifecycle import DONE, PENDING
from .parts import SlotSplit
from .phases import PhaseState
from .policy import Policy
from .ranks import PoolTree
from .state import State


class Standing:
    """The pool tree with the rule that says where a job belongs in it."""

    def __init__(self, state: State, policy: Policy, split: SlotSplit, tree: PoolTree) -> None:
        self.state = state
        self.tree = tree
        self.split = split
        # Whether a job can use a slot that could not before.
        self.has_new_candidates = True
        # Whether it mattered when the rankings were filled which host a slot is of.
        self.apart = state.apart
        one = split.lanes == 1
        self._restricts_lanes = split.restricts_lanes
        self._notes_jobs = not one
        self._slow_start = state.settings.slow_start < 1
        # Whether rankings depend on every task that is launched, or that ends, or only on
        # phases that turn.
        changes = {change for order in policy.pools.orders for change in order.changes_with}
        self.every_launch = not one or "slots" in changes
        # Whether they depend on slots that move on trial, or on the time.
        self._notes_trials = not one or not changes.isdisjoint({"slots", "leased", "time"})
        state.notes.every_task = self.every_launch or self._slow_start or "work" in changes

    def usable_lanes(self, job: JobState) -> int:
        """The lanes, as bits, in which a job could use a slot now."""
        if job.blockers or job.done or not self.state.may_use_slots(job.query):
            return 0
        maps = job.map
        if maps is None:
            if job.slots >= job.width or job.slots >= job.fit or job.finishing or job.restarting:
                return 0
            return self.split.lease_bits
        lanes = 0
        if maps.counts[PENDING] and not job.held_back:
            lanes = self._suiting(job, maps, self.split.map_bits)
        if job.reduce is not None:
            if not job.reduce.left:
                return 0  # maps that a lost node took away are needed no more
            if self.can_reduce(job):
                lanes |= self._suiting(job, job.reduce, self.split.reduce_bits)
        return lanes

    def _suiting(self, job: JobState, phase: PhaseState, bits: int) -> int:
        """Of some lanes, those that tasks of a phase may stand in."""
        if not self._restricts_lanes:
            return bits
        lanes = (lane for lane in range(self.tree.lanes) if bits >> lane & 1)
        return sum(1 << lane for lane in lanes if self.split.suits(job, phase, lane))

    def can_reduce(self, job: JobState) -> bool:
        """Whether a reduce may start: maps are done, or enough of them with slow start, or it may
        fold what a round has left.
        """
        reduces, maps = job.reduce, job.map
        if reduces is None or maps is None or not reduces.counts[PENDING]:
            return False
        if job.folds:
            return True
        if job.folding:
            return False
        done, tasks = maps.counts[DONE], maps.spec.tasks
        if done == tasks:
            return True
        if job.folds_early:
            return False
        slow_start = self.state.settings.slow_start
        return slow_start < 1 and done >= slow_start * tasks and not job.barred

    def refresh(self, job: JobState) -> None:
        """Bring the rankings up to date with what a job can use now."""
        self._rank(job)
        self._note(job)

    def shift(self, job: JobState) -> None:
        """The same after slots of the job have moved on trial: its work has not changed."""
        self._rank(job)
        if self._notes_trials:
            self._note(job)

    def _rank(self, job: JobState) -> None:
        lanes = self.usable_lanes(job)
        if lanes != job.lanes:
            self._move(job, lanes)
        elif lanes and job.stays and self.state.apart:
            self.place(job)

    def place(self, job: JobState) -> None:
        """A job is bound to a host, or is so no more: it stands among those of that host."""
        leaf = self.tree.pools[job.query.pool]
        candidate = job if leaf.by_job else job.query
        for lane in range(self.tree.lanes):
            if job.lanes >> lane & 1 and self.tree.place(leaf, lane, candidate, self.state):
                self.has_new_candidates = True

    def touch_all(self, jobs: Iterable[JobState]) -> None:
        """A task of each job ended: its reduces may start, or others be expected to be longer."""
        note = self.refresh if self._slow_start or self._restricts_lanes else self._note
        for job in jobs:
            note(job)

    def launched(self, job: JobState) -> None:
        """A task of the job was launched, and others of it wait."""
        if self._notes_jobs:
            self.split.note(job, self.state)
        leaf = self.tree.pools[job.query.pool]
        if leaf.by_slots:
            self.tree.rekey(leaf, job if leaf.by_job else job.query, self.state)

    def _note(self, job: JobState) -> None:
        if self._notes_jobs:
            self.split.note(job, self.state)
        leaf = self.tree.pools[job.query.pool]
        if leaf.rekeys:
            self.tree.rekey(leaf, job if leaf.by_job else job.query, self.state)

    def refresh_all(self, jobs: Iterable[JobState]) -> None:
        for job in jobs:
            self.refresh(job)

    def _move(self, job: JobState, lanes: int) -> None:
        query = job.query
        tree = self.tree
        leaf = tree.pools[query.pool]
        changed = lanes ^ job.lanes
        job.lanes = lanes
        for lane in range(tree.lanes):
            bit = 1 << lane
            if not changed & bit:
                continue
            jobs = query.runnable[lane]
            leaf.lanes[lane].changes += 1
            if lanes & bit:
                self.has_new_candidates = True
                jobs.append(job)
                if leaf.by_job:
                    tree.put(leaf, lane, job, self.state)
                elif len(jobs) == 1:
                    tree.put(leaf, lane, query, self.state)
                elif self.state.apart:
                    tree.place(leaf, lane, query, self.state)
            else:
                jobs.remove(job)
                if leaf.by_job:
                    tree.drop(leaf, lane, job)
                elif not jobs:
                    tree.drop(leaf, lane, query)
                elif self.state.apart:
                    tree.place(leaf, lane, query, self.state)

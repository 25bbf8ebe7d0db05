"""What the kernel remembers of a job and a query while they are active.

Objects here are plain and mutable; `State` alone changes them. Each has a `fork`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from .failed_at import FailedAt
from .lifecycle import DONE, QueryStage
from .model import MAP, REDUCE, Job, Query, Table
from .phases import PhaseState
from .speedup import PERFECT, Speedup

# The `fit` of a job without one.
NO_LIMIT = sys.maxsize


@dataclass(frozen=True, slots=True)
class Answer:
    """What an online job reported after a mini-batch, `progress` normalised as ReLAQS asks.

    `left` is the share of the first answer's error that is expected to be left, where it is known.
    Since the answer before it the job has held slots for `wall_s`, `slots` of them on average.
    """

    batch: int
    change: float
    progress: float
    core_s: float
    error: float | None = None
    wall_s: float = 0.0
    slots: float = 0.0
    left: float | None = None


class JobState:
    """A job of an active query: its phases or its leases, and what is expected of them."""

    __slots__ = (
        "answers",
        "barred",
        "begun",
        "blockers",
        "circle",
        "depth",
        "done",
        "done_share",
        "downstream",
        "failed_at",
        "failures",
        "finishing",
        "fit",
        "fold_round",
        "folding",
        "folds",
        "folds_early",
        "held_back",
        "held_s",
        "host",
        "id",
        "lanes",
        "lease_began_s",
        "leased_s",
        "leased_since_s",
        "leases",
        "level_s",
        "losses",
        "make_s",
        "map",
        "map_guessed",
        "map_known",
        "map_s",
        "query",
        "queued_s",
        "ready_s",
        "reduce",
        "reduce_guessed",
        "reduce_known",
        "reduce_s",
        "restarting",
        "ride_s",
        "scanned",
        "slots",
        "spec",
        "speedup",
        "stays",
        "tail_work_s",
        "uid",
        "width",
        "work_known",
        "work_s",
    )

    def __init__(self, uid: int, query: QueryState, spec: Job) -> None:
        self.uid = uid
        self.id = query.spec.job_id(spec.name)
        self.spec = spec
        self.query = query
        self.map = PhaseState(MAP, spec.map) if spec.map else None
        self.reduce = PhaseState(REDUCE, spec.reduce) if spec.reduce else None
        self.blockers = len(spec.upstream)
        self.downstream: list[JobState] = []
        self.done = False
        # How many slots work on it now, tasks and leases together.
        self.slots = 0
        # Rankings the job stands in, by lane (see `ranks`).
        self.lanes = 0
        self.ready_s = 0.0
        # The tables it scans as they were when it was submitted, each with the splits that
        # prefer a node; a table that changes later does not change the job.
        self.scanned: tuple[tuple[Table, Mapping[str, tuple[int, ...]]], ...] = ()
        # Set by the scan-sharing part: its maps must wait for a round or a batch.
        self.held_back = False
        # Set by the scan-sharing part: its reduces do not start while maps are pending, but fold
        # what a merged sub-job has left. How many are to be launched for that now, for which
        # round, and how many run. A reduce that has folded is pending again.
        self.folds_early = False
        self.folds = 0
        self.fold_round = ""
        self.folding = 0
        # Set when waiting reduces were killed to make room for its own maps.
        self.barred = False
        self.map_s = 0.0
        self.reduce_s = 0.0
        self.work_s = 0.0
        # Parsing and keeping, and riding on what was kept, in the unit of `map_s` or `work_s`;
        # None where it is not known.
        self.make_s: float | None = None
        self.ride_s: float | None = None
        # Whether there is an estimate of it, or nothing whatever was known when it was submitted.
        self.map_known = False
        self.map_guessed = False
        self.reduce_guessed = False
        self.reduce_known = False
        self.work_known = False
        self.depth = 0
        self.level_s = 0.0
        self.tail_work_s = 0.0
        # How many slots it can use if it is divisible; the driver may say otherwise on the way.
        self.width = spec.divisible.width if spec.divisible else 0
        # How much faster it gets with more slots, as far as is known; and how many it is to have,
        # while slots are given out (see `share_out`).
        self.speedup: Speedup = PERFECT
        self.fit = NO_LIMIT
        # node -> [held, revoking]
        self.leases: dict[str, list[int]] = {}
        # Since when it waits for slots, if it is divisible, and since when it has some.
        self.queued_s = query.submit_s if spec.divisible else None
        self.lease_began_s: float | None = None
        self.done_share = 0.0
        # Whether it stays, if it is divisible, on the host on which it has started; and that host.
        self.stays = False
        self.host = ""
        # Whether slots have worked on it, if it is divisible.
        self.begun = False
        # The shared scan on which it rides, if it is divisible; "" if it parses for itself.
        self.circle = ""
        # Its work is complete, but not all of its slots are back.
        self.finishing = False
        # Its work is lost and will be begun again when all of its slots are back; and how often
        # that was its own fault.
        self.restarting = False
        self.failures = 0
        # The hosts at which it has failed, and may not elsewhere.
        self.failed_at: FailedAt | None = None
        # How often the host was lost on which it had started.
        self.losses = 0
        self.answers: list[Answer] = []
        # Since its last answer: seconds with slots, and slot-seconds; up to when they count.
        self.held_s = 0.0
        self.leased_s = 0.0
        self.leased_since_s = 0.0

    @property
    def ready(self) -> bool:
        return self.blockers == 0 and not self.done

    @property
    def is_stalled(self) -> bool:
        """Whether it is divisible and, for now, can use no slots at all."""
        return self.map is None and not (self.width or self.done or self.finishing)

    @property
    def is_untouched(self) -> bool:
        """Whether nothing of it has been done, or all of that was lost."""
        if self.done or self.slots or self.begun:
            return False
        return all(p.done == 0 for p in (self.map, self.reduce) if p is not None)

    @property
    def left_s(self) -> float:
        """Expected core-seconds without a result yet (the job's WRD)."""
        if self.done:
            return 0.0
        if self.map is None:
            return self.work_s * (1.0 - self.done_share)
        left = self.map.left * self.map_s
        return left if self.reduce is None else left + self.reduce.left * self.reduce_s

    @property
    def total_s(self) -> float:
        """Expected core-seconds of the whole job."""
        if self.spec.map is None:
            return self.work_s
        total = self.spec.map.tasks * self.map_s
        return total + (self.spec.reduce.tasks * self.reduce_s if self.spec.reduce else 0.0)

    @property
    def maps_done(self) -> bool:
        return self.map is None or self.map.counts[DONE] == self.map.spec.tasks

    def fork(self, query: QueryState) -> JobState:
        copy = JobState.__new__(JobState)
        copy.uid = self.uid
        copy.id = self.id
        copy.spec = self.spec
        copy.query = query
        copy.map = self.map.fork() if self.map else None
        copy.reduce = self.reduce.fork() if self.reduce else None
        copy.blockers = self.blockers
        copy.downstream = []
        copy.done = self.done
        copy.slots = self.slots
        copy.lanes = self.lanes
        copy.ready_s = self.ready_s
        copy.scanned = self.scanned
        copy.held_back = self.held_back
        copy.folds_early = self.folds_early
        copy.folds = self.folds
        copy.fold_round = self.fold_round
        copy.folding = self.folding
        copy.barred = self.barred
        copy.map_s = self.map_s
        copy.reduce_s = self.reduce_s
        copy.work_s = self.work_s
        copy.make_s = self.make_s
        copy.ride_s = self.ride_s
        copy.map_known = self.map_known
        copy.map_guessed = self.map_guessed
        copy.reduce_guessed = self.reduce_guessed
        copy.reduce_known = self.reduce_known
        copy.work_known = self.work_known
        copy.depth = self.depth
        copy.level_s = self.level_s
        copy.tail_work_s = self.tail_work_s
        copy.width = self.width
        copy.speedup = self.speedup
        copy.fit = self.fit
        copy.leases = {n: lease.copy() for n, lease in self.leases.items()} if self.leases else {}
        copy.queued_s = self.queued_s
        copy.lease_began_s = self.lease_began_s
        copy.done_share = self.done_share
        copy.stays = self.stays
        copy.host = self.host
        copy.begun = self.begun
        copy.circle = self.circle
        copy.finishing = self.finishing
        copy.restarting = self.restarting
        copy.failures = self.failures
        copy.failed_at = self.failed_at
        copy.losses = self.losses
        copy.answers = self.answers  # replaced as a whole, never changed
        copy.held_s = self.held_s
        copy.leased_s = self.leased_s
        copy.leased_since_s = self.leased_since_s
        return copy


class QueryState:
    """An active query: its jobs, its stage, its slots and what is left of its work."""

    __slots__ = (
        "alone_s",
        "cause",
        "deadline",
        "id",
        "jobs",
        "lease_began_s",
        "left_s",
        "memory_bytes",
        "open_jobs",
        "pool",
        "queued_s",
        "runnable",
        "slots",
        "spec",
        "stage",
        "started_s",
        "submit_s",
        "total_s",
        "uid",
    )

    def __init__(self, uid: int, spec: Query, submit_s: float) -> None:
        self.uid = uid
        self.id = spec.id
        self.spec = spec
        self.submit_s = submit_s
        self.deadline = spec.deadline_s
        # What it reserves when it starts; the driver may say otherwise on the way.
        self.memory_bytes = spec.memory_bytes
        self.jobs: list[JobState] = []
        self.open_jobs = len(spec.jobs)
        self.stage: QueryStage = "waiting"
        self.cause = ""
        self.started_s: float | None = None
        self.slots = 0
        # As of its jobs: the first to wait, and the first to have slots.
        self.queued_s = submit_s if any(job.divisible for job in spec.jobs) else None
        self.lease_began_s: float | None = None
        self.left_s = 0.0
        self.total_s = 0.0
        self.alone_s = 0.0
        # Index of its leaf in the pool tree, and its runnable jobs by lane.
        self.pool = -1
        self.runnable: tuple[list[JobState], ...] = ()

    @property
    def query(self) -> QueryState:
        """So that a query and a job can both be candidates of an order."""
        return self

    @property
    def is_of_one_host(self) -> bool:
        """Whether all its memory is needed where its one divisible job runs."""
        return len(self.jobs) == 1 and self.jobs[0].stays

    @property
    def alone_left_s(self) -> float:
        """What it would still take with all slots to itself."""
        return self.alone_s * self.left_s / self.total_s if self.total_s else 0.0

    def fork(self) -> QueryState:
        copy = QueryState.__new__(QueryState)
        copy.uid = self.uid
        copy.id = self.id
        copy.spec = self.spec
        copy.submit_s = self.submit_s
        copy.deadline = self.deadline
        copy.memory_bytes = self.memory_bytes
        copy.open_jobs = self.open_jobs
        copy.stage = self.stage
        copy.cause = self.cause
        copy.started_s = self.started_s
        copy.slots = self.slots
        copy.queued_s = self.queued_s
        copy.lease_began_s = self.lease_began_s
        copy.left_s = self.left_s
        copy.total_s = self.total_s
        copy.alone_s = self.alone_s
        copy.pool = self.pool
        if len(self.jobs) == 1:
            job = self.jobs[0].fork(copy)
            copy.jobs = [job]
            copy.runnable = tuple([job] if jobs else [] for jobs in self.runnable)
            return copy
        twins = {job.uid: job.fork(copy) for job in self.jobs}
        copy.jobs = list(twins.values())
        for job in self.jobs:
            twins[job.uid].downstream = [twins[down.uid] for down in job.downstream]
        copy.runnable = tuple([twins[job.uid] for job in jobs] for jobs in self.runnable)
        return copy


# What a query order ranks: whole queries, or jobs one by one as Hadoop does.
Candidate = QueryState | JobState

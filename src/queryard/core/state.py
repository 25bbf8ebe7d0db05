"""The cluster's state: `changes.apply` changes it, `fork()` copies it, nothing else does either.

Besides the facts, the state keeps notes of what an instant changed (`Notes`), so that the
scheduler can bring its rankings up to date without looking at everything again.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from .commands import Launch
from .entities import JobState, QueryState
from .errors import InvalidModel, unknown_name
from .events import PolicyChosen
from .means import Mean, Typical, pooled_mean
from .model import MAP, SPANS, Kind, Span, Table
from .nodes import Host, NodeState

# A query is small if it needs no more than this part of what is kept for small ones.
SMALL_PARTS = 3
# Parts of hosts add up to the whole but for this.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Settings:
    """What a kernel is started with; part of the journal, so that a run can be replayed."""

    # The share of a job's maps that must be done before its reduces may start.
    slow_start: float = 1.0
    # How often one task may fail before its query fails.
    max_attempts: int = 4
    # At how many lost nodes one task, or one divisible job, was before its query fails: it may be
    # why they were lost. 0 for any number, as where losses are drawn by chance.
    max_losses: int = 0
    # How often, at most, orders that change with time are refreshed.
    tick_s: float = 1.0
    seed: int = 0
    # Across what the slots of one divisible job may lie at most (see `Divisible`); "cluster" in
    # journals from before jobs said so themselves.
    lease_span: Span = "host"
    # Whether the driver can run reduces early, over what one merged sub-job has left (see
    # `JobState.folds`); they run again over the rest.
    folds: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.slow_start <= 1:
            raise InvalidModel(f"slow_start must lie between 0 and 1, got {self.slow_start!r}")
        if not self.tick_s >= 0:
            raise InvalidModel(f"tick_s must be at least 0, got {self.tick_s!r}")
        if self.max_attempts < 1:
            raise InvalidModel(f"max_attempts must be at least 1, got {self.max_attempts!r}")
        if self.max_losses < 0:
            raise InvalidModel(f"max_losses must be at least 0, got {self.max_losses!r}")
        if self.lease_span not in SPANS:
            raise InvalidModel(unknown_name("lease_span", self.lease_span, SPANS))


class Notes:
    """What the events of an instant changed."""

    __slots__ = (
        "avoided",
        "capacity",
        "ended",
        "ended_leases",
        "ended_runs",
        "every_run",
        "every_task",
        "freed",
        "kills",
        "lease_cuts",
        "left_over",
        "policy",
        "rare",
        "readied",
        "regated",
        "returned",
        "served",
        "submitted",
        "touched",
        "woke",
    )

    def __init__(self) -> None:
        self.touched: list[JobState] = []
        # Jobs of which a task ended, where the policy looks at each of them.
        self.served: list[JobState] = []
        self.freed: list[NodeState] = []
        self.submitted: list[QueryState] = []
        self.readied: list[JobState] = []
        self.ended: list[QueryState] = []
        self.ended_runs: list[Launch] = []
        # Waiting queries that need other amounts of memory than before.
        self.regated: list[QueryState] = []
        # (leaf, slots) of leases that came back.
        self.ended_leases: list[tuple[int, int]] = []
        # Map tasks that must run again.
        self.returned: list[tuple[JobState, int]] = []
        self.kills: list[int] = []
        # Jobs that may hold more slots than they can use: their queries end, or they narrowed.
        self.lease_cuts: list[JobState] = []
        # Jobs that are done although some of their maps, lost with a node, are not.
        self.left_over: list[JobState] = []
        self.policy: PolicyChosen | None = None
        # Whether anything but the end of tasks was noted.
        self.rare = False
        # Whether rankings depend on each task that ends, or only on phases that turn.
        self.every_task = True
        # Whether the launches that ended are looked at.
        self.every_run = True
        # Work failed that is to run elsewhere for a while.
        self.avoided = False
        # Slots or memory came or went, so that shares and admissions must be seen anew.
        self.capacity = False
        self.woke = False


class State:
    """All facts known to the kernel at `now`."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.random = random.Random(self.settings.seed)
        self.now = 0.0
        self.nodes: dict[str, NodeState] = {}
        self.tables: dict[str, Table] = {}
        # Table -> node -> the splits that prefer the node.
        self.local_splits: dict[str, dict[str, tuple[int, ...]]] = {}
        # Table -> the share of it that is kept parsed, where that is not 0.
        self.kept: dict[str, float] = {}
        self.queries: dict[str, QueryState] = {}
        self.jobs: dict[str, JobState] = {}
        self.running: dict[int, Launch] = {}
        self.killed: set[int] = set()
        # Launches of one task that run at once, each with the other one (see `speculation`).
        self.twins: dict[int, int] = {}
        # Launches whose task another one has done: they hold a slot until they have stopped, and
        # belong to no query any more.
        self.beaten: dict[int, Launch] = {}
        self.leaseholders: dict[str, JobState] = {}
        # Jobs that are known to get less out of the second slot than out of the first.
        self.curved: dict[str, JobState] = {}
        # Jobs of which maps run again, since their outputs were lost: reduces may wait for them.
        self.remaking: dict[str, JobState] = {}
        self.keys: dict[str, str] = {}
        self.class_means: dict[tuple[str, str, Kind], Mean] = {}
        # What queries that were completed took alone, by their last estimates.
        self.alone_s = Typical()
        # How often nodes came, went, or began or ceased to drain.
        self.resizes = 0
        # Of nodes that take work, and the nodes that do no longer.
        self.total_slots = 0
        # The most that a divisible job can use which stays on one host.
        self.host_slots = 0
        self.draining: tuple[NodeState, ...] = ()
        self.hosts: dict[str, Host] = {}
        # Whether it matters on which host a divisible job has started: there are several, or
        # the only one is drained.
        self.apart = False
        # Whether nodes differ in speed.
        self.uneven = False
        self.memory_bytes = 0.0
        # How much of it is for small queries only.
        self.kept_bytes = 0.0
        # The most memory there has been: nodes that were lost may come back.
        self.most_memory_bytes = 0.0
        # The most memory a single host has had, where divisible jobs are bound to one.
        self.most_host_bytes = 0.0
        # What started queries hold, by query, and in all.
        self.reservations: dict[str, float] = {}
        self.reserved_bytes = 0.0
        # On whose word no waiting query starts; None while queries start.
        self.paused_by: str | None = None
        self.next_uid = 0
        self.next_launch = 0
        self.notes = Notes()

    def may_use_slots(self, query: QueryState) -> bool:
        """Whether a query may be given slots: it runs, or it waits and queries may start."""
        if query.stage == "waiting":
            return self.paused_by is None
        return query.stage == "running"

    def observed_s(self, kind: Kind) -> float | None:
        """The observed mean task time over the whole cluster."""
        nodes = self.nodes.values()
        if kind == MAP:
            return pooled_mean([node.map_mean for node in nodes])
        return pooled_mean([node.reduce_mean for node in nodes])

    @property
    def busy_slots(self) -> int:
        return sum(node.spec.slots - node.free for node in self.nodes.values())

    def fits(self, query: QueryState, beside: QueryState | None = None, host: str = "") -> bool:
        """Whether the memory of a query can be reserved now, and that of another one beside it.

        If the query lives on one host, it must fit on the one given, or else on some host. Others
        use all hosts, in proportion to their memory, and must fit on each.
        """
        beside_bytes = 0.0 if beside is None else beside.memory_bytes
        wanted = self.reserved_bytes + query.memory_bytes + beside_bytes
        if wanted + self.spared_bytes(query) > self.memory_bytes:
            return False
        if not self.apart or (self.memory_bytes == math.inf and not query.is_of_one_host):
            return True
        bound, spread_bytes = self._held_by_host()
        if not query.is_of_one_host:
            spread_bytes += query.memory_bytes
            if beside is None or not beside.is_of_one_host:
                spread_bytes += beside_bytes
                return all(self._holds(name, held, spread_bytes) for name, held in bound.items())
            full = [name for name in bound if not self._holds(name, bound[name], spread_bytes)]
            # The other one must find room on one host, beside its part of this one.
            return not full and any(
                self._holds(name, bound.get(name, 0.0) + beside_bytes, spread_bytes)
                for name in self.hosts
            )
        if beside is not None and not beside.is_of_one_host:
            spread_bytes, beside_bytes = spread_bytes + beside_bytes, 0.0
        hosts = (host,) if host else tuple(self.hosts)
        return any(
            self._fits_on(name, query, bound.get(name, 0.0) + beside_bytes, spread_bytes)
            for name in hosts
        )

    def _held_by_host(self) -> tuple[dict[str, float], float]:
        """What queries of one host have reserved, by host; and what all others have."""
        bound: dict[str, float] = {}
        spread_bytes = 0.0
        for name, held in self.reservations.items():
            other = self.queries[name]
            if not other.is_of_one_host:
                spread_bytes += held
            elif home := other.jobs[0].host:
                bound[home] = bound.get(home, 0.0) + held
        return bound, spread_bytes

    def part_of(self, host: str) -> float:
        """The part of a host in memory that is reserved on all hosts."""
        memory_bytes = self.hosts[host].memory_bytes
        if not self.memory_bytes or memory_bytes == math.inf:
            return 0.0  # nothing is there, or there is room for everything
        return memory_bytes / self.memory_bytes

    def _holds(self, host: str, bound_bytes: float, spread_bytes: float) -> bool:
        if host not in self.hosts:
            return True
        wanted = bound_bytes + spread_bytes * self.part_of(host)
        return wanted <= self.hosts[host].memory_bytes * (1 + ROUNDING)

    def _fits_on(
        self, host: str, query: QueryState, bound_bytes: float, spread_bytes: float
    ) -> bool:
        _, _, memory_bytes, kept_bytes = self.hosts[host]
        wanted = bound_bytes + query.memory_bytes
        spares = kept_bytes and not self.is_small(query.memory_bytes)
        if spares and query.memory_bytes + kept_bytes <= memory_bytes:
            small = [
                part
                for name, part in self.reservations.items()
                if self.is_small(part)
                and (other := self.queries[name]).is_of_one_host
                and other.jobs[0].host == host
            ]
            wanted += max(0.0, kept_bytes - math.fsum(small))
        return self._holds(host, wanted, spread_bytes)

    def room_bytes(self, query: QueryState) -> float:
        """What a query could reserve at most, if nothing else held any memory."""
        if self.apart and query.is_of_one_host:
            return max((host.memory_bytes for host in self.hosts.values()), default=0.0)
        return self.memory_bytes

    def spared_bytes(self, query: QueryState) -> float:
        """What a query must leave to small ones."""
        return max(0.0, self.kept_bytes - self.small_bytes) if self.spares(query) else 0.0

    def spares(self, query: QueryState) -> bool:
        """Whether a query must leave something to small ones, and can."""
        if not self.kept_bytes or self.is_small(query.memory_bytes):
            return False
        return query.memory_bytes + self.kept_bytes <= self.memory_bytes

    def is_small(self, memory_bytes: float) -> bool:
        """Whether memory is kept for queries that need no more than this."""
        return memory_bytes <= self.most_small_bytes

    @property
    def most_small_bytes(self) -> float:
        """What a small query needs at most."""
        return self.kept_bytes / SMALL_PARTS

    @property
    def small_bytes(self) -> float:
        """What small queries have reserved."""
        return math.fsum(held for held in self.reservations.values() if self.is_small(held))

    def new_uid(self) -> int:
        self.next_uid += 1
        return self.next_uid

    def fork(self) -> State:
        """An independent copy; what never changes is shared."""
        copy = State.__new__(State)
        copy.settings = self.settings
        copy.random = random.Random()
        copy.random.setstate(self.random.getstate())
        copy.now = self.now
        copy.nodes = {name: node.fork() for name, node in self.nodes.items()}
        copy.tables = self.tables.copy()
        copy.local_splits = self.local_splits.copy()
        copy.kept = self.kept.copy()
        copy.queries = {name: query.fork() for name, query in self.queries.items()}
        copy.jobs = {job.id: job for query in copy.queries.values() for job in query.jobs}
        copy.running = self.running.copy()
        copy.killed = self.killed.copy()
        copy.twins = self.twins.copy()
        copy.beaten = self.beaten.copy()
        copy.leaseholders = {job_id: copy.jobs[job_id] for job_id in self.leaseholders}
        copy.curved = {job_id: copy.jobs[job_id] for job_id in self.curved}
        copy.remaking = {job_id: copy.jobs[job_id] for job_id in self.remaking}
        copy.keys = self.keys.copy()
        copy.class_means = {key: mean.fork() for key, mean in self.class_means.items()}
        copy.alone_s = self.alone_s.fork()
        copy.resizes = self.resizes
        copy.total_slots = self.total_slots
        copy.host_slots = self.host_slots
        copy.draining = tuple(copy.nodes[node.id] for node in self.draining)
        copy.hosts = self.hosts.copy()
        copy.apart = self.apart
        copy.uneven = self.uneven
        copy.memory_bytes = self.memory_bytes
        copy.kept_bytes = self.kept_bytes
        copy.most_memory_bytes = self.most_memory_bytes
        copy.most_host_bytes = self.most_host_bytes
        copy.reservations = self.reservations.copy()
        copy.reserved_bytes = self.reserved_bytes
        copy.paused_by = self.paused_by
        copy.next_uid = self.next_uid
        copy.next_launch = self.next_launch
        copy.notes = Notes()
        copy.notes.every_task = self.notes.every_task
        copy.notes.every_run = self.notes.every_run
        return copy

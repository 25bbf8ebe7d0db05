"""The vocabulary: tenants, tables and splits, nodes, and queries made of a DAG of jobs.

Everything here is what a scheduler may know beforehand. How long things really take is not
part of the model: estimates arrive as events, and the truth lives in `queryard.sim`.

>>> q = Query("q1", jobs=(Job("scan", map=Phase(8)), Job("sum", upstream=("scan",), map=Phase(1))))
>>> [job.name for job in q.jobs]
['scan', 'sum']
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Literal, NamedTuple

from .errors import InvalidModel, unknown_name

Kind = Literal["map", "reduce"]
MAP: Kind = "map"
REDUCE: Kind = "reduce"
Operator = Literal["join", "groupby", "extract"]
OPERATORS = ("join", "groupby", "extract")
QueryKind = Literal["exact", "online"]
Span = Literal["host", "cluster"]
SPANS = ("host", "cluster")

UNBOUNDED = math.inf


class JobId(NamedTuple):
    """One job: its query, and its name there. Events, journals and rows hold its `str` form.

    >>> str(JobId("q7", "scan"))
    'q7/scan'
    >>> JobId.of("q7/scan")
    JobId(query='q7', name='scan')
    """

    query: str
    name: str

    @classmethod
    def of(cls, text: str) -> JobId:
        """Read the `str` form; neither part contains a slash."""
        query, _, name = text.partition("/")
        return cls(query, name)

    def __str__(self) -> str:
        return f"{self.query}/{self.name}"


class TaskId(NamedTuple):
    """One task: the job it belongs to, its kind and its place in the phase."""

    job: str
    kind: Kind
    index: int  # type: ignore[assignment]

    def __str__(self) -> str:
        return f"{self.job}:{self.kind[0]}{self.index}"


def _check_id(what: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise InvalidModel(f"{what} must be a non-empty string, got {value!r}")


def _check_at_least(what: str, value: object, least: float) -> None:
    """Reject anything that is not a number of at least `least` (NaN included)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= least:
        raise InvalidModel(f"{what} must be a number of at least {least:g}, got {value!r}")


def _check_count(what: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidModel(f"{what} must be a whole number of at least {least}, got {value!r}")


def _check_tenant(what: str, value: object) -> None:
    _check_id(what, value)
    if "" in str(value).split("/"):
        raise InvalidModel(f"{what} is a name or a path like 'sales/emea', got {value!r}")


@dataclass(frozen=True, slots=True)
class Tenant:
    """The owner of queries, and the part of the slots it may count on.

    A profile turns tenants into pools (`queryard.policies.for_tenants`): `weight` against the
    others, `guarantee` and `cap` as shares of all slots. A name may be a path: "sales/emea" has
    its part of what "sales" has.
    """

    name: str
    weight: float = 1.0
    guarantee: float = 0.0
    cap: float = 1.0

    def __post_init__(self) -> None:
        _check_tenant("tenant name", self.name)
        where = f"tenant {self.name!r}"
        if not 0 < self.weight < math.inf:
            raise InvalidModel(f"{where}: weight must be above 0, got {self.weight!r}")
        if not 0 <= self.guarantee <= self.cap <= 1 or not self.cap:
            raise InvalidModel(
                f"{where}: 0 <= guarantee <= cap <= 1 must hold and the cap be above 0, "
                f"got guarantee {self.guarantee!r} and cap {self.cap!r}"
            )


@dataclass(frozen=True, slots=True)
class Split:
    """A piece of a table that one map task reads, and the nodes that hold it."""

    bytes: float = 0.0
    nodes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_at_least("split bytes", self.bytes, 0)


@dataclass(frozen=True, slots=True)
class Table:
    """A named, ordered sequence of splits."""

    name: str
    splits: tuple[Split, ...]

    def __post_init__(self) -> None:
        _check_id("table name", self.name)

    @property
    def bytes(self) -> float:
        return sum(split.bytes for split in self.splits)


@dataclass(frozen=True, slots=True)
class Node:
    """A machine: how many slots it offers, its memory, and its speed relative to 1.

    Of the memory `kept_bytes` are for queries that need a third of that or less, so that a few
    large ones, which hold theirs while they are paused, do not keep all others from starting.
    Nodes of the same `host` share memory and DuckDB instances: a divisible job that has started on
    one of them can go on on the others, and nowhere else. By default a node is a host of its own.
    `places` are other names by which tables may say that their splits are there.
    """

    id: str
    slots: int
    memory_bytes: float = UNBOUNDED
    map_speed: float = 1.0
    reduce_speed: float = 1.0
    rack: str = ""
    kept_bytes: float = 0.0
    host: str = ""
    places: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_id("node id", self.id)
        _check_count(f"node {self.id!r}: slots", self.slots, 1)
        _check_at_least(f"node {self.id!r}: memory_bytes", self.memory_bytes, 0)
        _check_at_least(f"node {self.id!r}: kept_bytes", self.kept_bytes, 0)
        if self.kept_bytes > self.memory_bytes:
            raise InvalidModel(
                f"node {self.id!r}: kept_bytes {self.kept_bytes:g} are more than its memory_bytes "
                f"{self.memory_bytes:g}"
            )
        for name, speed in (("map_speed", self.map_speed), ("reduce_speed", self.reduce_speed)):
            if not 0 < speed < math.inf:
                raise InvalidModel(f"node {self.id!r}: {name} must be above 0, got {speed!r}")


@dataclass(frozen=True, slots=True)
class Phase:
    """`tasks` tasks of one kind; `sizes` only where their input bytes differ."""

    tasks: int
    bytes_per_task: float = 0.0
    sizes: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        _check_count("phase: tasks", self.tasks, 1)
        _check_at_least("phase: bytes_per_task", self.bytes_per_task, 0)
        for size in self.sizes:
            _check_at_least("phase: sizes", size, 0)
        if self.sizes and len(self.sizes) != self.tasks:
            raise InvalidModel(
                f"phase: {len(self.sizes)} sizes for {self.tasks} tasks; give one size per task"
            )

    def size_of(self, index: int) -> float:
        """Input bytes of one task."""
        return self.sizes[index] if self.sizes else self.bytes_per_task

    @property
    def bytes(self) -> float:
        return sum(self.sizes) if self.sizes else self.tasks * self.bytes_per_task


@dataclass(frozen=True, slots=True)
class Divisible:
    """Work that any number of slots up to `width` can serve under leases.

    An online-aggregation query runs in mini-`batches` and answers after each; where it is
    `nested`, a batch reworks the tuples of those before it, so that its work grows linearly.
    `span` says across what its slots may lie: one host, on which it stays once it has started
    (an instance of DuckDB cannot move), or the whole cluster (mini-batches as on Spark).
    """

    width: int
    batches: int = 1
    nested: bool = False
    span: Span = "host"

    def __post_init__(self) -> None:
        _check_count("divisible: width", self.width, 1)
        _check_count("divisible: batches", self.batches, 1)
        if self.span not in SPANS:
            raise InvalidModel(f"divisible: {unknown_name('span', self.span, SPANS)}")


@dataclass(frozen=True, slots=True)
class TableInput:
    """How many bytes of a table a job reads (what LoDFA shares)."""

    table: str
    bytes: float

    def __post_init__(self) -> None:
        _check_id("input table", self.table)
        _check_at_least(f"input {self.table!r}: bytes", self.bytes, 0)


@dataclass(frozen=True, slots=True)
class Job:
    """A stage of a query: map and reduce tasks, or divisible work.

    `scans` names the tables; their splits, one after another, are the inputs of the map tasks;
    it gives tasks their locality and lets them share scans. Divisible work may scan one table:
    its batches go round the splits in one circular order, and begin where others are. `inputs`
    says what the job reads in bytes and may stand alone where splits are not known. With
    `scans_alone` its scans only say where its splits are: no other job can ride on them.
    """

    name: str
    operator: Operator = "extract"
    upstream: tuple[str, ...] = ()
    inputs: tuple[TableInput, ...] = ()
    map: Phase | None = None
    reduce: Phase | None = None
    scans: tuple[str, ...] = ()
    divisible: Divisible | None = None
    scans_alone: bool = False

    def __post_init__(self) -> None:
        _check_id("job name", self.name)
        where = f"job {self.name!r}"
        if "/" in self.name:
            raise InvalidModel(f"{where}: the name may not contain '/'")
        if self.operator not in OPERATORS:
            raise InvalidModel(f"{where}: {unknown_name('operator', self.operator, OPERATORS)}")
        if self.divisible is None and self.map is None:
            raise InvalidModel(f"{where} has no work: give it a map phase or make it divisible")
        if self.divisible is not None and (self.map or self.reduce):
            raise InvalidModel(f"{where}: divisible work has no phases")
        if self.divisible is not None and len(self.scans) > 1:
            raise InvalidModel(
                f"{where}: divisible work scans one table at most, got {list(self.scans)}; name "
                "the largest, and give the others as inputs"
            )

    @property
    def maps(self) -> int:
        """How many map tasks it has."""
        return self.map.tasks if self.map else 0

    @property
    def reduces(self) -> int:
        """How many reduce tasks it has."""
        return self.reduce.tasks if self.reduce else 0


@dataclass(frozen=True, slots=True)
class Query:
    """A request: a DAG of jobs with its owner, urgency and needs."""

    id: str
    jobs: tuple[Job, ...]
    tenant: str = "default"
    priority: float = 0.0
    submit_s: float = 0.0
    deadline_s: float | None = None
    kind: QueryKind = "exact"
    class_name: str = ""
    memory_bytes: float = 0.0
    idempotency_key: str = ""
    target_error: float | None = None

    def __post_init__(self) -> None:
        _check_id("query id", self.id)
        where = f"query {self.id!r}"
        if "/" in self.id:
            raise InvalidModel(f"{where}: the id may not contain '/'")
        _check_tenant(f"{where}: tenant", self.tenant)
        _check_at_least(f"{where}: submit_s", self.submit_s, 0)
        _check_at_least(f"{where}: memory_bytes", self.memory_bytes, 0)
        if not math.isfinite(self.memory_bytes):
            raise InvalidModel(f"{where}: memory_bytes must be finite, got {self.memory_bytes!r}")
        if not math.isfinite(self.priority):
            raise InvalidModel(f"{where}: priority must be a finite number, got {self.priority!r}")
        if self.deadline_s is not None:
            _check_at_least(f"{where}: deadline_s", self.deadline_s, 0)
        if self.target_error is not None:
            _check_at_least(f"{where}: target_error", self.target_error, 0)
        if self.kind not in ("exact", "online"):
            raise InvalidModel(f"{where}: {unknown_name('kind', self.kind, ('exact', 'online'))}")
        if self.kind == "online" and any(job.divisible is None for job in self.jobs):
            raise InvalidModel(f"{where}: an online query is made of divisible jobs only")
        self._check_dag(where)

    def _check_dag(self, where: str) -> None:
        if not self.jobs:
            raise InvalidModel(f"{where} has no jobs")
        names = [job.name for job in self.jobs]
        for name in names:
            if names.count(name) > 1:
                raise InvalidModel(f"{where}: two jobs are called {name!r}")
        left = {job.name: set(job.upstream) for job in self.jobs}
        for job in self.jobs:
            for name in job.upstream:
                if name not in left:
                    raise InvalidModel(
                        f"{where}, job {job.name!r}: {unknown_name('upstream job', name, names)}"
                    )
        while left:
            ready = [name for name, upstream in left.items() if not upstream]
            if not ready:
                raise InvalidModel(f"{where}: the jobs {sorted(left)} depend on one another")
            for name in ready:
                del left[name]
            for upstream in left.values():
                upstream.difference_update(ready)

    def job_id(self, name: str) -> str:
        """The `str` form of the id of one of its jobs."""
        return f"{self.id}/{name}"  # as of JobId, at less cost


def query_ids(incarnation: str) -> Iterator[str]:
    """Ids that stay unique across restarts, provided each start gives a new `incarnation`.

    >>> ids = query_ids("20260102T030405")
    >>> next(ids), next(ids)
    ('20260102T030405-1', '20260102T030405-2')
    """
    _check_id("incarnation", incarnation)
    return (f"{incarnation}-{number}" for number in count(1))

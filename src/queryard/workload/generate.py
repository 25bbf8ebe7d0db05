"""Workloads drawn from a mix: the same mix, nodes and seed give the same workload.

Counts are exact: a bin of share 0.85 gets 85 of 100 queries, and only which ones is drawn. Arrivals
are a Poisson process, conditioned on all queries arriving within the time that the work needs at
the wanted load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from queryard.core.model import Divisible, Job, Node, Table, TableInput
from queryard.core.speedup import Speedup

from .alone import alone_time_s, capacity_slots
from .cluster import equal_splits, numbered, parse_nodes, place_table
from .mix import Mix, SizeBin
from .model import Arrival, JobTruth, Workload
from .query_classes import QueryClass, build_query, draw_class, plain_job_classes

DEFAULT_NODES = "16x12"
# POSUM: a deadline is the time alone, times a factor drawn evenly between these.
SLACK = (1.0, 3.0)
# Online queries: their mini-batches, the fixed wall time of one, and how many are nested.
BATCHES, BATCH_OVERHEAD_S, NESTED = 20, 0.2, 0.25
ROW_BYTES = 100.0
# The size of a bin's common table, as a multiple of the mean input of the bin's queries.
COMMON = 0.5


def generate(mix: Mix, seed: int = 0, nodes: Sequence[Node] = ()) -> Workload:
    """Draw a workload for the given nodes (16 of 12 slots unless told otherwise).

    >>> workload = generate(Mix(queries=20, deadlines=0.3), seed=1)
    >>> len(workload.arrivals), sum(a.query.deadline_s is not None for a in workload.arrivals)
    (20, 6)
    """
    cluster = tuple(nodes) or parse_nodes(DEFAULT_NODES)
    return _Generator(mix, seed, cluster).workload()


class _Generator:
    """One random stream per property, so that changing one leaves the others as they are."""

    def __init__(self, mix: Mix, seed: int, nodes: tuple[Node, ...]) -> None:
        self.mix, self.seed, self.nodes = mix, seed, nodes
        self.slots = capacity_slots(nodes)
        self.tables: dict[str, Table] = {}
        rng = self._rng("classes")
        self.classes = [
            draw_class(number, mix.shape, mix.map_s_per_gb, rng)
            for number in range(1, mix.classes + 1)
        ]

    def workload(self) -> Workload:
        mix, count = self.mix, self.mix.queries
        bins = self._dealt("bins", [size_bin.share for size_bin in mix.bins])
        plain = self._dealt("plain", [mix.plain_jobs, 1 - mix.plain_jobs])
        shared = self._dealt("shared", [mix.shared, 1 - mix.shared])
        forms = self._dealt("forms", [mix.online, mix.divisible, 1 - mix.online - mix.divisible])
        with_deadline = self._dealt("deadlines", [mix.deadlines, 1 - mix.deadlines])
        tenants = self._dealt("tenants", list(mix.tenants.values()))
        tenant_names = list(mix.tenants)
        plain_classes = plain_job_classes(mix.map_s_per_gb)
        draw, sizes, slack = self._rng("queries"), self._rng("sizes"), self._rng("slack")
        arrivals = []
        for i, query_id in enumerate(numbered("q", count)):
            size_bin = mix.bins[bins[i]]
            kind = draw.choice(plain_classes if plain[i] == 0 else self.classes)
            tables = self._tables_of(query_id, kind, size_bin, sizes, shares_table=shared[i] == 0)
            arrival = build_query(query_id, kind, tables, mix.block_bytes, draw)
            if forms[i] == 0:
                arrival = as_online(arrival, self.slots, nested=draw.random() < NESTED)
            elif forms[i] == 1:
                arrival = as_divisible(arrival, self.slots, mix.serial)
            within_s = alone_time_s(arrival, self.slots) * slack.uniform(*SLACK)
            arrivals.append(
                replace(
                    arrival,
                    size_bin=size_bin.name,
                    query=replace(
                        arrival.query,
                        tenant=tenant_names[tenants[i]],
                        # Counted from the submission until that is known.
                        deadline_s=within_s if with_deadline[i] == 0 else None,
                        memory_bytes=self._memory_bytes(arrival),
                    ),
                )
            )
        name = f"generated ({count} queries, seed {self.seed})"
        timed = submit_poisson(arrivals, mix.load * self.slots, self._rng("arrivals"))
        return Workload(name, timed, tuple(self.tables.values()), self.nodes)

    def _tables_of(
        self, query_id: str, kind: QueryClass, size_bin: SizeBin, rng: Random, *, shares_table: bool
    ) -> list[Table]:
        """The query's tables; one that shares reads its bin's common table first."""
        total_bytes = rng.uniform(size_bin.least_gb, size_bin.most_gb) * 1e9
        found = []
        for number, share in enumerate(kind.shape.shares):
            if number == 0 and shares_table:
                found.append(self._table(f"common-{size_bin.name}", size_bin.mean_bytes * COMMON))
            else:
                found.append(self._table(f"{query_id}-t{number + 1}", total_bytes * share))
        return found

    def _table(self, name: str, size_bytes: float) -> Table:
        if name not in self.tables:
            sizes = equal_splits(size_bytes, self.mix.block_bytes)
            self.tables[name] = place_table(name, sizes, self.nodes, self.seed)
        return self.tables[name]

    def _memory_bytes(self, arrival: Arrival) -> float:
        """A share of the input; at most half of the cluster's memory, so that it can run."""
        input_bytes = sum(item.bytes for job in arrival.query.jobs for item in job.inputs)
        half = sum(node.memory_bytes for node in self.nodes) / 2
        return min(self.mix.memory * input_bytes, half)

    def _dealt(self, question: str, shares: Sequence[float]) -> list[int]:
        """For each query an index into `shares`, each as often as its share says, shuffled."""
        count, total = self.mix.queries, sum(shares)
        exact = [share / total * count for share in shares]
        dealt = [int(value + 1e-9) for value in exact]
        by_remainder = sorted(range(len(shares)), key=lambda i: (dealt[i] - exact[i], i))
        for i in by_remainder[: count - sum(dealt)]:
            dealt[i] += 1
        cards = [i for i, copies in enumerate(dealt) for _ in range(copies)]
        self._rng(question).shuffle(cards)
        return cards

    def _rng(self, question: str) -> Random:
        return Random(f"{self.seed}/{question}")


def as_divisible(arrival: Arrival, slots: float, serial: float = 0.0) -> Arrival:
    """The same work as one divisible job, as wide as the widest of its map phases."""
    jobs = arrival.query.jobs
    width = max(job.map.tasks for job in jobs if job.map)
    read_bytes: dict[str, float] = {}
    for item in (item for job in jobs for item in job.inputs):
        read_bytes[item.table] = read_bytes.get(item.table, 0.0) + item.bytes
    whole = Job(
        "whole",
        jobs[-1].operator,
        inputs=tuple(TableInput(*item) for item in read_bytes.items()),
        divisible=Divisible(max(1, min(width, int(slots)))),
    )
    return replace(
        arrival,
        query=replace(arrival.query, jobs=(whole,)),
        truth={"whole": JobTruth(work_s=arrival.work_s, speedup=Speedup(serial))},
    )


def as_online(arrival: Arrival, slots: float, *, nested: bool) -> Arrival:
    """The same work in mini-batches that each give an answer.

    In a nested query half of the work grows from batch to batch, so that the total stays.
    """
    whole = as_divisible(arrival, slots)
    (job,) = whole.query.jobs
    assert job.divisible is not None
    divisible = Divisible(job.divisible.width, BATCHES, nested, span="cluster")
    work_s = whole.truth[job.name].work_s
    growth_s = work_s / (BATCHES * (BATCHES + 1)) if nested else 0.0
    truth = JobTruth(
        work_s=work_s / 2 if nested else work_s,
        growth_s=growth_s,
        batch_overhead_s=BATCH_OVERHEAD_S,
        rows=sum(item.bytes for item in job.inputs) / ROW_BYTES,
    )
    query = replace(whole.query, jobs=(replace(job, divisible=divisible),), kind="online")
    return replace(whole, query=query, truth={job.name: truth})


def submit_poisson(
    arrivals: Sequence[Arrival], work_s_per_s: float, rng: Random
) -> tuple[Arrival, ...]:
    """Submit the queries in their order, so that work comes at the given rate on average.

    Deadlines, until now counted from the submission, become points in time.
    """
    span_s = sum(arrival.work_s for arrival in arrivals) / work_s_per_s
    times = sorted(rng.uniform(0.0, span_s) for _ in arrivals)
    timed = []
    for arrival, submit_s in zip(arrivals, times, strict=True):
        within_s = arrival.query.deadline_s
        deadline_s = None if within_s is None else submit_s + within_s
        query = replace(arrival.query, submit_s=submit_s, deadline_s=deadline_s)
        timed.append(replace(arrival, query=query))
    return tuple(timed)

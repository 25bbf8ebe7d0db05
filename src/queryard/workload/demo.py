"""The built-in workload: three tenants with different needs on one cluster of 64 slots.

Dashboards often send small queries on one table, and people wait for the answers. Analysts send
larger ones, mostly on tables of their own; an estimate is enough for some. The nightly jobs are few
and large and read a long history. Ordering by size, sharing the scans of the common tables and
observing deadlines each change the result, so that policies differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from queryard.core.model import Node, Table

from .alone import capacity_slots
from .cluster import equal_splits, numbered, parse_nodes, place_table
from .generate import as_online
from .mix import GB
from .model import Arrival, Workload
from .query_classes import QueryClass, build_query, draw_class

DEMO_NODES = "8x8:32GB"
BLOCK_BYTES = 256e6
# The tables that many read, with their GB.
COMMON = {"events": 6.0, "history": 60.0}
LOAD = 0.9
# Size bins by input, up to this many GB.
SIZE_BINS = {"up to 10 GB": 10.0, "10 to 50 GB": 50.0, "over 50 GB": math.inf}


@dataclass(frozen=True, slots=True)
class _Stream:
    """One tenant's queries, submitted between `begin` and `end`, which are shares of the day.

    Of every ten, `readers` read the `common` table, `deadlines` have a deadline, and `online` need
    an estimate only.
    """

    tenant: str
    queries: int
    shapes: tuple[str, ...]
    gb: tuple[float, float]
    map_s_per_gb: float
    common: str
    readers: int
    deadlines: int
    within_s: tuple[float, float]
    online: int
    priority: float
    memory_bytes: float
    begin: float
    end: float


_STREAMS = (
    _Stream(
        tenant="dashboard",
        queries=60,
        shapes=("single",),
        gb=(1, 3),
        map_s_per_gb=24,
        common="events",
        readers=8,
        deadlines=5,
        within_s=(20, 50),
        online=0,
        priority=2,
        memory_bytes=0.5e9,
        begin=0.0,
        end=1.0,
    ),
    _Stream(
        tenant="analyst",
        queries=32,
        shapes=("tree", "chain", "diamond"),
        gb=(5, 30),
        map_s_per_gb=60,
        common="events",
        readers=3,
        deadlines=3,
        within_s=(120, 360),
        online=2,
        priority=1,
        memory_bytes=4e9,
        begin=0.0,
        end=0.9,
    ),
    _Stream(
        tenant="nightly",
        queries=8,
        shapes=("chain", "tree"),
        gb=(60, 140),
        map_s_per_gb=60,
        common="history",
        readers=6,
        deadlines=5,
        within_s=(600, 1500),
        online=0,
        priority=0,
        memory_bytes=16e9,
        begin=0.0,
        end=0.6,
    ),
)


def demo_workload(seed: int = 0, nodes: Sequence[Node] = ()) -> Workload:
    """About 100 queries of the tenants dashboard, analyst and nightly.

    >>> sorted({arrival.query.tenant for arrival in demo_workload().arrivals})
    ['analyst', 'dashboard', 'nightly']
    """
    cluster = tuple(nodes) or parse_nodes(DEMO_NODES)
    slots = capacity_slots(cluster)
    common = {
        name: place_table(name, equal_splits(gb * GB, BLOCK_BYTES), cluster, seed)
        for name, gb in COMMON.items()
    }
    tables = list(common.values())
    drawn: list[tuple[_Stream, list[Arrival]]] = []
    for stream in _STREAMS:
        rng = Random(f"{seed}/{stream.tenant}")
        arrivals, own = _draw(stream, common[stream.common], cluster, seed, rng)
        tables.extend(own)
        drawn.append((stream, arrivals))
    work_s = sum(arrival.work_s for _, arrivals in drawn for arrival in arrivals)
    day_s = work_s / (LOAD * slots)
    timed = [
        arrival
        for stream, arrivals in drawn
        for arrival in _submit(stream, arrivals, day_s, Random(f"{seed}/{stream.tenant}/times"))
    ]
    timed.sort(key=lambda arrival: (arrival.query.submit_s, arrival.query.id))
    return Workload("demo", tuple(timed), tuple(tables), cluster)


def _draw(
    stream: _Stream, common: Table, nodes: Sequence[Node], seed: int, rng: Random
) -> tuple[list[Arrival], list[Table]]:
    """The queries of a stream, not yet submitted, and the tables only they read."""
    classes: list[QueryClass] = []
    for number, shape in enumerate(stream.shapes * 2, 1):
        drawn = draw_class(number, shape, stream.map_s_per_gb, rng)
        classes.append(replace(drawn, name=f"{stream.tenant}-{drawn.name}"))
    arrivals: list[Arrival] = []
    own: list[Table] = []
    for i, query_id in enumerate(numbered(f"{stream.tenant}-", stream.queries)):
        kind = rng.choice(classes)
        size_bytes = rng.uniform(*stream.gb) * GB
        read: list[Table] = []
        for number, share in enumerate(kind.shape.shares):
            if number == 0 and i % 10 < stream.readers:
                read.append(common)
                continue
            sizes = equal_splits(size_bytes * share, BLOCK_BYTES)
            read.append(place_table(f"{query_id}-t{number + 1}", sizes, nodes, seed))
            own.append(read[-1])
        arrival = build_query(query_id, kind, read, BLOCK_BYTES, rng)
        if i % 10 >= 10 - stream.online:
            arrival = as_online(arrival, capacity_slots(nodes), nested=False)
        arrivals.append(arrival)
    return arrivals, own


def _submit(
    stream: _Stream, arrivals: Sequence[Arrival], day_s: float, rng: Random
) -> list[Arrival]:
    """Arrivals at random moments of the stream's part of the day."""
    times = sorted(rng.uniform(stream.begin, stream.end) * day_s for _ in arrivals)
    submitted = []
    for i, (arrival, submit_s) in enumerate(zip(arrivals, times, strict=True)):
        within_s = rng.uniform(*stream.within_s)
        query = replace(
            arrival.query,
            tenant=stream.tenant,
            priority=stream.priority,
            submit_s=submit_s,
            deadline_s=submit_s + within_s if i % 10 < stream.deadlines else None,
            memory_bytes=stream.memory_bytes,
        )
        submitted.append(replace(arrival, query=query, size_bin=_size_bin(arrival)))
    return submitted


def _size_bin(arrival: Arrival) -> str:
    read_bytes = sum(item.bytes for job in arrival.query.jobs for item in job.inputs)
    return next(name for name, most_gb in SIZE_BINS.items() if read_bytes <= most_gb * GB)

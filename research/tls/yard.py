"""TLS's cluster, what its text leaves open about it, and queries built for it from plans."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from queryard.core.model import Job, Phase, Query, Table, TableInput
from queryard.policies.profiles import PROFILES
from queryard.sim import Conditions
from queryard.workload import Workload
from queryard.workload.cluster import equal_splits, parse_nodes, place_table
from queryard.workload.model import Arrival, JobTruth
from research.trials import Setting

from .plans import LOG, SHARES, Plan, Step

# 16 workers with two hex-core processors each, and HDFS blocks.
NODES = parse_nodes("16x12")
SLOTS = sum(node.slots for node in NODES)
BLOCK_BYTES = 256e6
GB = 1e9
# Hive 0.12 starts a reduce for each GB that a job reads.
REDUCER_BYTES = 1e9
# A byte of map output costs a reduce what a byte of input costs a map, in these parts.
SHUFFLE, MERGE, REDUCE = 0.25, 0.10, 0.65
# How much queries of one plan differ in their costs (log-normal).
COST_SPREAD = 0.2

SCHEDULERS: Mapping[str, Mapping[str, Any]] = {
    "HCS": PROFILES["capacity"],
    "HFS": PROFILES["fair"],
    "TLS": PROFILES["tls"],
}


@dataclass(frozen=True, slots=True)
class World:
    """What the paper leaves open; the defaults were chosen from its text before any run.

    A node's two disks give 12 maps some 17 MB/s each, so that a block takes 15 s, of which about
    9 are also needed for the rows themselves: a block in memory saves 6 of the 17 s with the start
    of the task. 12 heaps of 2 GB, three quarters in use, leave 4 GB of a node's memory for blocks.
    """

    map_s_per_gb: float = 60.0
    task_start_s: float = 2.0
    job_start_s: float = 0.0
    noise: float = 0.2
    memory_gain: float = 0.35
    memory_cache_bytes: float = 4e9
    slow_start: float = 0.05
    estimates: str = "oracle:0.19"

    def setting(self, workload: Workload) -> Setting:
        conditions = Conditions(
            noise=self.noise,
            job_start_s=self.job_start_s,
            memory_gain=self.memory_gain,
            memory_cache_bytes=self.memory_cache_bytes,
        )
        return Setting(workload, NODES, conditions, self.slow_start, self.estimates)


USUAL = World()

OPEN_PARAMETERS: Mapping[str, str] = {
    "time of a map": "15 s per block of 256 MB, plus 2 s to start; tasks differ by 20 %",
    "time of a reduce": "as much per byte as a map, a quarter of it shuffle, plus 2 s to start",
    "reduces of a job": "one for each GB it reads, one for a sort (Hive's default)",
    "when reduces start": "at 5 % of the maps (Hadoop's default), holding their slots",
    "memory": "a block among the last 4 GB read on a node saves 35 % of a map",
    "queues of HCS": "one, Hadoop's default, in which jobs are served as they become ready",
    "estimates": "wrong by 15 % in the mean, as printed for jobs of the test set",
    "plans": "as Hive compiles TPC-H, with the shapes the paper names; see plans.py",
}


def build_query(
    query_id: str, plan: Plan, scale_gb: float, world: World, seed: int, class_name: str = ""
) -> tuple[Arrival, list[Table]]:
    """A query over a data set of its own, and its tables."""
    rng = Random(f"{seed}/{query_id}/cost")
    rate = world.map_s_per_gb / GB * rng.lognormvariate(-(COST_SPREAD**2) / 2, COST_SPREAD)
    tables = {
        name: place_table(
            f"{query_id}-{name}",
            equal_splits((1.0 if name == LOG else SHARES[name]) * scale_gb * GB, BLOCK_BYTES),
            NODES,
            seed,
        )
        for name in dict.fromkeys(name for step in plan for name in step.tables)
    }
    left_bytes: dict[str, float] = {}
    jobs, truth = [], {}
    for step in plan:
        read = [tables[name] for name in step.tables]
        handed_bytes = sum(left_bytes[name] for name in step.upstream)
        job, job_truth, left_bytes[step.name] = _job(step, read, handed_bytes, rate, world)
        jobs.append(job)
        truth[step.name] = job_truth
    query = Query(query_id, tuple(jobs), class_name=class_name)
    return Arrival(query, truth), list(tables.values())


def _job(
    step: Step, read: Sequence[Table], handed_bytes: float, rate: float, world: World
) -> tuple[Job, JobTruth, float]:
    """(what the scheduler sees, what is true, the bytes it leaves)."""
    table_bytes = sum(table.bytes for table in read)
    in_bytes = table_bytes + handed_bytes
    # Maps follow the blocks of whatever is larger; the rest is read beside them.
    scanned = read if table_bytes >= handed_bytes else ()
    maps = sum(len(table.splits) for table in scanned) or _pieces(in_bytes, BLOCK_BYTES)
    reduces = 0
    if step.has_reduce:
        reduces = 1 if step.one_reduce else _pieces(in_bytes, REDUCER_BYTES)
    shuffled_bytes = in_bytes * step.medium
    reduce_bytes = shuffled_bytes / reduces if reduces else 0.0
    job = Job(
        step.name,
        step.operator,
        step.upstream,
        tuple(TableInput(table.name, table.bytes) for table in read),
        Phase(maps, in_bytes / maps),
        Phase(reduces, reduce_bytes) if reduces else None,
        tuple(table.name for table in scanned),
    )
    truth = JobTruth(
        map_s=world.task_start_s + in_bytes / maps * rate,
        shuffle_s=world.task_start_s + reduce_bytes * rate * SHUFFLE if reduces else 0.0,
        merge_s=reduce_bytes * rate * MERGE,
        reduce_s=reduce_bytes * rate * REDUCE,
        map_output_bytes=shuffled_bytes / maps,
    )
    return job, truth, in_bytes * step.final


def submitted(arrival: Arrival, at_s: float, tenant: str = "default") -> Arrival:
    return replace(arrival, query=replace(arrival.query, submit_s=at_s, tenant=tenant))


def workload_of(name: str, built: Iterable[tuple[Arrival, list[Table]]]) -> Workload:
    """Arrivals with their tables, in the order given."""
    pairs = list(built)
    tables = tuple(table for _, of_query in pairs for table in of_query)
    return Workload(name, tuple(arrival for arrival, _ in pairs), tables, NODES)


def responses_s(setting: Setting, profile: Mapping[str, Any], seed: int) -> dict[str, float]:
    """What each query took under a scheduler."""
    run = setting.simulate(profile, seed, keep_journal=False)
    return {
        arrival.query.id: run.ends[arrival.query.id] - arrival.query.submit_s
        for arrival in setting.workload.arrivals
    }


def _pieces(size_bytes: float, piece_bytes: float) -> int:
    # Bytes are sums of splits: their rounding must not make one piece more.
    return max(1, math.ceil(size_bytes / piece_bytes - 1e-6))

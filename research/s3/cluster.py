"""The cluster of S³ §V, its files and jobs, and what starting things costs there.

Printed: 40 workers with one map slot, 30 reduces a job, 64 MB blocks, one copy of each, 160 GB of
text (2,560 maps) or 400 GB of lineitem, about 240 s per job, and ten merged jobs against one
(§V.C): +25.5 % in all, +28.8 % in the maps. Costs of starting are not printed. They follow from
these figures and not from the comparisons of schedulers:

* if only maps grow with the riders, they are 0.255 / 0.288 of a job, 212.5 s or 3.32 s per wave,
  and 27.5 s of it do not grow: its start, its last reduces, its end;
* of these we give 7.5 s to the reduces (8 million records each, about a million a second) and
  20 s to the start. An S³ sub-job "is processed as a normal MapReduce job" (§IV.D), so it pays
  the same. Its own text also allows less: the least is one heartbeat of Hadoop 0.20, 3 s, to hand
  out its tasks. All comparisons are made with both;
* of a wave 2 s are the start of a task (half a heartbeat and a JVM), the rest reads and maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from queryard.core.model import Job, Node, Phase, Query, Split, Table
from queryard.sim import Conditions
from queryard.workload import Arrival, JobTruth, Workload
from queryard.workload.cluster import numbered
from research.trials import Setting, parts

WORKERS = 40
REDUCES = 30
GROUPS = (3, 3, 4)
JOBS = sum(GROUPS)
GAP_S = 465.0
BLOCK_MB = 64
MB = 2.0**20

JOB_S = 240.0
TOTAL_MORE, MAP_MORE, REDUCE_MORE = 0.255, 0.288, 0.235
MAPS_S = JOB_S * TOTAL_MORE / MAP_MORE
REDUCE_S = 7.5
JOB_START_S = JOB_S - MAPS_S - REDUCE_S
HEARTBEAT_S = 3.0
TASK_START_S = 2.0
WAVE_S = MAPS_S / (160 * 1024 / BLOCK_MB / WORKERS)
MAP_S = WAVE_S - TASK_START_S
# What one more rider adds to a wave, as a share of what a map does without its start.
RIDER_COST = MAP_MORE * WAVE_S / (JOBS - 1) / MAP_S

# Slots for reduces on a node: as many as ten merged jobs need for their reduces side by side,
# which in the paper are 30 merged ones.
REDUCE_SLOTS = 8
# Hadoop 0.20 starts reduces when 5 % of the maps are done.
SLOW_START = 0.05
# What reduces of S³ take at the end for what those of the sub-jobs have folded. Partial counts of
# words are much smaller than the output of the maps.
FOLD_COST = 0.1
NOISE = 0.1
REMOTE_PENALTY = 0.2


@dataclass(frozen=True, slots=True)
class Load:
    """Jobs of one kind over one file; `map_s` is for 64 MB without the start of the task."""

    table: str = "text"
    gb: int = 160
    block_mb: int = BLOCK_MB
    map_s: float = MAP_S
    reduce_s: float = REDUCE_S
    contention: float = 0.0
    task_start_s: float = TASK_START_S
    rider_cost: float = RIDER_COST
    fold_cost: float = FOLD_COST
    workers: int = WORKERS

    @property
    def blocks(self) -> int:
        return self.gb * 1024 // self.block_mb * self.workers // WORKERS

    @property
    def reduces(self) -> int:
        return max(1, REDUCES * self.workers // WORKERS)

    @property
    def block_s(self) -> float:
        """What a map of one job does with a block."""
        return self.map_s * self.block_mb / BLOCK_MB

    @property
    def alone_s(self) -> float:
        """A job alone, as far as it can be said without running it."""
        waves = self.blocks / self.workers
        return JOB_START_S + waves * (self.block_s + self.task_start_s) + self.reduce_s


NORMAL = Load()


def sized(load: Load, size: float) -> Load:
    """The same jobs on a smaller cluster, with as much of a smaller file on every node.

    >>> sized(NORMAL, 0.1).workers, sized(NORMAL, 0.1).blocks, sized(NORMAL, 0.1).alone_s
    (4, 256, 240.0)
    """
    return replace(load, workers=parts(WORKERS, size))


def nodes(load: Load) -> tuple[Node, ...]:
    return tuple(Node(name, 1 + REDUCE_SLOTS) for name in numbered("n", load.workers))


def placed(load: Load, seed: int) -> Table:
    """The file, as much of it on every node as on any other, in an order drawn by lot."""
    homes = [node.id for node in nodes(load)] * (-(-load.blocks // load.workers))
    Random(f"{seed}/{load.table}/{load.block_mb}").shuffle(homes)
    size_bytes = load.block_mb * MB
    return Table(load.table, tuple(Split(size_bytes, (home,)) for home in homes[: load.blocks]))


def setting(load: Load, seed: int, groups: Sequence[int] = GROUPS, gap_s: float = GAP_S) -> Setting:
    """Groups of like jobs, so far apart."""
    job = Job(
        "count",
        map=Phase(load.blocks, load.block_mb * MB),
        reduce=Phase(load.reduces),
        scans=(load.table,),
    )
    truth = {"count": JobTruth(map_s=load.block_s, reduce_s=load.reduce_s)}
    submitted = [gap_s * place for place, count in enumerate(groups) for _ in range(count)]
    arrivals = tuple(
        Arrival(Query(name, (job,), submit_s=at_s), truth)
        for name, at_s in zip(numbered("j", len(submitted)), submitted, strict=True)
    )
    conditions = Conditions(
        noise=NOISE,
        remote_penalty=REMOTE_PENALTY,
        contention=load.contention,
        task_start_s=load.task_start_s,
        rider_cost=load.rider_cost,
        fold_cost=load.fold_cost,
    )
    workload = Workload(load.table, arrivals, (placed(load, seed),))
    return Setting(workload, nodes(load), conditions, SLOW_START)

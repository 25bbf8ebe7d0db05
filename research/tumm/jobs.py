"""The five benchmarks of TuMM's evaluation, and batches of them.

Table 4 prints the fastest and the slowest task of each benchmark on Heter1: the fastest on a slot
of 2.67 compute units, the slowest on one of 1.33. On the first kind of node one map or two reduces
run at once, on the last two maps or one reduce, so that in either phase one end of the range is
slowed by contention. The geometric mean, without these factors, is what a task takes alone on a
slot of 2 compute units, which is what the homogeneous cluster has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from queryard.core.model import Job, Phase, Query
from queryard.workload import Arrival, JobTruth, Workload
from research.trials import parts

BLOCK_BYTES = 64 * 2.0**20
BLOCKS_PER_GB = 16
# §4.3: one more map beside it makes a map take 23.1 s in place of 18.5 s.
CONTENTION = 0.25
# Compute units of a slot: where all is measured, and at both ends of Heter1.
BASE_UNITS, FASTEST_UNITS, SLOWEST_UNITS = 2.0, 2.67, 1.33
# The middle of the printed range over the time of a lone task on a slot of 2 units.
MIDDLE = BASE_UNITS * math.sqrt((1 + CONTENTION) / (FASTEST_UNITS * SLOWEST_UNITS))
# Of a reduce's time, what it spends on fetching; of the rest a sixth merges. This is the division
# that generated queries have.
SHUFFLE, MERGE_OF_REST = 0.25, 1 / 6
# Log-normal spread of task times, so that with 40 tasks at either end the printed ranges come
# out, on average over the benchmarks, beyond what speed and contention explain.
NOISE = 0.07
# Jobs of one benchmark that are submitted together, and of a mixed batch.
BATCH, MIXED = 3, 10
# All jobs read 8 GB in the heterogeneous clusters.
HETEROGENEOUS_MAPS = 8 * BLOCKS_PER_GB


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A kind of job. Times are those of a task alone on a node of the homogeneous cluster.

    `reduce_s` is a reduce's time with its shuffle, which takes the share `shuffle` of it.
    """

    name: str
    maps: int
    map_s: float
    reduces: int
    reduce_s: float
    shuffle: float = SHUFFLE

    @property
    def work_s(self) -> tuple[float, float]:
        """Core-seconds of all maps and of all reduces."""
        return self.maps * self.map_s, self.reduces * self.reduce_s

    def sized(self, size: float) -> Benchmark:
        """The same with a part of the tasks."""
        return replace(self, maps=parts(self.maps, size), reduces=parts(self.reduces, size))


@dataclass(frozen=True, slots=True)
class Printed:
    """A row of Table 4: the fastest and the slowest task in seconds, of maps and of reduces."""

    map_s: tuple[float, float]
    reduce_s: tuple[float, float]


PRINTED = {
    "Classification": Printed((6.5, 24.1), (9.5, 15.9)),
    "Histogram Rating": Printed((8.5, 24.8), (9.7, 25.5)),
    "Inverted Index": Printed((5.1, 17.4), (16.5, 48.1)),
    "Word Count": Printed((11.5, 31.4), (12.6, 25.2)),
    "Grep": Printed((6.7, 25.1), (12.7, 29.5)),
}


def alone_s(range_s: tuple[float, float]) -> float:
    """What a lone task takes on a slot of 2 units, from the range on Heter1."""
    return math.sqrt(math.prod(range_s)) / MIDDLE


def _benchmark(name: str, input_gb: int, reduces: int) -> Benchmark:
    printed = PRINTED[name]
    maps = input_gb * BLOCKS_PER_GB
    return Benchmark(name, maps, alone_s(printed.map_s), reduces, alone_s(printed.reduce_s))


# Text is the 7 GB of wiki links, ratings are the 10 GB of movies; Grep searches the latter (§2).
INVERTED_INDEX = _benchmark("Inverted Index", 7, 150)
HISTOGRAM = _benchmark("Histogram Rating", 10, 80)
WORD_COUNT = _benchmark("Word Count", 7, 80)
CLASSIFICATION = _benchmark("Classification", 10, 80)
GREP = _benchmark("Grep", 10, 80)
BENCHMARKS = (INVERTED_INDEX, HISTOGRAM, WORD_COUNT, CLASSIFICATION, GREP)


def job_truth(map_s: float, reduce_s: float, shuffle: float = SHUFFLE) -> JobTruth:
    """Times of a job if its reduces spend the given share on fetching."""
    rest_s = reduce_s * (1 - shuffle)
    return JobTruth(
        map_s=map_s,
        shuffle_s=reduce_s * shuffle,
        merge_s=rest_s * MERGE_OF_REST,
        reduce_s=rest_s * (1 - MERGE_OF_REST),
    )


def batch(kinds: Sequence[Benchmark]) -> Workload:
    """Jobs that are all submitted at the start, to be served in this order."""
    arrivals = []
    for number, kind in enumerate(kinds, start=1):
        job = Job("job", map=Phase(kind.maps, BLOCK_BYTES), reduce=Phase(kind.reduces))
        query = Query(f"{number:02}-{kind.name}", (job,), class_name=kind.name)
        truth = job_truth(kind.map_s, kind.reduce_s, kind.shuffle)
        arrivals.append(Arrival(query, {"job": truth}))
    return Workload("benchmarks", tuple(arrivals))


def draw_mix(seed: int, jobs: int) -> tuple[Benchmark, ...]:
    """A mixed batch: every job is any of the benchmarks."""
    rng = Random(f"{seed}:mixed")
    return tuple(rng.choice(BENCHMARKS) for _ in range(jobs))


def johnson(kinds: Sequence[Benchmark]) -> tuple[Benchmark, ...]:
    """Johnson's order for two machines, maps and reduces: the best with both known.

    Jobs with less map than reduce work come first, the least map work leading; the others after
    them, the least reduce work last.
    """
    reduce_heavy = [kind for kind in kinds if kind.work_s[0] < kind.work_s[1]]
    map_heavy = [kind for kind in kinds if kind.work_s[0] >= kind.work_s[1]]
    first = sorted(reduce_heavy, key=lambda kind: kind.work_s[0])
    last = sorted(map_heavy, key=lambda kind: -kind.work_s[1])
    return (*first, *last)

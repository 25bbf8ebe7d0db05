"""Jobs like those of POSUM's evaluation: Sort, WordCount, Nutch Indexing and Naive Bayes.

Sizes, numbers of reduces and what the phases are like come from the thesis (§5.2, §5.4.1). What a
byte takes is not printed; it was chosen so that a job takes 6.5 minutes on average on 8 workers of
16 containers, with maps that vary by a third and shuffles that vary most, as it says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

from queryard.core.model import MAP, REDUCE
from queryard.estimate.tasks import Seen, TaskFeatures

GB = 1e9
BLOCK_BYTES = 128 * 2.0**20
SLOTS = 8 * 16


@dataclass(frozen=True, slots=True)
class JobKind:
    """A benchmark: input sizes, reduces, and seconds: a start and a rate per phase.

    `selectivity` is what maps leave of their input. Shuffle, merge and reduce each take a constant
    and a part that grows with what a reduce gets.
    """

    name: str
    least_gb: float
    most_gb: float
    reduces: int
    selectivity: float
    map_start_s: float
    map_s_per_gb: float
    shuffle: tuple[float, float]
    merge: tuple[float, float]
    reduce: tuple[float, float]


KINDS = (
    JobKind("sort", 8, 56, 32, 1.0, 2.0, 60, (4, 20), (1, 6), (2, 45)),
    # A combiner leaves little; the one reduce is short and its shuffle waits for stragglers.
    JobKind("wordcount", 2, 35, 1, 0.002, 3.0, 180, (12, 30), (0.5, 20), (1, 60)),
    JobKind("indexing", 0.3, 12, 16, 1.1, 2.0, 40, (3, 25), (1, 10), (6, 220)),
    JobKind("bayes", 2, 18, 1, 0.0005, 4.0, 220, (15, 10), (1, 2), (3, 5)),
)
# Spread of task times (log-normal), of shuffles, and how many maps are not local.
NOISE, SHUFFLE_NOISE, REMOTE, REMOTE_COST = 0.25, 0.7, 0.2, 0.15


def posum_tasks(seed: int, hours: float = 1.0) -> list[tuple[float, Seen]]:
    """Tasks of an hour of such jobs, each with its start; jobs follow one another FIFO."""
    rng = Random(f"{seed}/posum-tasks")
    found: list[tuple[float, Seen]] = []
    now = 0.0
    number = 0
    while now < hours * 3600:
        number += 1
        kind = rng.choice(KINDS)
        span = kind.most_gb - kind.least_gb
        size = kind.least_gb + min(span, rng.expovariate(3 / span))
        tasks, end_s = _job(kind, f"job{number}", size * GB, now, rng)
        found += tasks
        # Several are under way at a time: the next begins before this one ends.
        now += (end_s - now) * rng.uniform(0.2, 0.6)
    return found


def _job(
    kind: JobKind, job: str, size_bytes: float, start_s: float, rng: Random
) -> tuple[list[tuple[float, Seen]], float]:
    maps = math.ceil(size_bytes / BLOCK_BYTES)
    asked = TaskFeatures(
        job, MAP, kind.name, "bench", map_bytes=size_bytes, map_tasks=maps, reduces=kind.reduces
    )
    slots = [start_s] * (SLOTS // 3)
    tasks: list[tuple[float, Seen]] = []
    for index in range(maps):
        last = index == maps - 1
        split_bytes = size_bytes - BLOCK_BYTES * (maps - 1) if last else BLOCK_BYTES
        local = rng.random() >= REMOTE
        seconds = kind.map_start_s + kind.map_s_per_gb * split_bytes / GB
        seconds *= (1.0 if local else 1 + REMOTE_COST) * _luck(rng, NOISE)
        at = min(range(len(slots)), key=slots.__getitem__)
        question = asked._replace(input_bytes=split_bytes, is_local=local)
        tasks.append((slots[at], Seen(question, seconds, split_bytes * kind.selectivity)))
        slots[at] += seconds
    maps_done_s = max(slots)
    share_gb = size_bytes * kind.selectivity / kind.reduces / GB
    end_s = maps_done_s
    for _ in range(kind.reduces):
        shuffle_s, merge_s, rest_s = (
            (start + rate * share_gb) * _luck(rng, noise)
            for (start, rate), noise in (
                (kind.shuffle, SHUFFLE_NOISE),
                (kind.merge, NOISE),
                (kind.reduce, NOISE),
            )
        )
        seconds = shuffle_s + merge_s + rest_s
        seen = Seen(asked._replace(kind=REDUCE), seconds, None, shuffle_s, merge_s)
        tasks.append((maps_done_s, seen))
        end_s = max(end_s, maps_done_s + seconds)
    return tasks, end_s


def _luck(rng: Random, spread: float) -> float:
    return math.exp(rng.gauss(0.0, spread) - spread**2 / 2)

"""POSUM's cluster and workloads: an hour of its four kinds of jobs, some of them with a deadline.

A workload is drawn once (`Draw`) and can be run again and again: what arrives when, how large it
is, where its data lies and until when it is wanted stay the same, and only the luck of its tasks
differs, as in the thesis: its margins are over re-runs of two workloads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Literal

from queryard.core.model import Job, Node, Phase, Query, Table
from queryard.sim import Conditions, alone_times
from queryard.workload import Workload
from queryard.workload.cluster import parse_nodes, place_table
from queryard.workload.model import Arrival, JobTruth
from research.trials import Setting

from .jobs import BLOCK_BYTES, GB, KINDS, NOISE, REMOTE_COST, SHUFFLE_NOISE, JobKind

NODES = "8x16"
HOUR_S = 3600.0
DEADLINES = 0.3
TIGHTEST, LOOSEST = 1.0, 3.0
# Mean error over mean relative error in table 5.3 is what tasks take, roughly: maps about 10 s,
# reduces about 200 s. Those of `jobs` take 18 and 64 s.
REDUCE_PACE = 4.0
# With this pace, FIFO then has 10 to 20 jobs at most and a mean response of 6.5 minutes.
INTERVAL_S = 45.0

# The first two draws of which that is true: the second has 21 jobs at a time.
WORKLOADS = {1: 1, 2: 3}
PARAMETERS = {
    "workloads 1 and 2": "the first two draws with 10 to 20 jobs at most under FIFO; the text says "
    "no more than that they are two draws of one generator",
    "arrivals": f"a Poisson process, a job every {INTERVAL_S:g} s on average: FIFO then has a mean "
    "response of 6.5 minutes, as printed",
    "task times": f"those of the experiment on predictors, reduces {REDUCE_PACE:g} times as long: "
    "about 18 s per map and 250 s per reduce, as table 5.3 suggests",
    "runs": "the same jobs, sizes, places and deadlines, with other luck of the tasks",
    "time alone": "a run of the job by itself with luck of its own",
    "the portfolio": "a decision every 30 s, whatever scores best, as it seems; it begins with "
    "SRTF",
    "estimates": "the Standard predictor, which knows nothing when a run begins",
}

Rhythm = Literal["process", "intervals"]


@dataclass(frozen=True, slots=True)
class Draw:
    """Which workload: its number, how densely jobs arrive, for how long.

    Jobs arrive as a Poisson process, or at intervals that are Poisson numbers themselves, as the
    text could also be read.
    """

    number: int
    interval_s: float = INTERVAL_S
    hours: float = 1.0
    rhythm: Rhythm = "process"
    reduce_pace: float = REDUCE_PACE


@dataclass(frozen=True, slots=True)
class _Planned:
    """A job of a workload, before its tasks are drawn."""

    id: str
    kind: JobKind
    size_bytes: float
    submit_s: float
    relaxed_by: float | None


def posum_nodes() -> tuple[Node, ...]:
    return parse_nodes(NODES)


def posum_conditions() -> Conditions:
    """The luck of tasks is part of the workload; the place of their data is left to the run."""
    return Conditions(remote_penalty=REMOTE_COST)


@lru_cache(maxsize=2)
def posum_setting(draw: Draw, run: int, estimates: str = "standard") -> Setting:
    """A workload with the luck of one run."""
    nodes = posum_nodes()
    planned, tables, deadlines_s = _drawn(draw)
    arrivals = tuple(_arrival(job, draw, f"run {run}", deadlines_s[job.id]) for job in planned)
    workload = Workload(f"posum-{draw.number}", arrivals, tables)
    return Setting(workload, nodes, posum_conditions(), estimates=estimates)


@lru_cache(maxsize=2)
def _drawn(
    draw: Draw,
) -> tuple[tuple[_Planned, ...], tuple[Table, ...], dict[str, float | None]]:
    """What all runs of a workload have in common; deadlines take a run of each job alone."""
    planned, nodes = _plan(draw), posum_nodes()
    tables = tuple(
        place_table(job.id, _splits(job.size_bytes), nodes, f"posum-{draw.number}")
        for job in planned
    )
    due = [job for job in planned if job.relaxed_by is not None]
    arrivals = tuple(_arrival(job, draw, "alone", None) for job in due)
    named = {job.id for job in due}
    alone = Workload("alone", arrivals, tuple(table for table in tables if table.name in named))
    alone_s = alone_times(alone, nodes, posum_conditions())
    deadlines_s = {
        job.id: None if job.relaxed_by is None else job.submit_s + job.relaxed_by * alone_s[job.id]
        for job in planned
    }
    return planned, tables, deadlines_s


def _plan(draw: Draw) -> tuple[_Planned, ...]:
    """Kinds and deadlines are dealt evenly; sizes and times are drawn."""
    rng = Random(f"{draw.number}/posum-workload")
    times_s: list[float] = []
    now_s = 0.0
    while now_s < draw.hours * HOUR_S:
        times_s.append(now_s)
        now_s += _interval(draw, rng)
    count = len(times_s)
    kinds = [KINDS[place % len(KINDS)] for place in range(count)]
    due = [place < round(DEADLINES * count) for place in range(count)]
    rng.shuffle(kinds)
    rng.shuffle(due)
    planned = []
    for number, (time_s, kind, is_due) in enumerate(zip(times_s, kinds, due, strict=True), 1):
        span = kind.most_gb - kind.least_gb
        size_bytes = (kind.least_gb + min(span, rng.expovariate(3 / span))) * GB
        relaxed_by = rng.uniform(TIGHTEST, LOOSEST) if is_due else None
        planned.append(_Planned(f"job{number:03}", kind, size_bytes, time_s, relaxed_by))
    return tuple(planned)


def _interval(draw: Draw, rng: Random) -> float:
    if draw.rhythm == "process":
        return rng.expovariate(1 / draw.interval_s)
    # A Poisson number: how many arrivals of rate 1 there are in such a time.
    count, passed = 0, rng.expovariate(1.0)
    while passed < draw.interval_s:
        count += 1
        passed += rng.expovariate(1.0)
    return float(count)


def _splits(size_bytes: float) -> list[float]:
    """Full blocks, and what is left."""
    count = math.ceil(size_bytes / BLOCK_BYTES)
    return [BLOCK_BYTES] * (count - 1) + [size_bytes - BLOCK_BYTES * (count - 1)]


def _arrival(job: _Planned, draw: Draw, luck: str, deadline_s: float | None) -> Arrival:
    kind, splits = job.kind, _splits(job.size_bytes)
    rng = Random(f"{draw.number}/{luck}/{job.id}")
    map_times_s = tuple(
        (kind.map_start_s + kind.map_s_per_gb * split_bytes / GB) * lucky(rng, NOISE)
        for split_bytes in splits
    )
    share_gb = job.size_bytes * kind.selectivity / kind.reduces / GB
    phases = ((kind.shuffle, SHUFFLE_NOISE), (kind.merge, NOISE), (kind.reduce, NOISE))
    reduce_times_s = tuple(
        draw.reduce_pace
        * sum((start + rate * share_gb) * lucky(rng, noise) for (start, rate), noise in phases)
        for _ in range(kind.reduces)
    )
    truth = JobTruth(
        map_s=math.fsum(map_times_s) / len(splits),
        reduce_s=math.fsum(reduce_times_s) / kind.reduces,
        map_output_bytes=job.size_bytes * kind.selectivity / len(splits),
        map_times_s=map_times_s,
        reduce_times_s=reduce_times_s,
    )
    spec = Job(
        "job",
        map=Phase(len(splits), BLOCK_BYTES, tuple(splits)),
        reduce=Phase(kind.reduces),
        scans=(job.id,),
    )
    query = Query(
        job.id,
        (spec,),
        tenant="bench",
        submit_s=job.submit_s,
        deadline_s=deadline_s,
        class_name=kind.name,
    )
    return Arrival(query, {"job": truth}, size_bin=kind.name)


def lucky(rng: Random, spread: float) -> float:
    """A log-normal factor of mean 1."""
    return math.exp(rng.gauss(0.0, spread) - spread**2 / 2)

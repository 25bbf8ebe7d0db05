"""A heavy-tailed workload for benchmarks: a few jobs have most of the tasks."""

from __future__ import annotations

from random import Random

from queryard.core.model import Job, Phase, Query

from .cluster import numbered
from .generate import submit_poisson
from .model import Arrival, JobTruth, Workload

# Tail index of the task counts: below 2 their variance has no bound.
TAIL = 1.3
# The largest job, in means; without a bound one job could be the whole workload.
LARGEST = 100.0
MEDIAN_TASK_S, TASK_SPREAD = 10.0, 0.8
REDUCE_SHARE = 1 / 3


def heavy_tailed(jobs: int, tasks: int, slots: int, seed: int = 0, load: float = 0.9) -> Workload:
    """`jobs` single-job queries with about `tasks` tasks in all, at `load` of `slots`.

    Task counts are Pareto, mean task times log-normal, arrivals Poisson; every third job has
    reduces, one for four maps. There are no tables: no task is local anywhere.

    >>> workload = heavy_tailed(100, 5_000, 20)
    >>> len(workload.arrivals), abs(workload.tasks / 5_000 - 1) < 0.05
    (100, True)
    """
    rng = Random(f"{seed}/heavy-tailed")
    mean = TAIL / (TAIL - 1)
    weights = [min(rng.paretovariate(TAIL), LARGEST * mean) for _ in range(jobs)]
    scale = tasks / sum(weights)
    arrivals = []
    for query_id, weight in zip(numbered("q", jobs), weights, strict=True):
        size = max(1, round(weight * scale))
        reduces = size // 5 if rng.random() < REDUCE_SHARE else 0
        job = Job("job", map=Phase(size - reduces), reduce=Phase(reduces) if reduces else None)
        map_s, reduce_s = (rng.lognormvariate(0.0, TASK_SPREAD) * MEDIAN_TASK_S for _ in "mr")
        truth = JobTruth(map_s=map_s)
        if reduces:
            truth = JobTruth(map_s=map_s, shuffle_s=0.3 * reduce_s, reduce_s=0.7 * reduce_s)
        arrivals.append(Arrival(Query(query_id, (job,)), {"job": truth}, size_bin=_bin(size)))
    name = f"heavy-tailed ({jobs} jobs, seed {seed})"
    return Workload(name, submit_poisson(arrivals, load * slots, rng))


def _bin(tasks: int) -> str:
    """The power of ten at or above a task count."""
    return f"up to {10 ** len(str(max(1, tasks - 1)))}"

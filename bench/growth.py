"""What a launched task costs as the number of waiting queries grows."""

from __future__ import annotations

from statistics import median

from queryard.core.model import Job, Node, Phase, Query
from queryard.policies import resolve_profile
from queryard.sim import simulate
from queryard.workload.model import Arrival, JobTruth, Workload

TASKS_PER_QUERY = 10
NODES = [Node(f"n{i}", 10) for i in range(4)]


def waiting(queries: int) -> Workload:
    """All queries at once, each with ten tasks of its own duration, a third with deadlines."""
    arrivals = tuple(
        Arrival(
            Query(
                f"q{i:05}",
                (Job("job", map=Phase(TASKS_PER_QUERY)),),
                deadline_s=1e6 + i if i % 3 else None,
            ),
            {"job": JobTruth(map_s=1.0 + (i * 7919 % 1000) / 1000)},
        )
        for i in range(queries)
    )
    return Workload(f"{queries} waiting", arrivals)


def cost_per_task_s(profile: str, queries: int, repeats: int) -> float:
    costs = []
    for _ in range(repeats):
        run = simulate(waiting(queries), NODES, resolve_profile(profile), keep_journal=False)
        costs.append(run.wall_s / run.tasks)
    return median(costs)


def growth(profile: str, few: int = 100, many: int = 10_000, repeats: int = 3) -> float:
    """Cost per launched task with `many` waiting queries, over that with `few`."""
    return cost_per_task_s(profile, many, repeats) / cost_per_task_s(profile, few, repeats)

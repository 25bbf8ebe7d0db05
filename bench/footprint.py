"""Memory of a million tasks, and the time a fork takes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from statistics import median

from queryard.core.model import Job, Node, Phase, Query
from queryard.policies import resolve_profile
from queryard.sim.run import build
from queryard.workload.model import Arrival, JobTruth, Workload

MILLION = """
import json, resource, sys
from queryard.policies import resolve_profile
from queryard.sim import simulate
from bench.bare import bare_fifo
from bench.throughput import NODES, SLOTS, contended
workload = contended(2_000, 1_000_000, 1)
run = simulate(workload, NODES, resolve_profile(sys.argv[1]), keep_journal=False)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
bare, _ = bare_fifo(workload, SLOTS, 0.0, 1)
speed = run.tasks / run.wall_s
print(json.dumps({"tasks_per_s": speed, "ratio": speed / bare, "peak_mib": peak / 1024}))
"""


def million_tasks(profile: str) -> dict[str, float]:
    """A process of its own runs a million tasks; its speed and its peak memory."""
    done = subprocess.run(
        [sys.executable, "-c", MILLION, profile], capture_output=True, text=True, check=True
    )
    result: dict[str, float] = json.loads(done.stdout)
    return result


def busy_kernel(profile: str, queries: int = 1_000, tasks: int = 100_000):  # type: ignore[no-untyped-def]
    """A kernel in the middle of its work: three jobs per query, all slots busy."""
    each = tasks // queries // 3
    jobs = (
        Job("scan", map=Phase(each), reduce=Phase(2)),
        Job("other", map=Phase(each)),
        Job("join", upstream=("scan", "other"), map=Phase(each)),
    )
    arrivals = tuple(
        Arrival(Query(f"q{i:04}", jobs), {job.name: JobTruth(map_s=10.0) for job in jobs})
        for i in range(queries)
    )
    nodes = [Node(f"n{i:02}", 10) for i in range(20)]
    driver = build(Workload("busy", arrivals), nodes, resolve_profile(profile))
    driver.run(until_s=15.0)
    return driver.scheduler


def fork_s(profile: str, repeats: int = 15) -> float:
    """Seconds to fork 1,000 queries with 100,000 pending tasks."""
    scheduler = busy_kernel(profile)
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        scheduler.fork()
        times.append(time.perf_counter() - began)
    return median(times)

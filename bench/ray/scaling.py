"""How a cluster scales: simulated with measured task times, beside live points.

First, queries of TPC-H run staged at one node of two slots, which tells how long their tasks take.
Then clusters of 1 to 256 nodes are simulated with as many times the tasks per query, all queries at
once: the kernel is the real one and its processor time counts, as does that of the driver per
launch. Efficiency is the time at one node over the time at so many; beside it what it would be if
scheduling took no time, which is lost to the shape of the queries. Last, live: tasks that only
wait, as long as the measured ones took in the mean, at 1, 2 and 4 nodes, beside the same simulated.

python -m bench.ray.scaling [--launch-ms 1.0] [--quick]: five minutes, or two with --quick.
`--launch-ms` is what `bench.ray.launches` finds: 20 % of a core at 200 per second are 1 ms.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.progress import Progress

import queryard
import queryard.sql.planner
from queryard.backends.ray import opening
from queryard.core.model import Job, Phase, Query
from queryard.engine.staged.query import StagedQuery
from queryard.workload.tpch import query

from .launches import SQL, numbers
from .nodes import Nodes, all_joined, nodes
from .setting import FEW, QUERIES, SESSION, options, table, tpch
from .simulated import FREE, Costs, Load, grown, simulated
from .sleeping import TASK_S, SleepingWorkplace

SIMULATED, LIVE = (1, 4, 16, 64, 256), (1, 2, 4)
SLOTS = 2
# Maps per node at the live points.
MAPS = 30


def main(given: Sequence[str] | None = None) -> None:
    parser = options(__doc__)
    parser.add_argument("--launch-ms", type=float, default=1.0, help="of the driver, per launch")
    wanted = parser.parse_args(given)
    costs = Costs(wanted.launch_ms / 1e3)
    with Progress() as progress:
        load = measured(wanted, progress)
        task_s = statistics.mean(load.seconds.values())
        points = live(wanted.data, task_s, progress)
        _show_simulated(load, costs, progress, SIMULATED[:-1] if wanted.quick else SIMULATED)
    _show_live(points, task_s, costs)


def measured(wanted: Any, progress: Progress) -> Load:
    """The jobs of some queries of TPC-H, and how long their tasks took live."""
    taken: dict[tuple[str, str], list[float]] = defaultdict(list)
    plans: dict[str, tuple[Job, ...]] = {}
    done = StagedQuery.done

    def noted(self: StagedQuery, task: Any, outcome: Any) -> bool:
        taken[f"{self.query}/{task.job}", task.kind].append(outcome.seconds)
        plans[self.query] = self.plan.to_jobs()
        return done(self, task, outcome)

    StagedQuery.done = noted  # type: ignore[method-assign]
    chosen = FEW if wanted.quick else QUERIES
    doing = progress.add_task("task times", total=len(chosen))
    folder = tpch(wanted.data, wanted.scale)
    with queryard.connect(
        folder, backend="ray", address="local", slots=SLOTS, memory=wanted.memory, **SESSION
    ) as session:
        session.sql(query(6), plan="staged").fetchall()
        plans.clear()
        for number in chosen:
            session.sql(query(number), plan="staged").fetchall()
            progress.advance(doing)
    StagedQuery.done = done  # type: ignore[method-assign]
    queries = [Query(name, tuple(map(_bare, jobs))) for name, jobs in plans.items()]
    return Load(queries, {key: statistics.mean(each) for key, each in taken.items()})


def _bare(job: Job) -> Job:
    """A job without what it scans: in the simulation no place is nearer than another."""
    return Job(job.name, upstream=job.upstream, map=job.map, reduce=job.reduce)


def live(data: Path, task_s: float, progress: Progress) -> dict[int, float]:
    """Seconds that tasks took that wait, by the number of nodes."""
    os.environ[TASK_S] = str(task_s)
    before = opening.RayBackend, queryard.sql.planner.plan_staged
    opening.RayBackend = partial(  # type: ignore[misc, assignment]
        before[0], open_workplace=SleepingWorkplace
    )
    small = partial(before[1], target_bytes=1)
    queryard.sql.planner.plan_staged = lambda *a, **k: small(*a)
    doing = progress.add_task("live", total=len(LIVE))
    found = {}
    try:
        with nodes() as cluster:
            for many in LIVE:
                found[many] = _waited(cluster, numbers(data / "launches", MAPS * many), many)
                progress.advance(doing)
    finally:
        opening.RayBackend, queryard.sql.planner.plan_staged = before  # type: ignore[misc]
    return found


def _waited(cluster: Nodes, folder: Path, many: int) -> float:
    while len(cluster.alive) < many:
        cluster.add(SLOTS)
    with queryard.connect(
        folder, backend="ray", address=cluster.address, memory="1 GB", **SESSION
    ) as session:
        all_joined(session, many)
        session.sql(SQL, plan="staged").fetchall()
        seconds = []
        for _ in range(3):
            began_s = time.perf_counter()
            session.sql(SQL, plan="staged").fetchall()
            seconds.append(time.perf_counter() - began_s)
        return statistics.median(seconds)


def _show_simulated(load: Load, costs: Costs, progress: Progress, sizes: Sequence[int]) -> None:
    doing = progress.add_task("simulated", total=len(sizes))
    rows: list[tuple[object, ...]] = []
    alone_s = simulated(load, 1, SLOTS, costs).last_s
    free_s = simulated(load, 1, SLOTS, FREE).last_s
    for many in sizes:
        larger = grown(load, many)
        found = simulated(larger, many, SLOTS, costs)
        free = simulated(larger, many, SLOTS, FREE)
        rows.append(
            (
                many,
                f"{found.last_s:.2f}",
                f"{alone_s / found.last_s:.2f}",
                f"{free_s / free.last_s:.2f}",
                found.launches,
                f"{found.launches / found.last_s:.0f}",
                f"{found.driver_share:.0%}",
                f"{found.kernel_s / found.launches * 1e6:.0f}",
                f"{found.asking_s / (found.last_s * many * SLOTS):.1%}",
            )
        )
        progress.advance(doing)
    columns = (
        "nodes",
        "seconds",
        "efficiency",
        "if scheduling were free",
        "launches",
        "per second",
        "driver busy",
        "kernel, µs per launch",
        "slots asking for rows",
    )
    table("Simulated, data and tasks grow with the nodes", columns, rows)


def _show_live(points: dict[int, float], task_s: float, costs: Costs) -> None:
    one = Query("q", (Job("scan", map=Phase(MAPS), reduce=Phase(1)),))
    load = Load([one], {("q/scan", "map"): task_s, ("q/scan", "reduce"): task_s})
    rows = []
    for many, live_s in points.items():
        found = simulated(grown(load, many), many, SLOTS, costs)
        rows.append(
            (many, f"{live_s:.2f}", f"{found.last_s:.2f}", f"{points[LIVE[0]] / live_s:.2f}")
        )
    table(
        f"Live: tasks that wait {task_s * 1e3:.0f} ms, {MAPS} per node",
        ("nodes", "live, s", "simulated, s", "efficiency live"),
        rows,
    )


if __name__ == "__main__":
    main()

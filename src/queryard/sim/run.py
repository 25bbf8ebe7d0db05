"""One call to simulate a workload under a profile."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from queryard.core import events as ev
from queryard.core.errors import QueryardError
from queryard.core.journal import Journal
from queryard.core.model import UNBOUNDED, Node, Query
from queryard.core.scheduler import Scheduler
from queryard.core.state import Settings
from queryard.policies import compose, resolve_profile
from queryard.workload.model import Arrival, Workload

from .conditions import Conditions
from .driver import SimDriver
from .estimates import EstimateSource, estimate_source
from .ordering import CLUSTER
from .truth import Truth


@dataclass(frozen=True, slots=True)
class SimResult:
    """What came of a simulated run."""

    journal: Journal
    ends: Mapping[str, float]
    failed: Mapping[str, str]
    unfinished: int
    tasks: int
    wall_s: float


def build(
    workload: Workload,
    nodes: Sequence[Node],
    profile: str | Mapping[str, Any],
    *,
    conditions: Conditions | None = None,
    estimates: str | EstimateSource = "oracle",
    seed: int = 0,
    settings: Settings | None = None,
    keep_journal: bool = True,
    on_end: Callable[[str], None] | None = None,
    kernel: type[Scheduler] = Scheduler,
) -> SimDriver:
    """A driver ready to run the workload; `kernel` lets tests watch every step."""
    if not nodes:
        raise QueryardError("a cluster needs at least one node; give --nodes 16x12, for example")
    if isinstance(profile, str):
        profile = resolve_profile(profile)
    settings = replace(settings or Settings(seed=seed), folds=True)
    journal = Journal(asdict(settings), dict(profile)) if keep_journal else None
    scheduler = kernel(compose, profile, settings, journal)
    truth = Truth(conditions or Conditions(), seed)
    source = estimate_source(estimates, seed) if isinstance(estimates, str) else estimates
    driver = SimDriver(scheduler, truth, estimates=source, seed=seed, on_end=on_end)
    for table in workload.tables:
        driver.post(0.0, CLUSTER, ev.TableChanged(0.0, table))
    driver.add_nodes(nodes, 0.0)
    for arrival in workload.arrivals:
        driver.add_arrival(arrival)
    return driver


def simulate(
    workload: Workload,
    nodes: Sequence[Node],
    profile: str | Mapping[str, Any],
    *,
    conditions: Conditions | None = None,
    estimates: str = "oracle",
    seed: int = 0,
    slow_start: float = 1.0,
    keep_journal: bool = True,
    on_progress: Callable[[int], None] | None = None,
) -> SimResult:
    """Run a workload to its end; `on_progress` hears how many queries have ended."""
    ended = 0

    def note_end(query: str) -> None:
        nonlocal ended
        ended += 1
        if on_progress is not None:
            on_progress(ended)

    driver = build(
        workload,
        nodes,
        profile,
        conditions=conditions,
        estimates=estimates,
        seed=seed,
        settings=Settings(slow_start=slow_start, seed=seed),
        keep_journal=keep_journal,
        on_end=note_end if on_progress else None,
    )
    return run_to_end(driver)


def run_to_end(driver: SimDriver) -> SimResult:
    """Let a driver run until every query has ended."""
    began = time.perf_counter()
    driver.run()
    return SimResult(
        journal=driver.scheduler.journal or Journal(),
        ends=driver.ends,
        failed=driver.failed,
        unfinished=driver.unfinished,
        tasks=driver.scheduler.state.next_launch,
        wall_s=time.perf_counter() - began,
    )


def alone_times(
    workload: Workload,
    nodes: Sequence[Node],
    conditions: Conditions | None = None,
    *,
    slow_start: float = 1.0,
    seed: int = 0,
) -> dict[str, float]:
    """How long each query takes with the whole cluster to itself, and without mishaps."""
    alone: dict[str, float] = {}
    conditions = replace(conditions or Conditions(), task_failure=0.0, node_mtbf_s=0.0)
    for arrival in workload.arrivals:
        read = {name for job in arrival.query.jobs for name in job.scans}
        tables = tuple(table for table in workload.tables if table.name in read)
        single = Workload(workload.name, (Arrival(arrival.query, arrival.truth),), tables)
        run = simulate(
            single,
            _enough(nodes, arrival.query, conditions),
            {"order": "fifo"},
            conditions=conditions,
            seed=seed,
            slow_start=slow_start,
            keep_journal=False,
        )
        query = arrival.query
        if query.id in run.ends:
            alone[query.id] = run.ends[query.id] - query.submit_s
    return alone


def _enough(nodes: Sequence[Node], query: Query, conditions: Conditions) -> Sequence[Node]:
    """As many nodes as a query can fill, where all are equal and placement does not matter.

    A query of ten tasks takes as long on three nodes as on three hundred.
    """
    if not nodes:
        return nodes
    first = nodes[0]
    place_matters = conditions.contention or conditions.remote_penalty or conditions.rack_penalty
    if place_matters or conditions.memory_cache_bytes or first.memory_bytes != UNBOUNDED:
        return nodes
    if any(replace(node, id=first.id, rack=first.rack) != first for node in nodes):
        return nodes
    slots = 0
    for job in query.jobs:
        slots += job.maps + job.reduces
        slots += job.divisible.width if job.divisible else 0
    return nodes[: max(1, math.ceil(slots / first.slots))]

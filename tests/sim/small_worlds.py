"""Workloads of a few lines, and what to look at in the journal of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.journal import Journal
from queryard.core.model import Divisible, Job, Phase, Query, Split, Table
from queryard.sim import Conditions, SimResult, simulate
from queryard.workload.model import Arrival, JobTruth, Workload


def arrival(
    id: str,
    *jobs: tuple[Job, JobTruth] | tuple[Job, float],
    at: float = 0.0,
    cancel_s: float | None = None,
    **query: Any,
) -> Arrival:
    """A query; of a job one gives its truth, or just the seconds of a map (of all its work)."""
    truths: dict[str, JobTruth] = {}
    for job, truth in jobs:
        if not isinstance(truth, JobTruth):
            truth = JobTruth(work_s=truth) if job.divisible else JobTruth(map_s=truth)
        truths[job.name] = truth
    spec = Query(id, tuple(job for job, _ in jobs), submit_s=at, **query)
    return Arrival(spec, truths, cancel_s)


def maps(count: int, reduces: int = 0, name: str = "j", **job: Any) -> Job:
    return Job(name, map=Phase(count), reduce=Phase(reduces) if reduces else None, **job)


def divisible(width: int, batches: int = 1, nested: bool = False, name: str = "j") -> Job:
    return Job(name, divisible=Divisible(width, batches, nested))


def scan(table: Table, reduces: int = 0, name: str = "j", **job: Any) -> Job:
    """A job with a map for every split of a table."""
    return Job(
        name,
        map=Phase(len(table.splits), table.splits[0].bytes),
        reduce=Phase(reduces) if reduces else None,
        scans=(table.name,),
        **job,
    )


def table(name: str, splits: int, *nodes: str, bytes: float = 1.0) -> Table:
    return Table(name, tuple(Split(bytes, nodes) for _ in range(splits)))


def run(
    arrivals: list[Arrival],
    nodes: Any,
    profile: Mapping[str, Any] | None = None,
    tables: tuple[Table, ...] = (),
    **simulated: Any,
) -> SimResult:
    """Simulate; whatever is a condition goes into the conditions."""
    known = set(Conditions.__dataclass_fields__)
    conditions = {key: simulated.pop(key) for key in list(simulated) if key in known}
    workload = Workload("small", tuple(arrivals), tables)
    return simulate(
        workload,
        nodes,
        profile or {"order": "fifo"},
        conditions=Conditions(**conditions),
        **simulated,
    )


# --- looking at a journal ------------------------------------------------------------------------


def commands(journal: Journal, kind: type) -> list[tuple[float, Any]]:
    return [(s.time_s, c) for s in journal.steps for c in s.commands if isinstance(c, kind)]


def events(journal: Journal, kind: type) -> list[Any]:
    return [event for step in journal.steps for event in step.events if isinstance(event, kind)]


def spans(journal: Journal) -> dict[str, tuple[float, float, str]]:
    """(start, end, node) of every task that finished, by its name; the last attempt counts."""
    launches = {c.number: c for _, c in commands(journal, do.Launch)}
    return {
        str(task): (launches[e.launch].time_s, e.time_s, launches[e.launch].node)
        for e in events(journal, ev.TaskFinished)
        for task in launches[e.launch].tasks
    }


def seconds(journal: Journal) -> dict[str, float]:
    """How long every task took."""
    return {task: end - start for task, (start, end, _) in spans(journal).items()}

"""What is expected of a query as a whole, from what is expected of its operators or jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from queryard.core.model import JobId, Query
from queryard.engine.explained import explained
from queryard.engine.plans.tree import PlanNames, read_plan
from queryard.engine.syntax.classify import Classified
from queryard.estimate.expected import Expected, expected_memory, expected_work
from queryard.results.estimate import Estimate

from .client import Client
from .request import QueryRequest

if TYPE_CHECKING:
    from queryard.engine.staged.explained import TaskSeconds
    from queryard.results.explanation import ExplainedJob
    from queryard.sql.planner import StagedPlan

ESTIMATED = "estimated"


def native_estimate(
    client: Client,
    request: QueryRequest,
    statement: Classified,
    root: Mapping[str, Any] | None,
    reasons: Sequence[str] = (),
) -> Estimate:
    """What is expected of a statement with this plan of DuckDB's; None: there is no plan."""
    host = client.host
    jobs: tuple[ExplainedJob, ...] = ()
    rows, read = None, 0.0
    if root is None:
        prediction = host.estimator.first(request)
        memory = expected_memory(prediction, ())
    else:
        foreseen = host.estimator.foresee(request, statement, root)
        prediction, features = foreseen.prediction, foreseen.features
        names = PlanNames(client.catalog, statement.names)
        jobs = explained(read_plan(root, names), foreseen.operators)
        rows = foreseen.operators[0].rows
        read = sum(scan.bytes for scan in features.scans)
        memory = expected_memory(prediction, (features,))
    speedup = host.ask(lambda coordinator: coordinator.speedup(request.template, prediction))
    slots = host.backend.width  # it runs on one host
    work_s = expected_work(prediction)
    return Estimate(
        sql=statement.sql,
        plan="native",
        by=prediction.by,
        rows=rows,
        bytes_read=read,
        work_s=work_s,
        memory_bytes=memory,
        slots=slots,
        useful_slots=speedup.useful(slots),
        alone_s=work_s.times(1 / speedup.speed(slots)),
        jobs=jobs,
        reasons=tuple(reasons),
    )


def expected_tasks(
    client: Client, request: QueryRequest, plan: StagedPlan
) -> tuple[TaskSeconds, Mapping[str, float]]:
    """What tasks of each job take: as those of earlier queries of the template, else by bytes; and
    how doubtful the work of each job is.
    """
    from queryard.engine.staged.times import planned_query

    query = Query(ESTIMATED, plan.to_jobs(), class_name=request.template)
    planned = planned_query(plan)
    found, doubts = client.host.ask(
        lambda coordinator: (
            coordinator.task_estimates(query, planned),
            coordinator.task_doubts(query, planned),
        )
    )
    seconds = {JobId.of(event.job).name: (event.map_s or 0.0, event.reduce_s) for event in found}
    return seconds, doubts


def staged_estimate(
    client: Client, plan: StagedPlan, jobs: Sequence[ExplainedJob], seconds: TaskSeconds
) -> Estimate:
    """What is expected of a staged plan with these jobs."""
    from queryard.engine.staged.times import task_seconds

    slots = client.host.backend.slots
    work_s = _total([job.seconds_expected for job in jobs])
    alone_s = _alone_s(jobs, seconds, slots)
    widest = max(max(job.map_tasks or 0, job.reduce_tasks or 0) for job in jobs)
    return Estimate(
        sql=plan.sql,
        plan="staged",
        by="bytes" if seconds == task_seconds(plan) else "template",
        rows=jobs[-1].rows_expected,
        bytes_read=sum(table.bytes for job in plan.jobs for table in job.tables),
        work_s=work_s,
        memory_bytes=_memory(jobs),
        slots=slots,
        useful_slots=min(slots, widest),
        alone_s=work_s.times(alone_s / work_s.value),
        jobs=tuple(jobs),
    )


def _total(parts: Sequence[Expected | None]) -> Expected:
    """A sum; errors of its parts run the same way."""
    known = [part for part in parts if part is not None]
    return Expected(
        sum(part.value for part in known),
        sum(part.low for part in known),
        sum(part.high for part in known),
    )


def _memory(jobs: Sequence[ExplainedJob]) -> Expected:
    """The most that a job holds together with what it reads of others."""
    left = {job.name: job.bytes_expected for job in jobs}
    held = [_total([job.memory_expected, *(left[name] for name in job.inputs)]) for job in jobs]
    return max(held, key=lambda one: one.value)


def _alone_s(jobs: Sequence[ExplainedJob], seconds: TaskSeconds, slots: int) -> float:
    """The longest chain of jobs, each in waves; at least all work on all slots."""
    ends: dict[str, float] = {}
    for job in jobs:
        map_s, reduce_s = seconds[job.name]
        waves_s = math.ceil((job.map_tasks or 0) / slots) * map_s
        waves_s += math.ceil((job.reduce_tasks or 0) / slots) * (reduce_s or 0.0)
        ends[job.name] = waves_s + max((ends[name] for name in job.inputs), default=0.0)
    work_s = sum(job.seconds_expected.value for job in jobs if job.seconds_expected is not None)
    return max(ends[jobs[-1].name], work_s / slots)

"""Which jobs of a Spark log make up a query: an SQL execution, a job group, an application.

An SQL execution with all its Spark jobs is one query. Of the jobs outside of any, those of a job
group are one: notebooks, Livy and other servers set a group for each statement. A group of which
nothing has run for a minute was asked for again: a notebook gives a paragraph the same group
whenever it is run. Jobs without a group are queries of their own; but where an application has no
SQL at all, they are one together.

The start of a job may be missing from a log. Its stages then name their SQL execution or group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .model import as_id
from .spark_log import Origin, SparkJob, SparkLog, SparkStage

# The gap between two jobs of a statement is rarely longer; between two runs by a person it is.
PAUSE_MS = 60_000


@dataclass(slots=True)
class SparkQuery:
    """The jobs of one query, its name, and when it began and ended, if recorded."""

    name: str
    jobs: Sequence[SparkJob]
    label: str
    began_ms: int | None = None
    ended_ms: int | None = None


@dataclass(slots=True)
class Queries:
    """All queries of a log, and what was found on the way to them."""

    queries: list[SparkQuery] = field(default_factory=list)
    groups: int = 0
    # Of these, the ones that are queries.
    groups_outside_sql: int = 0
    # Stages that no job lists and that name their origin; tasks of those that name none.
    stages_given: int = 0
    tasks_lost: int = 0


def queries_of(log: SparkLog) -> Queries:
    """Put the jobs of a log together."""
    found = Queries()
    jobs = [*log.jobs.values(), *_unlisted(log, found)]
    by_execution: dict[str, list[SparkJob]] = {}
    by_group: dict[str, list[SparkJob]] = {}
    alone: list[SparkJob] = []
    for job in jobs:
        if job.origin.execution:
            by_execution.setdefault(job.origin.execution, []).append(job)
        elif job.origin.group:
            by_group.setdefault(job.origin.group, []).append(job)
        else:
            alone.append(job)
    for number, members in by_execution.items():
        name = f"sql{as_id(number)}"
        execution = log.executions.get(number)
        if execution is None:  # its start is missing
            found.queries.append(SparkQuery(name, members, _description(members)))
        else:
            times_ms = execution.began_ms, execution.ended_ms
            found.queries.append(SparkQuery(name, members, execution.description, *times_ms))
    found.queries += _groups(log, by_group)
    if alone and not by_execution:
        found.queries.append(SparkQuery("app", alone, log.app))
    else:
        found.queries += [SparkQuery(_name(job), [job], job.origin.description) for job in alone]
    found.groups = len({job.origin.group for job in jobs if job.origin.group})
    found.groups_outside_sql = len(by_group)
    return found


def began_ms(log: SparkLog, job: SparkJob) -> int | None:
    """When a job was submitted, else when its first task was launched; None if none was."""
    if job.submitted_ms is not None:
        return job.submitted_ms
    return min((stage.launched_ms for stage in _ran(log, job)), default=None)


def ended_ms(log: SparkLog, job: SparkJob) -> int | None:
    """When a job ended, else when its last task did; None if none did."""
    if job.ended_ms is not None:
        return job.ended_ms
    return max((stage.finished_ms for stage in _ran(log, job)), default=None)


def _ran(log: SparkLog, job: SparkJob) -> Iterable[SparkStage]:
    stages = (log.stages.get(number) for number in job.stages)
    return (stage for stage in stages if stage is not None and stage.tasks)


def _unlisted(log: SparkLog, found: Queries) -> list[SparkJob]:
    """Jobs made up for stages that no job lists: a last stage with all that it needs."""
    stray = {
        stage.id: stage
        for stage in log.stages.values()
        if stage.tasks and stage.id not in log.listed
    }
    if not stray:
        return []
    known = [job.origin for job in log.jobs.values()]
    known += [stage.origin for stage in stray.values() if stage.origin is not None]
    if any(origin.execution for origin in known):
        # It may be of any SQL execution or of none.
        lost = [stage for stage in stray.values() if stage.origin is None]
        found.tasks_lost = sum(len(stage.tasks) for stage in lost)
        for stage in lost:
            del stray[stage.id]
    found.stages_given = len(stray)
    jobs = []
    for last in sorted(stray, reverse=True):
        members = _needed(last, stray)
        if not members:
            continue
        submitted = [stage.submitted_ms for stage in members if stage.submitted_ms is not None]
        job = SparkJob(
            None,
            min(submitted, default=None),
            tuple(sorted(stage.id for stage in members)),
            members[0].origin or Origin(),
            has_ended=log.ended_ms is not None,
        )
        jobs.append(job)
    return jobs[::-1]


def _needed(last: int, stray: dict[int, SparkStage]) -> list[SparkStage]:
    """A stage and what it needs of the same origin, taken out of those that are left."""
    members: list[SparkStage] = []
    left = [last]
    while left:
        stage = stray.get(left.pop())
        if stage is not None and (not members or stage.origin == members[0].origin):
            members.append(stray.pop(stage.id))
            left += stage.parents or ()
    return members


def _groups(log: SparkLog, by_group: dict[str, list[SparkJob]]) -> list[SparkQuery]:
    queries: list[SparkQuery] = []
    names: set[str] = set()
    for group, members in by_group.items():
        for jobs in _runs(log, members):
            short = f"group-{as_id(' '.join(group.split()))[:80]}"
            name, number = short, 1
            while name in names:
                number += 1
                name = f"{short}.{number}"
            names.add(name)
            queries.append(SparkQuery(name, jobs, _description(jobs) or group))
    return queries


def _runs(log: SparkLog, jobs: Iterable[SparkJob]) -> list[list[SparkJob]]:
    """The jobs of a group, apart where there was nothing of it for long."""
    runs: list[list[SparkJob]] = []
    last_ms = 0
    timed = [(began_ms(log, job), job) for job in jobs]
    # Jobs without times come last, and begin no new run.
    for at_ms, job in sorted(timed, key=lambda pair: (pair[0] is None, pair[0] or 0)):
        if not runs or (at_ms is not None and at_ms - last_ms >= PAUSE_MS):
            runs.append([])
        runs[-1].append(job)
        last_ms = max(last_ms, at_ms or 0, ended_ms(log, job) or 0)
    return runs


def _description(jobs: Iterable[SparkJob]) -> str:
    return next((job.origin.description for job in jobs if job.origin.description), "")


def _name(job: SparkJob) -> str:
    return f"stage{job.stages[-1]}" if job.id is None else f"job{job.id}"

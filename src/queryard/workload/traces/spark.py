"""Spark event logs as workloads: SQL executions are queries, their stages are jobs.

`spark_queries` says which Spark jobs make up a query. Outside of SQL, each of them comes after
those that had ended when it was submitted.

With adaptive execution a shuffle is a Spark job of its own, and later jobs list its stage again
under another number without running it. Such a stage is known by the RDD it computes. A stage with
broadcast rows is listed as parent of no stage; the next stage to begin after its end is taken to
need it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from queryard.core.model import MAP, REDUCE, JobId, Operator, Query
from queryard.workload.model import Arrival, JobTruth, Workload

from .model import Locality, ReadOptions, TaskRecord, Trace, as_id, measured_job
from .spark_cluster import spark_nodes
from .spark_log import BACKWARD, SparkJob, SparkLog, SparkStage, SparkTask, read_log
from .spark_queries import SparkQuery, began_ms, ended_ms, queries_of
from .text import left_out, name_of

NAME = "Spark event log"
_PLACES: Mapping[str, Locality] = {
    "PROCESS_LOCAL": "local",
    "NODE_LOCAL": "local",
    "RACK_LOCAL": "rack",
    "ANY": "remote",
}
# Names of counts: of jobs without a recorded start, and of job groups.
_UNLISTED = "stages that no job lists"
_GROUPS, _GROUPS_OUTSIDE = "job groups", "job groups outside of SQL"


def recognises(head: str) -> bool:
    return head.lstrip().startswith("{") and '"Event"' in head.split("\n", 1)[0]


def read(place: Path, options: ReadOptions) -> Trace:
    """One application, from a file or from the folder of a rolling log."""
    return trace_of(place, [read_log(place)])


def trace_of(place: Path, logs: Sequence[SparkLog]) -> Trace:
    """Applications that shared a cluster, each at its own time."""
    zero_ms = min((time for log in logs for time in _first_ms(log)), default=0)
    apps = [log.app for log in logs]
    arrivals: list[Arrival] = []
    tasks: list[TaskRecord] = []
    finished_s: dict[str, float] = {}
    notes: list[str] = []
    dropped: Counter[str] = Counter()
    counts: dict[str, float] = {}
    for number, log in enumerate(logs):
        prefix = f"{as_id(log.app)}." if len(logs) > 1 else ""
        if apps.count(log.app) > 1:  # it was tried again
            prefix += f"{apps[:number].count(log.app) + 1}."
        application = _Application(log, prefix, zero_ms)
        application.make()
        arrivals += application.arrivals
        tasks += application.tasks
        finished_s |= application.finished_s
        notes += application.notes
        dropped += application.dropped
        for name, count in {**log.counts, **application.counts}.items():
            counts[name] = counts.get(name, 0.0) + count
    if len(logs) > 1:
        counts["applications"] = len(logs)
    notes += [left_out(count, what) for what, count in sorted(dropped.items())]
    begins = [log.began_ms for log in logs if log.began_ms is not None]
    ended = [log.ended_ms for log in logs if log.ended_ms is not None]
    if begins and ended and len(ended) == len(logs):
        counts["application ms"] = max(ended) - min(begins)
    failed = [
        f"{name}: {counts[name]:,.0f}"
        for name in ("jobs failed", "stage attempts failed")
        if counts.get(name)
    ]
    if len(begins) < len(logs):
        which = "the log has" if len(logs) == 1 else f"{len(logs) - len(begins)} of the logs have"
        notes.append(
            f"{which} no SparkListenerApplicationStart: its user is not known, and "
            "its time counts from its first event"
        )
    notes += _put_together(counts)
    if counts.get(BACKWARD):
        notes.append(f"{BACKWARD} and are left out: {counts[BACKWARD]:,.0f}")
    if failed:
        notes.append(f"{', '.join(failed)}; only tasks that succeeded are replayed")
    if arrivals:
        notes.append(
            "planning and other work of the driver is not replayed: only tasks take slots, and a "
            "stage begins when those before it have ended"
        )
    if any(task.locality for task in tasks):
        notes.append(
            "where blocks lay is not replayed: placement, remote_penalty and rack_penalty have no "
            "effect"
        )
    name = name_of(place)
    nodes, came_and_went = spark_nodes(logs, tasks)
    notes += came_and_went
    workload = Workload(name, tuple(arrivals), nodes=nodes)
    return Trace(
        name, NAME, workload, tuple(tasks), finished_s, counts, tuple(notes), came_and_went
    )


def _first_ms(log: SparkLog) -> Iterator[int]:
    """When an application began; if that is not recorded, candidates for its first event."""
    if log.began_ms is not None:
        yield log.began_ms
        return
    yield from (execution.began_ms for execution in log.executions.values())
    yield from (job.submitted_ms for job in log.jobs.values() if job.submitted_ms is not None)
    for stage in log.stages.values():
        if stage.submitted_ms is not None:
            yield stage.submitted_ms
        yield from (task.launch_ms for task in stage.tasks.values())


def _put_together(counts: Mapping[str, float]) -> Iterator[str]:
    """What stands in a query for another reason than that its jobs are listed there."""
    if unlisted := counts.get(_UNLISTED):
        why = "the start of their jobs is missing"
        yield f"{_UNLISTED} go to the query they name ({why}): {unlisted:,.0f}"
    if groups := counts.get(_GROUPS):
        outside = counts.get(_GROUPS_OUTSIDE)
        rest = ", with jobs of SQL executions only"
        if outside:
            rest = f"; those with jobs outside of SQL executions form queries: {outside:,.0f}"
        yield f"{_GROUPS}: {groups:,.0f}{rest}"


class _Application:
    """One log on its way to arrivals."""

    def __init__(self, log: SparkLog, prefix: str, zero_ms: int) -> None:
        self.arrivals: list[Arrival] = []
        self.tasks: list[TaskRecord] = []
        self.finished_s: dict[str, float] = {}
        self.notes: list[str] = []
        self.dropped: Counter[str] = Counter()
        self.counts: dict[str, int] = {}
        self._log = log
        self._prefix = prefix
        self._zero_ms = zero_ms
        # The stages of the queries that are made.
        self._taken: set[int] = set()
        # RDD -> the stage that has computed it.
        self._computed = {
            stage.rdd: stage.id
            for stage in log.stages.values()
            if stage.tasks and stage.rdd is not None
        }

    def make(self) -> None:
        log = self._log
        if log.cut:
            self.notes.append(
                f"the log of {log.app or 'the application'} is not complete: {log.cut}"
            )
        if log.compacted:
            self.notes.append(
                f"the log of {log.app or 'the application'} is compacted up to part "
                f"{log.compacted}: Spark has dropped what had ended by then"
            )
        queries = queries_of(log)
        for query in queries.queries:
            self._query(query)
        ran = {job.origin.execution for query in queries.queries for job in query.jobs}
        if empty := sum(number not in ran for number in log.executions):
            self.dropped["execution of SQL without a job"] = empty
        if queries.tasks_lost:
            self.dropped["task of stages that no job lists"] = queries.tasks_lost
        for name, count in (
            (_GROUPS, queries.groups),
            (_GROUPS_OUTSIDE, queries.groups_outside_sql),
            (_UNLISTED, queries.stages_given),
        ):
            if count:
                self.counts[name] = count
        self.arrivals.sort(key=lambda arrival: (arrival.query.submit_s, arrival.query.id))

    def _query(self, recorded: SparkQuery) -> None:
        stages = self._stages(recorded.jobs)
        if not stages:
            self.dropped["query of which no task had ended"] += 1
            return
        here = {stage.id for stage in stages}
        self._taken |= here
        jobs = [job for job in recorded.jobs if not here.isdisjoint(job.stages)]
        begin_ms, end_ms = recorded.began_ms, recorded.ended_ms
        if begin_ms is None:
            begin_ms = min(self._began_ms(job) for job in jobs)
            if all(job.has_ended for job in jobs):
                end_ms = max(self._ended_ms(job) for job in jobs)
        query_id = f"{self._prefix}{recorded.name}"
        upstream = self._upstream(jobs, stages)
        # Spark counts stages over all queries; by their place in the query, the same statement
        # has the same names whenever it runs, and what was learnt of it once applies again.
        names = {stage.id: f"s{place}" for place, stage in enumerate(stages)}
        made = []
        truth: dict[str, JobTruth] = {}
        for stage in stages:
            job_name = names[stage.id]
            records = [
                self._record(str(JobId(query_id, job_name)), stage.tasks[index])
                for index in sorted(stage.tasks)
            ]
            before = tuple(names[parent] for parent in sorted(upstream[stage.id]))
            job, truth[job_name] = measured_job(
                job_name, records, upstream=before, operator=_operator(len(before))
            )
            made.append(job)
            self.tasks += records
        query = Query(
            query_id,
            tuple(made),
            tenant=self._tenant(jobs),
            submit_s=max(0.0, (begin_ms - self._zero_ms) / 1e3),
            class_name=" ".join(recorded.label.split())[:80],
        )
        self.arrivals.append(Arrival(query, truth))
        if end_ms is not None and end_ms >= begin_ms:
            self.finished_s[query_id] = (end_ms - self._zero_ms) / 1e3

    def _stages(self, jobs: Sequence[SparkJob]) -> list[SparkStage]:
        """The stages of some jobs that ran, each once, in the order of their numbers.

        Jobs that run at the same time may list the same stage: it counts once.
        """
        numbers = sorted({number for job in jobs for number in job.stages} - self._taken)
        stages = (self._log.stages.get(number) for number in numbers)
        return [stage for stage in stages if stage is not None and stage.tasks]

    def _upstream(
        self, jobs: Sequence[SparkJob], stages: Sequence[SparkStage]
    ) -> dict[int, set[int]]:
        """For each stage those of the same query that must have ended before it."""
        here = {stage.id for stage in stages}
        upstream: dict[int, set[int]] = {}
        for stage in stages:
            if stage.parents is None:
                found = self._before(stage, jobs, stages)
            else:
                found = self._ran(stage.parents, here)
                found |= here & {self._computed.get(rdd, -1) for rdd in stage.reads}
            upstream[stage.id] = found - {stage.id}
        if any(job.origin.execution for job in jobs):
            _use_broadcasts(stages, upstream)
        else:
            self._follow_jobs(jobs, upstream)
        # The numbers of Spark's stages grow from what is needed to what needs it.
        for stage_id, parents in upstream.items():
            upstream[stage_id] = {parent for parent in parents if parent < stage_id}
        return upstream

    def _ran(self, listed: Sequence[int], here: set[int]) -> set[int]:
        """The stages that ran for those listed: these, those of the same RDD, or their parents."""
        found: set[int] = set()
        seen: set[int] = set()
        left = list(listed)
        while left:
            number = left.pop()
            stage = self._log.stages.get(number)
            if number in here:
                found.add(number)
            elif stage is not None and number not in seen:
                seen.add(number)
                computed = None if stage.rdd is None else self._computed.get(stage.rdd)
                if computed in here:
                    found.add(computed)
                else:
                    left += stage.parents or ()
        return found

    def _before(
        self, stage: SparkStage, jobs: Sequence[SparkJob], stages: Sequence[SparkStage]
    ) -> set[int]:
        """Where parents are not written down: what had ended, of the same job."""
        mine = {number for job in jobs if stage.id in job.stages for number in job.stages}
        return {
            other.id
            for other in stages
            if other.id in mine and other.finished_ms <= stage.launched_ms
        }

    def _follow_jobs(self, jobs: Sequence[SparkJob], upstream: dict[int, set[int]]) -> None:
        """Jobs of an application: the first stages of one wait for the job that ended last."""
        ends = sorted((self._ended_ms(job), place) for place, job in enumerate(jobs))
        for place, job in enumerate(jobs):
            at = bisect_right(ends, (self._began_ms(job), math.inf)) - 1
            if at >= 0 and ends[at][1] == place:
                at -= 1
            if at < 0:
                continue
            theirs = max(number for number in jobs[ends[at][1]].stages if number in upstream)
            mine = {number for number in job.stages if number in upstream}
            for number in mine:
                if not upstream[number] & mine:
                    upstream[number].add(theirs)

    def _began_ms(self, job: SparkJob) -> int:
        found = began_ms(self._log, job)
        assert found is not None  # a stage of it has run
        return found

    def _ended_ms(self, job: SparkJob) -> int:
        found = ended_ms(self._log, job)
        assert found is not None
        return found

    def _record(self, job: str, task: SparkTask) -> TaskRecord:
        fetched = task.shuffle_read_bytes > 0
        return TaskRecord(
            job,
            REDUCE if fetched else MAP,
            max(1, task.finish_ms - task.launch_ms) / 1e3,
            (task.launch_ms - self._zero_ms) / 1e3,
            task.shuffle_read_bytes + task.input_bytes,
            task.written_bytes,
            task.host,
            _PLACES.get(task.locality, ""),
            task.fetch_wait_ms / 1e3 if fetched else None,
        )

    def _tenant(self, jobs: Sequence[SparkJob]) -> str:
        pool = next((job.origin.pool for job in jobs if job.origin.pool), "")
        group = next((job.origin.group for job in jobs if job.origin.group), "")
        # Spark SQL and notebooks generate a group per query; a pool is chosen by the user.
        return as_id(pool or self._log.user or group or "default")


def _use_broadcasts(stages: Sequence[SparkStage], upstream: dict[int, set[int]]) -> None:
    """Connect stages that no stage lists as a parent (broadcasts) to the stage that follows."""
    needed = {parent for parents in upstream.values() for parent in parents}
    for stage in stages:
        after = [
            other
            for other in stages
            if other.id > stage.id and other.launched_ms >= stage.finished_ms
        ]
        if stage.id not in needed and after:
            upstream[min(after, key=lambda other: (other.launched_ms, other.id)).id].add(stage.id)


def _operator(parents: int) -> Operator:
    return ("extract", "groupby")[parents] if parents < 2 else "join"

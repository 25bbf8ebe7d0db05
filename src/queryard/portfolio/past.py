"""The latest queries, and what was seen of them: for rehearsals, and for who may come next."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from queryard.core.changes.queries import KEYS_KEPT
from queryard.core.commands import Fail, Launch
from queryard.core.events import (
    EstimateChanged,
    NodeJoined,
    NodeLost,
    QueryCancelled,
    QuerySubmitted,
    TaskFailed,
    TaskFinished,
)
from queryard.core.journal import Step
from queryard.core.model import MAP, REDUCE, Job, JobId, Kind, Node, Query, TaskId
from queryard.core.scheduler import Scheduler
from queryard.core.state import Settings
from queryard.sim.estimates import EstimateSource, fork_source
from queryard.sim.truth import believed
from queryard.workload.model import Arrival, JobTruth, Workload

from .rehearsal import Scene

# The past is kept in stretches; with so many of them, the oldest goes.
STRETCHES = 4
STRETCH_QUERIES, STRETCH_TASKS = 25, 10_000
# It is rehearsed anew when so much has come to it.
GROWTH = 0.5
# What is expected of jobs that are done: all of their tasks were seen.
NOTHING = JobTruth(map_s=0.0)


@dataclass(slots=True)
class _Seen:
    """What was seen of a query: the seconds of its tasks on a node of speed 1; by job when its last
    map ended, what its maps have left in all, and what was estimated of it when it came.
    """

    tasks_s: dict[TaskId, float] = field(default_factory=dict)
    mapped_s: dict[str, float] = field(default_factory=dict)
    left_bytes: dict[str, float] = field(default_factory=dict)
    told: dict[str, EstimateChanged] = field(default_factory=dict)


@dataclass(slots=True)
class _Stretch:
    """Queries that came one after another, and what was known when the first of them did."""

    estimates: EstimateSource
    queries: dict[str, Query] = field(default_factory=dict)
    tasks: int = 0

    @property
    def is_full(self) -> bool:
        return len(self.queries) >= STRETCH_QUERIES or self.tasks >= STRETCH_TASKS


class Past:
    """The latest queries and how long their tasks took, read from the journal as it grows.

    Queries with divisible work are left out: it is not made of tasks that are seen one by one. So
    are those that failed or were cancelled.
    """

    def __init__(self, estimates: EstimateSource, settings: Settings) -> None:
        self._estimates = estimates
        self._settings = settings
        self._stretches: deque[_Stretch] = deque()
        self._launched: dict[int, Launch] = {}
        self._nodes: dict[str, Node] = {}
        self._keys: dict[str, None] = {}
        self._seen: dict[str, _Seen] = {}
        # Tasks that are kept; those that came since the last rehearsal, and that it had.
        self._tasks = self._new = self._rehearsed = 0

    def read(self, step: Step) -> None:
        """One more step of the run; what is estimated of a query follows it within its step."""
        coming = ""
        for event in step.events:
            if isinstance(event, TaskFinished):
                self._finish(event)
            elif isinstance(event, TaskFailed):
                self._launched.pop(event.launch, None)
            elif isinstance(event, QuerySubmitted):
                self._submit(event.query)
                coming = event.query.id
            elif isinstance(event, EstimateChanged):
                query, job = JobId.of(event.job)
                if query == coming and query in self._seen:
                    self._seen[query].told[job] = event
            elif isinstance(event, QueryCancelled):
                self._forget(event.query)
            elif isinstance(event, NodeJoined):
                self._nodes[event.node.id] = event.node
            elif isinstance(event, NodeLost):
                for number in [n for n, of in self._launched.items() if of.node == event.node]:
                    del self._launched[number]
        for command in step.commands:
            if isinstance(command, Launch):
                self._launched[command.number] = command
            elif isinstance(command, Fail):
                self._forget(command.query)

    def _submit(self, query: Query) -> None:
        if any(job.divisible is not None for job in query.jobs) or query.id in self._seen:
            return
        if query.idempotency_key:
            if query.idempotency_key in self._keys:
                return  # it is the earlier one
            self._keys[query.idempotency_key] = None
            if len(self._keys) > KEYS_KEPT:
                del self._keys[next(iter(self._keys))]
        if not self._stretches or self._stretches[-1].is_full:
            self._stretches.append(_Stretch(fork_source(self._estimates)))
        if len(self._stretches) > STRETCHES:
            for old in list(self._stretches[0].queries):
                self._forget(old)
            self._stretches.popleft()
        stretch = self._stretches[-1]
        stretch.queries[query.id] = query
        stretch.tasks += sum(job.maps + job.reduces for job in query.jobs)
        self._seen[query.id] = _Seen()

    def _forget(self, query: str) -> None:
        for stretch in self._stretches:
            if stretch.queries.pop(query, None) is not None:
                self._tasks -= len(self._seen.pop(query).tasks_s)

    def _finish(self, event: TaskFinished) -> None:
        launch = self._launched.pop(event.launch, None)
        if launch is None:
            return
        node = self._nodes[launch.node]
        # Who rode along with others took as long as they did.
        for task in launch.tasks:
            seen = self._seen.get(JobId.of(task.job).query)
            if seen is None or task in seen.tasks_s:
                continue
            if task.kind == MAP:
                seconds = (event.time_s - launch.time_s) * node.map_speed
                seen.mapped_s[task.job] = event.time_s
                left_bytes = event.output_bytes / len(launch.tasks)
                seen.left_bytes[task.job] = seen.left_bytes.get(task.job, 0.0) + left_bytes
            else:
                # An early reduce holds its slot until the maps of its job are done.
                began_s = max(launch.time_s, seen.mapped_s.get(task.job, 0.0))
                seconds = (event.time_s - began_s) * node.reduce_speed
            seen.tasks_s[task] = seconds
            self._tasks += 1
            self._new += 1

    def scene(self, scheduler: Scheduler) -> Scene | None:
        """The past on today's cluster; None where little has come to it since it was asked for.

        Without a single node there is nothing to rehearse on, either.
        """
        if not scheduler.state.nodes or self._new <= GROWTH * self._rehearsed:
            return None
        self._rehearsed, self._new = self._tasks, 0
        arrivals = tuple(Arrival(query, self.truth(query, scheduler)) for query in self.queries)
        if not arrivals:
            return None
        state = scheduler.state
        return Scene(
            Workload("the past", arrivals, tuple(state.tables.values())),
            tuple(node.spec for node in state.nodes.values()),
            fork_source(self._stretches[0].estimates),
            self._settings,
        )

    @property
    def queries(self) -> list[Query]:
        """In the order in which they came."""
        return [query for stretch in self._stretches for query in stretch.queries.values()]

    def told(self, query: Query) -> Mapping[str, EstimateChanged]:
        """What was estimated of its jobs when it came."""
        return self._seen[query.id].told

    def truth(self, query: Query, scheduler: Scheduler) -> dict[str, JobTruth]:
        """What its tasks took; of those that have not ended, what is expected."""
        seen = self._seen[query.id]
        truth = {}
        for job in query.jobs:
            job_id = query.job_id(job.name)
            state = scheduler.state.jobs.get(job_id)
            expected = NOTHING if state is None else believed(state)
            maps_s = _times(job_id, job, MAP, seen.tasks_s, expected.map_s)
            reduces_s = _times(job_id, job, REDUCE, seen.tasks_s, expected.reduce_s)
            mapped = sum(TaskId(job_id, MAP, index) in seen.tasks_s for index in range(len(maps_s)))
            truth[job.name] = JobTruth(
                map_s=sum(maps_s) / max(1, len(maps_s)),
                reduce_s=sum(reduces_s) / max(1, len(reduces_s)),
                map_output_bytes=seen.left_bytes.get(job_id, 0.0) / max(1, mapped),
                map_times_s=maps_s,
                reduce_times_s=reduces_s,
            )
        return truth


def _times(
    job_id: str, job: Job, kind: Kind, seen_s: Mapping[TaskId, float], expected_s: float
) -> tuple[float, ...]:
    """What every task took; of one that was not seen to end, what is expected."""
    tasks = (
        TaskId(job_id, kind, index) for index in range(job.maps if kind == MAP else job.reduces)
    )
    return tuple(seen_s.get(task, expected_s) for task in tasks)

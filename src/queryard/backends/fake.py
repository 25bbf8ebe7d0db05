"""A backend in which nothing runs: time is given to it, and a script says what happens.

It implements `protocol` without threads, without DuckDB and without sleeping, so that all of `live`
can be tested on thousands of histories. Slots are counted: a slot that is granted twice, or revoked
without being held, is an error at once.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from queryard.core.commands import Grant, Kill, Launch, Release, Revoke, Scale
from queryard.core.events import LeaseEnded, NodeJoined, NodeLost, TaskFinished, WidthChanged
from queryard.core.model import JobId, Node, TaskId

from .protocol import (
    NATIVE_JOB,
    BackendCommand,
    BackendReport,
    JoinRefused,
    LaunchFailed,
    Leased,
    NodeNote,
    Post,
    QueryUsed,
    RunEnded,
    RunJoined,
    RunReport,
    Usage,
    Work,
)

REPORT_S = 0.25


class Stopped(Exception):
    """What a launch that was killed ends with."""


@dataclass(slots=True)
class Script:
    """What happens, by the name of a run, or by a task and its attempt.

    `work_s` are the core-seconds of a run and `error` what it ends with; `rows_out` says whether
    readers saw rows before an error, `joinable` whether others may join, and `leave_s` how long a
    slot stays after it was revoked. `join_s` is how long a join takes to be confirmed, `read_s` how
    long what the tasks of a launch read together.
    """

    work_s: Callable[[str], float] = lambda run: 1.0
    error: Callable[[str], BaseException | None] = lambda run: None
    rows_out: Callable[[str], bool] = lambda run: False
    joinable: Callable[[str], bool] = lambda run: True
    join_s: Callable[[], float] = lambda: 0.0
    leave_s: Callable[[], float] = lambda: 0.0
    task_s: Callable[[TaskId, int], float] = lambda task, attempt: 1.0
    task_error: Callable[[TaskId, int], BaseException | None] = lambda task, attempt: None
    read_s: Callable[[Launch], float] = lambda launch: 0.0


@dataclass(slots=True, eq=False)
class _Slot:
    query: str
    job: str
    node: str
    leaving: bool = False


@dataclass(slots=True)
class _FakeExecution:
    name: str
    left_s: float
    members: dict[str, str] = field(default_factory=dict)  # query: job
    wanted: set[str] = field(default_factory=set)
    slots: list[_Slot] = field(default_factory=list)
    usage: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    work_s: float = 0.0
    since_s: float = 0.0
    ended: bool = False
    error: BaseException | None = None
    told: set[str] = field(default_factory=set)
    # Jobs that have one slot, for as long as they seem to be short.
    narrow: set[str] = field(default_factory=set)
    # Grows with every change; an end planned under an earlier version is void.
    version: int = 0


class FakeBackend:
    """Nodes with slots; `advance` lets time pass."""

    def __init__(self, nodes: Sequence[Node], script: Script | None = None) -> None:
        self.now_s = 0.0
        self.script = script or Script()
        self._nodes = {node.id: node for node in nodes}
        self._joined: dict[str, Node] = {}
        self._busy: Counter[str] = Counter()
        self._runs: dict[str, _FakeExecution] = {}
        self._by_job: dict[str, _FakeExecution] = {}
        self._joining: set[str] = set()
        self._staged: set[str] = set()
        self._launches: dict[int, Launch] = {}
        self._attempts: Counter[TaskId] = Counter()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._post: Post | None = None
        self.guarantee_unmet = False

    @property
    def slots(self) -> int:
        return sum(node.slots for node in self._nodes.values())

    @property
    def width(self) -> int:
        return self.slots

    # --- time --------------------------------------------------------------------------------

    @property
    def next_s(self) -> float | None:
        """When something happens next, if nothing else is done."""
        return self._due[0][0] if self._due else None

    def advance(self, time_s: float) -> None:
        """Let time pass, and post what happens until then."""
        while self._due and self._due[0][0] <= time_s:
            due_s, _, act = heapq.heappop(self._due)
            self.now_s = max(self.now_s, due_s)
            act()
        self.now_s = max(self.now_s, time_s)

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now_s + seconds, next(self._order), act))

    # --- the protocol ------------------------------------------------------------------------

    def start(self, post: Post) -> None:
        self._post = post
        self._scale(len(self._nodes))

    def add(self, query: str, work: Work) -> None:
        if not isinstance(work, Leased):
            self._staged.add(query)
            return
        if work.statement is None:
            self._joining.add(query)
            wait_s = self.script.join_s()
            if wait_s:
                self._after(wait_s, lambda: self._join(query, work))
            else:
                self._join(query, work)
            return
        run = _FakeExecution(work.run, self.script.work_s(work.run), since_s=self.now_s)
        self._runs[work.run] = run
        self._enter(run, query, work)
        self._after(REPORT_S, lambda: self._report(run))

    def _join(self, query: str, work: Leased) -> None:
        if query not in self._joining:
            return  # it is not wanted any more
        self._joining.discard(query)
        run = self._runs.get(work.run)
        joins = run is not None and not run.ended and run.wanted
        if run is None or not joins or not self.script.joinable(work.run):
            self._tell(JoinRefused(query))
            return
        self._enter(run, query, work)
        self._tell(RunJoined(query))

    def _enter(self, run: _FakeExecution, query: str, work: Leased) -> None:
        job = str(JobId(query, NATIVE_JOB))
        run.members[query] = job
        if work.narrow:
            run.narrow.add(job)
        run.wanted.add(query)
        self._by_job[job] = run

    def execute(self, command: BackendCommand) -> None:
        match command:
            case Grant():
                self._grant(command)
            case Revoke():
                self._revoke(command)
            case Launch():
                self._launch(command)
            case Kill():
                self._after(self.script.leave_s(), lambda: self._kill(command.number))
            case Scale():
                self._scale(command.nodes)
            case Release():
                self.lose(command.node)

    def set_guarantee_unmet(self, unmet: bool) -> None:
        self.guarantee_unmet = unmet

    def stop(self, query: str, error: BaseException) -> None:
        self._joining.discard(query)
        run = self._by_job.get(str(JobId(query, NATIVE_JOB)))
        if run is None:
            return
        run.wanted.discard(query)
        if not run.wanted and not run.ended:
            self._settle(run)
            self._end(run, error)

    def forget(self, query: str) -> None:
        self._staged.discard(query)
        run = self._by_job.pop(str(JobId(query, NATIVE_JOB)), None)
        if run is not None:
            assert not any(slot.query == query for slot in run.slots), f"{query} holds slots"
            run.wanted.discard(query)
            if not any(self._by_job.get(job) is run for job in run.members.values()):
                self._runs.pop(run.name, None)

    def report(self) -> BackendReport:
        return BackendReport()

    def notes(self) -> Mapping[str, NodeNote]:
        return {}

    @property
    def refused(self) -> tuple[str, ...]:
        return ()

    def close(self, timeout_s: float) -> bool:
        self._due.clear()
        return True

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing is known of any query."""
        held = +self._busy
        return not (held or self._runs or self._by_job or self._launches or self._staged)

    # --- nodes -------------------------------------------------------------------------------

    def _scale(self, wanted: int) -> None:
        missing = [node for name, node in self._nodes.items() if name not in self._joined]
        for node in missing[: max(0, wanted - len(self._joined))]:
            self._joined[node.id] = node
            self._tell(NodeJoined(0.0, node))

    def lose(self, node: str) -> None:
        """A node is gone, with all that ran there."""
        if self._joined.pop(node, None) is None:
            return
        for run in self._runs.values():
            gone = [slot for slot in run.slots if slot.node == node]
            if gone and not run.ended:
                self._settle(run)
                run.left_s = self.script.work_s(run.name)  # the node held its instance
                run.slots = [slot for slot in run.slots if slot.node != node]
                self._plan(run)
        for number, launch in list(self._launches.items()):
            if launch.node == node:
                del self._launches[number]
        del self._busy[node]
        self._tell(NodeLost(0.0, node))

    def join(self, node: str) -> None:
        """A node that was lost is back."""
        if node not in self._joined:
            self._joined[node] = self._nodes[node]
            self._tell(NodeJoined(0.0, self._nodes[node]))

    def _take(self, node: str, slots: int) -> None:
        self._busy[node] += slots
        most = self._joined[node].slots
        assert self._busy[node] <= most, f"{self._busy[node]} of {most} slots of {node} are in use"

    # --- leases ------------------------------------------------------------------------------

    def _grant(self, command: Grant) -> None:
        run = self._by_job[command.job]
        self._take(command.node, command.slots)
        query = JobId.of(command.job).query
        self._settle(run)
        for _ in range(command.slots):
            run.slots.append(_Slot(query, command.job, command.node))
        if run.ended:
            self._after(0.0, lambda: self._tell_ends(run))
        else:
            self._plan(run)

    def _revoke(self, command: Revoke) -> None:
        run = self._by_job.get(command.job)
        if run is None:
            return
        held = [
            slot
            for slot in run.slots
            if slot.job == command.job and slot.node == command.node and not slot.leaving
        ]
        for slot in held[: command.slots]:
            slot.leaving = True
            self._after(self.script.leave_s(), lambda slot=slot: self._leave(run, slot))  # type: ignore[misc]

    def _leave(self, run: _FakeExecution, slot: _Slot) -> None:
        if slot in run.slots and not run.ended:
            self._settle(run)
            self._free(run, slot)
            self._tell(LeaseEnded(0.0, slot.job, slot.node, 1, "revoked"))
            self._plan(run)

    def finish(self, run: str) -> None:
        """A run ends now, as the script says."""
        found = self._runs[run]
        self._settle(found)
        self._end(found, self.script.error(run))

    def _free(self, run: _FakeExecution, slot: _Slot) -> None:
        run.slots.remove(slot)
        self._busy[slot.node] -= 1
        used = run.usage[slot.query]
        self._tell(QueryUsed(slot.query, Usage(used, used)))

    def _settle(self, run: _FakeExecution) -> None:
        """Enter what was done since the last change."""
        elapsed_s, run.since_s = self.now_s - run.since_s, self.now_s
        if run.ended:
            return
        for slot in run.slots:
            run.usage[slot.query] += elapsed_s
        done_s = elapsed_s * len(run.slots)
        run.work_s += done_s
        run.left_s -= done_s

    def _plan(self, run: _FakeExecution) -> None:
        run.version += 1
        version = run.version
        if run.slots:
            left_s = max(0.0, run.left_s) / len(run.slots)
            self._after(left_s, lambda: self._complete(run, version))

    def _complete(self, run: _FakeExecution, version: int) -> None:
        if not run.ended and run.version == version:
            self._settle(run)
            self._end(run, self.script.error(run.name))

    def _end(self, run: _FakeExecution, error: BaseException | None) -> None:
        run.ended, run.error = True, error
        self._tell(RunEnded(run.name, error, self.script.rows_out(run.name)))
        self._tell_ends(run)

    def _tell_ends(self, run: _FakeExecution) -> None:
        outcome = "finished" if run.error is None else "failed"
        cause = "" if run.error is None else str(run.error)
        for slot in list(run.slots):
            self._free(run, slot)
            run.told.add(slot.job)
            self._tell(LeaseEnded(0.0, slot.job, slot.node, 1, outcome, cause))  # type: ignore[arg-type]
        for job in run.members.values():
            if job not in run.told:
                run.told.add(job)
                node = next(iter(self._joined), "")
                self._tell(LeaseEnded(0.0, job, node, 0, outcome, cause))  # type: ignore[arg-type]

    def _report(self, run: _FakeExecution) -> None:
        if run.ended or run.name not in self._runs:
            return
        self._settle(run)
        usage = {
            query: Usage(run.usage[query], run.usage[query], 0.0, len(run.slots))
            for query in run.members
        }
        total_s = run.work_s + max(run.left_s, 0.0)
        progress = run.work_s / total_s if total_s else 0.0
        self._tell(RunReport(run.name, min(1.0, progress), None, usage))
        for job in sorted(run.narrow):
            self._tell(WidthChanged(0.0, job, self.width))
        run.narrow.clear()
        self._plan(run)
        self._after(REPORT_S, lambda: self._report(run))

    # --- tasks -------------------------------------------------------------------------------

    def _launch(self, command: Launch) -> None:
        self._take(command.node, 1)
        self._launches[command.number] = command
        errors: list[tuple[TaskId, BaseException]] = []
        seconds = self.script.read_s(command)
        for task in command.tasks:
            self._attempts[task] += 1
            attempt = self._attempts[task]
            seconds += self.script.task_s(task, attempt)
            error = self.script.task_error(task, attempt)
            if error is not None:
                errors.append((task, error))
        self._after(seconds, lambda: self._tasks_over(command, errors))

    def _tasks_over(self, command: Launch, errors: list[tuple[TaskId, BaseException]]) -> None:
        """All tasks of a launch have run; those with errors leave the others alone."""
        if len(command.tasks) == 1:
            self._task_over(command.number, command.tasks[0], errors[0][1] if errors else None)
            return
        if self._launches.pop(command.number, None) is None:
            return
        self._busy[command.node] -= 1
        for task, error in errors:
            query = JobId.of(task.job).query
            self._tell(LaunchFailed(command.number, query, error, task.job))
        if len(errors) < len(command.tasks):
            left = {task.job: 0.0 for task in command.tasks if task not in dict(errors)}
            self._tell(TaskFinished(0.0, command.number, command.node, 0.0, left))

    def finish_task(self, number: int, error: BaseException | None = None) -> None:
        """A launch ends now."""
        launch = self._launches.get(number)
        if launch is not None:
            self._task_over(number, launch.tasks[0], error)

    def _kill(self, number: int) -> None:
        launch = self._launches.get(number)
        if launch is not None:
            self._task_over(number, launch.tasks[0], Stopped("killed"))

    def _task_over(self, number: int, task: TaskId, error: BaseException | None) -> None:
        launch = self._launches.pop(number, None)
        if launch is None:
            return
        self._busy[launch.node] -= 1
        if error is None:
            self._tell(TaskFinished(0.0, number, launch.node))
        else:
            self._tell(LaunchFailed(number, JobId.of(task.job).query, error))

    def _tell(self, event: object) -> None:
        assert self._post is not None, "start comes first"
        self._post(event)  # type: ignore[arg-type]

"""One pass over a journal that turns it into rows.

In a step the events come first and the commands follow from them. Events carry their own time;
a command happens at the time of its step. What the journal answers without having asked (a
launch made before it began) is left out.
"""

from __future__ import annotations

from collections import defaultdict

from queryard.core.commands import Command, Fail, Finish, Grant, Kill, Launch
from queryard.core.events import (
    AnswerReported,
    EstimateChanged,
    Event,
    LeaseEnded,
    NodeJoined,
    NodeLost,
    QueryCancelled,
    QuerySubmitted,
    TableChanged,
    TaskFailed,
    TaskFinished,
)
from queryard.core.journal import Journal, Step
from queryard.core.model import JobId, TaskId

from .rows import (
    LaunchOutcome,
    LaunchRow,
    LeaseOutcome,
    LeaseRow,
    NodeRow,
    Outcome,
    QueryRow,
    RunRows,
)
from .scans import Scans


def read_run(journal: Journal) -> RunRows:
    """The rows of a journal."""
    reader = RunReader()
    for step in journal.steps:
        reader.read(step)
    reader.close()
    return reader.run


class RunReader:
    """The fold's state: the rows so far and what is still open."""

    def __init__(self) -> None:
        self.run = RunRows()
        self._scans = Scans()
        self._keys: set[str] = set()  # never holds "", the key of a query without one
        self._cancelled: set[str] = set()
        self._killed: set[int] = set()
        self._launches: dict[int, LaunchRow] = {}
        self._on_node: defaultdict[str, set[int]] = defaultdict(set)
        self._leases: defaultdict[tuple[str, str], list[LeaseRow]] = defaultdict(list)
        self._nodes: dict[str, NodeRow] = {}
        # Riders of launches that have failed, by launch.
        self._failed: dict[int, set[str]] = {}
        # What a map of each job was last expected to take.
        self._map_s: dict[str, float] = {}
        self._good_s: dict[TaskId, float] = {}
        """Every task ever launched, with the seconds of its last good attempt (0 before one)."""

    def read(self, step: Step) -> None:
        """One more step of a run."""
        for event in step.events:
            self._see(event)
        for command in step.commands:
            self._execute(command, step.time_s)
        self.run.last_step_s = max(self.run.last_step_s, step.time_s)

    def _see(self, event: Event) -> None:
        match event:
            case TaskFinished(time_s, number):
                self._end_launch(number, time_s, "finished")
            case TaskFailed(time_s, number, _, _, job):
                self._fail_launch(number, job, time_s)
            case EstimateChanged(_, job, map_s) if map_s is not None:
                self._map_s[job] = map_s
            case QuerySubmitted():
                self._submit(event)
            case LeaseEnded(time_s, job, node, slots, outcome):
                self._end_lease(job, node, slots, time_s, outcome)
            case AnswerReported():
                self.run.answers.append(event)
            case QueryCancelled(_, query):
                self._cancelled.add(query)
            case NodeJoined(time_s, node):
                self._nodes[node.id] = row = NodeRow(node, time_s)
                self.run.nodes.append(row)
            case NodeLost(time_s, node_id):
                self._lose(node_id, time_s)
            case TableChanged(_, table):
                self._scans.change_table(table)

    def _execute(self, command: Command, now_s: float) -> None:
        match command:
            case Launch():
                self._launch(command, now_s)
            case Kill(number):
                self._killed.add(number)
            case Grant(job, node, slots):
                row = LeaseRow(job, node, slots, now_s)
                self.run.leases.append(row)
                self._leases[job, node].append(row)
                self._start(JobId.of(job).query, now_s)
            case Finish(query):
                self._end_query(query, now_s, "finished", "")
            case Fail(query, cause):
                outcome: Outcome = "cancelled" if query in self._cancelled else "failed"
                self._end_query(query, now_s, outcome, cause)

    def close(self) -> None:
        """Charge what still runs at the last step for the slots it holds."""
        end_s = self.run.last_step_s
        for launch in self._launches.values():
            self._charge_launch(launch, end_s)
        for leases in self._leases.values():
            for lease in leases:
                self._charge_lease(lease, end_s)

    def _submit(self, event: QuerySubmitted) -> None:
        """Begin a query's row, unless its id or its idempotency key is known."""
        query = event.query
        if query.id in self.run.queries or query.idempotency_key in self._keys:
            self.run.duplicates += 1
            return
        if query.idempotency_key:
            self._keys.add(query.idempotency_key)
        self.run.queries[query.id] = QueryRow(query, event.time_s)
        self._scans.add_query(query)

    def _end_query(self, query: str, now_s: float, outcome: Outcome, cause: str) -> None:
        row = self.run.queries.get(query)
        if row is not None and row.end_s is None:
            row.end_s, row.outcome, row.cause = now_s, outcome, cause

    def _start(self, query: str, now_s: float) -> None:
        row = self.run.queries.get(query)
        if row is not None and row.start_s is None:
            row.start_s = now_s

    def _launch(self, command: Launch, now_s: float) -> None:
        number, node, tasks = command.number, command.node, command.tasks
        reading = self._scans.read(tasks, node)
        row = LaunchRow(number, node, tasks, command.round, now_s, reading)
        self.run.launches.append(row)
        self._launches[number] = row
        self._on_node[node].add(number)
        for task in tasks:
            query = JobId.of(task.job).query
            self._start(query, now_s)
            known = task in self._good_s
            self._good_s.setdefault(task, 0.0)
            if query_row := self.run.queries.get(query):
                query_row.attempts += 1
                query_row.retries += known

    def _fail_launch(self, number: int, job: str, time_s: float) -> None:
        """A launch has failed; if one of its riders has, it goes on for the others."""
        row = self._launches.get(number)
        if row is None:
            return
        failed = self._failed.setdefault(number, set())
        failed.update([job] if job else [task.job for task in row.tasks])
        if all(task.job in failed for task in row.tasks):
            self._end_launch(number, time_s, "killed" if number in self._killed else "failed")

    def _end_launch(self, number: int, time_s: float, outcome: LaunchOutcome) -> None:
        row = self._launches.pop(number, None)
        if row is None:
            return
        self._on_node[row.node].discard(number)
        row.end_s, row.outcome = time_s, outcome
        self._charge_launch(row, time_s)
        failed = self._failed.pop(number, set())
        if outcome != "finished":
            return
        seconds = time_s - row.start_s
        for task in row.tasks:
            if task.job in failed:
                continue
            if query_row := self.run.queries.get(JobId.of(task.job).query):
                query_row.task_s += seconds - self._good_s[task]
            self._good_s[task] = seconds

    def _charge_launch(self, row: LaunchRow, end_s: float) -> None:
        """Riders pay in proportion to what their maps were expected to take."""
        expected = [self._map_s.get(task.job, 0.0) for task in row.tasks]
        total_s = sum(expected)
        for task, expected_s in zip(row.tasks, expected, strict=True):
            share = expected_s / total_s if total_s > 0 else 1.0 / len(row.tasks)
            if query_row := self.run.queries.get(JobId.of(task.job).query):
                query_row.slot_s += share * (end_s - row.start_s)

    def _end_lease(
        self, job: str, node: str, slots: int, time_s: float, outcome: LeaseOutcome
    ) -> None:
        """Give slots back, oldest grant first; a grant given back in part becomes two rows."""
        leases = self._leases[job, node]
        while slots > 0 and leases:
            row = leases[0]
            if row.slots > slots:
                rest = LeaseRow(job, node, row.slots - slots, row.start_s)
                self.run.leases.append(rest)
                row.slots, leases[0] = slots, rest
            else:
                leases.pop(0)
            row.end_s, row.outcome = time_s, outcome
            self._charge_lease(row, time_s)
            slots -= row.slots

    def _charge_lease(self, row: LeaseRow, end_s: float) -> None:
        """Leased time is both use of the cluster and, like task time, the query's work."""
        if query_row := self.run.queries.get(JobId.of(row.job).query):
            seconds = row.slots * (end_s - row.start_s)
            query_row.slot_s += seconds
            query_row.task_s += seconds

    def _lose(self, node: str, time_s: float) -> None:
        """With a node goes all that runs there, without a further event."""
        if node_row := self._nodes.pop(node, None):
            node_row.lost_s = time_s
        for number in sorted(self._on_node.pop(node, ())):
            self._end_launch(number, time_s, "lost")
        for job, where in [key for key in self._leases if key[1] == node]:
            held = sum(row.slots for row in self._leases[job, where])
            self._end_lease(job, where, held, time_s, "lost")

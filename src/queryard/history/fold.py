"""Jobs, tasks, leases, estimates and changes of policy, read off the steps of a kernel.

A row appears when its subject does, without an end, and is given again once it has ended: what
was open when the recording stopped stays open.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from queryard.core.codec import encode
from queryard.core.commands import Command, Fail, Finish, Grant, Kill, Launch
from queryard.core.events import (
    EstimateChanged,
    Event,
    LeaseEnded,
    NodeLost,
    PolicyChosen,
    QueryCancelled,
    QuerySubmitted,
    TaskFailed,
    TaskFinished,
)
from queryard.core.journal import Step
from queryard.core.model import Job, Query

Row = dict[str, Any]
compact = json.JSONEncoder(separators=(",", ":")).encode


class Fold:
    """What is open, and the rows that have changed since they were last taken."""

    def __init__(self) -> None:
        self._jobs: dict[str, Row] = {}
        self._of_query: dict[str, list[str]] = {}
        self._left: dict[str, int] = {}  # tasks of a job that have not finished yet
        self._tasks: dict[int, list[Row]] = {}
        self._killed: set[int] = set()
        self._leases: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
        self._lease_number = 0
        self._cancelled: set[str] = set()
        self._changed: dict[str, dict[Any, Row]] = {"jobs": {}, "tasks": {}, "leases": {}}
        self._new: dict[str, list[Row]] = {"estimates": [], "policies": []}

    def see(self, step: Step) -> None:
        """One more step; in it the events come first, and the commands follow from them."""
        for event in step.events:
            self._see(event)
        for command in step.commands:
            self._execute(command, step.time_s)

    def take(self) -> dict[str, list[Row]]:
        """The rows that are new or different since the last call, by table."""
        taken = {name: list(rows.values()) for name, rows in self._changed.items()}
        taken |= self._new
        self._changed = {name: {} for name in self._changed}
        self._new = {name: [] for name in self._new}
        return taken

    def _see(self, event: Event) -> None:
        match event:
            case LeaseEnded():
                self._end_lease(event)
            case TaskFinished(time_s, number):
                self._end_tasks(number, time_s, "finished", "")
            case TaskFailed(time_s, number, cause, _, job):
                outcome = "killed" if number in self._killed else "failed"
                self._end_tasks(number, time_s, outcome, cause, job)
            case EstimateChanged():
                self._new["estimates"].append(event._asdict())
            case QuerySubmitted(time_s, query):
                self._submit(query, time_s)
            case QueryCancelled(_, query_id):
                if query_id in self._of_query:
                    self._cancelled.add(query_id)
            case NodeLost(time_s, node):
                self._lose(node, time_s)
            case PolicyChosen(time_s, profile):
                self._new["policies"].append(
                    {"time_s": time_s, "profile": compact(encode(profile))}
                )

    def _execute(self, command: Command, now_s: float) -> None:
        match command:
            case Grant(job, node, slots):
                self._grant(job, node, slots, now_s)
            case Launch():
                self._launch(command, now_s)
            case Kill(number):
                self._killed.add(number)
            case Finish(query):
                self._end_query(query, now_s, "finished")
            case Fail(query, _):
                self._end_query(query, now_s, "failed")

    # --- queries and jobs --------------------------------------------------------------------

    def _submit(self, query: Query, now_s: float) -> None:
        if query.id in self._of_query:
            return
        self._of_query[query.id] = [query.job_id(job.name) for job in query.jobs]
        for job in query.jobs:
            row = _job_row(query, job, now_s)
            self._jobs[row["job"]] = row
            self._left[row["job"]] = row["maps"] + row["reduces"]
            self._note_job(row)

    def _note_job(self, row: Row) -> None:
        self._changed["jobs"][row["job"]] = row

    def _start_job(self, job: str, now_s: float) -> None:
        row = self._jobs.get(job)
        if row is not None and row["started_s"] is None:
            row["started_s"] = now_s
            self._note_job(row)

    def _end_job(self, job: str, now_s: float, outcome: str) -> None:
        row = self._jobs.get(job)
        if row is not None:
            row["ended_s"], row["outcome"] = now_s, outcome
            self._note_job(row)

    def _end_query(self, query: str, now_s: float, outcome: str) -> None:
        if query in self._cancelled:
            self._cancelled.discard(query)
            outcome = "cancelled" if outcome == "failed" else outcome
        for job in self._of_query.pop(query, ()):
            if self._jobs[job]["ended_s"] is None:
                self._end_job(job, now_s, outcome)
            del self._jobs[job], self._left[job]
            # Grants that were never returned, if there are any, stay open.
            for key in [key for key in self._leases if key[0] == job]:
                del self._leases[key]

    # --- leases ------------------------------------------------------------------------------

    def _grant(self, job: str, node: str, slots: int, now_s: float) -> None:
        self._start_job(job, now_s)
        self._leases[job, node].append(self._new_lease(job, node, slots, now_s))

    def _new_lease(self, job: str, node: str, slots: int, started_s: float) -> Row:
        self._lease_number += 1
        row = {
            "number": self._lease_number,
            "job": job,
            "node": node,
            "slots": slots,
            "started_s": started_s,
            "ended_s": None,
            "outcome": "",
            "cause": "",
        }
        self._changed["leases"][self._lease_number] = row
        return row

    def _end_lease(self, event: LeaseEnded) -> None:
        self._return(event.job, event.node, event.slots, event.time_s, event.outcome, event.cause)
        if event.outcome != "revoked":
            self._end_job(event.job, event.time_s, event.outcome)

    def _return(
        self, job: str, node: str, slots: int, now_s: float, outcome: str, cause: str
    ) -> None:
        """Slots come back, oldest grant first; one given back in part becomes two rows."""
        held = self._leases.get((job, node), [])
        while slots > 0 and held:
            row = held[0]
            if row["slots"] > slots:
                held[0] = self._new_lease(job, node, row["slots"] - slots, row["started_s"])
                row["slots"] = slots
            else:
                held.pop(0)
            row["ended_s"], row["outcome"], row["cause"] = now_s, outcome, cause
            self._changed["leases"][row["number"]] = row
            slots -= row["slots"]
        if not held:
            self._leases.pop((job, node), None)

    def _lose(self, node: str, now_s: float) -> None:
        """With a node goes all that runs there, without a further event."""
        for job, where in [key for key in self._leases if key[1] == node]:
            slots = sum(row["slots"] for row in self._leases[job, where])
            self._return(job, where, slots, now_s, "lost", "")
        for number in [n for n, rows in self._tasks.items() if rows[0]["node"] == node]:
            self._end_tasks(number, now_s, "lost", "")

    # --- tasks -------------------------------------------------------------------------------

    def _launch(self, command: Launch, now_s: float) -> None:
        rows = []
        for task in command.tasks:
            self._start_job(task.job, now_s)
            row = {
                "launch": command.number,
                "job": task.job,
                "kind": task.kind,
                "task": task.index,
                "node": command.node,
                "round": command.round,
                "started_s": now_s,
                "ended_s": None,
                "outcome": "",
                "cause": "",
            }
            rows.append(row)
            self._note_task(row)
        self._tasks[command.number] = rows

    def _note_task(self, row: Row) -> None:
        key = (row["launch"], row["job"], row["kind"], row["task"])
        self._changed["tasks"][key] = row

    def _end_tasks(
        self, number: int, now_s: float, outcome: str, cause: str, of_job: str = ""
    ) -> None:
        """The tasks of a launch end; only that `of_job`, if one of its riders has failed."""
        rows = self._tasks.pop(number, [])
        ending = [row for row in rows if of_job in ("", row["job"])]
        if len(ending) < len(rows):
            self._tasks[number] = [row for row in rows if row["job"] != of_job]
        else:
            self._killed.discard(number)
        for row in ending:
            row["ended_s"], row["outcome"], row["cause"] = now_s, outcome, cause
            self._note_task(row)
            job = row["job"]
            if outcome == "finished" and job in self._left:
                # A map that is run again after its output was lost is counted again, so that the
                # end of the job is that of its last task.
                self._left[job] -= 1
                if self._left[job] <= 0:
                    self._end_job(job, now_s, "finished")


def _job_row(query: Query, job: Job, now_s: float) -> Row:
    return {
        "job": query.job_id(job.name),
        "query": query.id,
        "operator": job.operator,
        "upstream": compact(job.upstream),
        "width": job.divisible.width if job.divisible is not None else 0,
        "maps": job.maps,
        "reduces": job.reduces,
        "submitted_s": now_s,
        "started_s": None,
        "ended_s": None,
        "outcome": "",
    }

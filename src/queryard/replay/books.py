"""What the journal of a session says its jobs have taken, and what was told of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from queryard.core import events as ev
from queryard.core.commands import Command, Grant, Launch, Revoke
from queryard.core.journal import Journal
from queryard.core.means import Mean
from queryard.core.model import MAP, REDUCE, Job, Kind
from queryard.workload.model import JobTruth

# The work of a job that never ran: it must take some time.
LEAST_S = 1e-6


@dataclass(frozen=True, slots=True)
class Told:
    """What the kernel was told of a job: how long after its submission, at which point of its work.

    That point is in slot-seconds.
    """

    after_s: float
    held_s: float
    event: ev.EstimateChanged | ev.WidthChanged

    def scaled(self, by: float) -> Told:
        """With an estimate so many times as large; those of tasks are of slots already."""
        event = self.event
        if isinstance(event, ev.WidthChanged) or event.work_s is None:
            return self
        return replace(self, event=event._replace(work_s=event.work_s * by))


class _Holding:
    """The slots of one job, node by node, and what they add up to."""

    __slots__ = ("_since_s", "_slots", "held_s")

    def __init__(self) -> None:
        self.held_s = 0.0
        self._since_s = 0.0
        self._slots: defaultdict[str, int] = defaultdict(int)

    def look(self, now: float) -> float:
        """Slot-seconds so far."""
        self.held_s += sum(self._slots.values()) * (now - self._since_s)
        self._since_s = now
        return self.held_s

    def change(self, now: float, node: str, slots: int) -> None:
        self.look(now)
        self._slots[node] = max(0, self._slots[node] + slots)

    def lose(self, now: float, node: str) -> None:
        self.look(now)
        self._slots.pop(node, None)


class Books:
    """One pass over a journal."""

    def __init__(self, journal: Journal) -> None:
        self.told: defaultdict[str, list[Told]] = defaultdict(list)
        self.cancelled_s: dict[str, float] = {}
        self.changes: list[ev.PolicyChosen | ev.TableChanged] = []
        self._holdings: defaultdict[str, _Holding] = defaultdict(_Holding)
        self._task_s: defaultdict[tuple[str, Kind], Mean] = defaultdict(Mean)
        self._submitted_s: dict[str, float] = {}
        self._launches: dict[int, tuple[Launch, float]] = {}
        self._revoked_s: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        self._revoke_delay_s = Mean()
        now = 0.0
        for step in journal.steps:
            now = step.time_s
            for event in step.events:
                self._see(event)
            for command in step.commands:
                self._execute(command, now)
        for holding in self._holdings.values():
            holding.look(now)

    @property
    def revoke_delay_s(self) -> float:
        """How long slots took to come back, on average."""
        return self._revoke_delay_s.or_else(0.0)

    def truth(self, job: Job, ids: Iterable[str], finished: bool) -> JobTruth:
        """What a job has taken, under all the ids by which slots were brought to it.

        One that has not finished is as large as it was expected to be, if that is more.
        """
        known = list(ids)
        if job.divisible is not None:
            held_s = sum(self._holdings[name].held_s for name in known)
            expected_s = 0.0 if finished else max(map(self._expected_s, known))
            return JobTruth(work_s=max(held_s, expected_s, LEAST_S))
        return JobTruth(
            map_s=self._task_s[known[0], MAP].or_else(LEAST_S),
            reduce_s=self._task_s[known[0], REDUCE].or_else(LEAST_S),
        )

    def _expected_s(self, job: str) -> float:
        events = (told.event for told in reversed(self.told[job]))
        estimates = (e.work_s for e in events if isinstance(e, ev.EstimateChanged))
        return next((work_s for work_s in estimates if work_s is not None), 0.0)

    def _see(self, event: ev.Event) -> None:
        match event:
            case ev.QuerySubmitted(time_s, query):
                for job in query.jobs:
                    self._submitted_s[query.job_id(job.name)] = time_s
            case ev.EstimateChanged() | ev.WidthChanged():
                self._hear(event)
            case ev.LeaseEnded(time_s, job_id, node, slots, outcome):
                self._holdings[job_id].change(time_s, node, -slots)
                if outcome == "revoked":
                    self._return(job_id, node, slots, time_s)
            case ev.TaskFinished(time_s, number):
                if number in self._launches:
                    launch, began_s = self._launches.pop(number)
                    for task in launch.tasks:
                        self._task_s[task.job, task.kind].add(time_s - began_s)
            case ev.NodeLost(time_s, node):
                for holding in self._holdings.values():
                    holding.lose(time_s, node)
            case ev.QueryCancelled(time_s, query_id):
                self.cancelled_s.setdefault(query_id, time_s)
            case ev.PolicyChosen() | ev.TableChanged():
                self.changes.append(event)

    def _execute(self, command: Command, now: float) -> None:
        match command:
            case Grant(job, node, slots):
                self._holdings[job].change(now, node, slots)
            case Revoke(job, node, slots):
                self._revoked_s[job, node].extend([now] * slots)
            case Launch(number):
                self._launches[number] = (command, now)

    def _hear(self, event: ev.EstimateChanged | ev.WidthChanged) -> None:
        if isinstance(event, ev.WidthChanged) and not event.width:
            return  # its reader is slow, which a simulated one is not
        submitted_s = self._submitted_s.get(event.job)
        if submitted_s is not None:
            held_s = self._holdings[event.job].look(event.time_s)
            self.told[event.job].append(Told(event.time_s - submitted_s, held_s, event))

    def _return(self, job: str, node: str, slots: int, now: float) -> None:
        asked_s = self._revoked_s[job, node]
        for revoked_s in asked_s[:slots]:
            self._revoke_delay_s.add(now - revoked_s)
        del asked_s[:slots]

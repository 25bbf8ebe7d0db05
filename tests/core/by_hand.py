"""A kernel driven event by event, its invariants checked after every step.

>>> hand = Hand("fifo", "1x2")
>>> launched(hand.submit("q", maps("scan", 3)))
['q/scan:m0', 'q/scan:m1']
>>> launched(hand.finish("q/scan:m0"))
['q/scan:m2']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.journal import Journal
from queryard.core.model import Divisible, Job, Node, Phase, Query, Table
from queryard.core.scheduler import Scheduler
from queryard.core.state import Settings, State
from queryard.policies import compose, resolve_profile
from queryard.sim import replay

ON_ITS_NODE = object()


def maps(name: str, count: int, reduces: int = 0, **job: Any) -> Job:
    """A job of so many maps, and reduces if there are any."""
    return Job(name, map=Phase(count), reduce=Phase(reduces) if reduces else None, **job)


def divisible(name: str, width: int, batches: int = 1, **job: Any) -> Job:
    return Job(name, divisible=Divisible(width, batches), **job)


def nodes_of(given: str | Iterable[Node]) -> list[Node]:
    """Nodes as they are, or as COUNTxSLOTS: n0, n1 …, all of one host."""
    if isinstance(given, str):
        count, slots = map(int, given.split("x"))
        return [Node(f"n{number}", slots, host="one") for number in range(count)]
    return list(given)


class Hand:
    """Feeds events at `now`, which the test moves on as it likes."""

    def __init__(
        self,
        profile: str | Mapping[str, Any] = "fifo",
        nodes: str | Iterable[Node] = "1x1",
        tables: Iterable[Table] = (),
        **settings: Any,
    ) -> None:
        kernel = Settings(**settings)
        resolved = resolve_profile(profile)
        journal = Journal(asdict(kernel), resolved)
        self.scheduler = Scheduler(compose, resolved, kernel, journal)
        self.now = 0.0
        self.ended: dict[str, do.Finish | do.Fail] = {}
        self.do(*(ev.TableChanged(0.0, table) for table in tables))
        self.do(*(ev.NodeJoined(0.0, node) for node in nodes_of(nodes)))

    @property
    def state(self) -> State:
        return self.scheduler.state

    @property
    def journal(self) -> Journal:
        assert self.scheduler.journal is not None
        return self.scheduler.journal

    def do(self, *events: ev.Event) -> list[do.Command]:
        """One call of the kernel; whatever it decides, it must agree with itself."""
        commands = self.scheduler.handle(*events)
        self.scheduler.validate()
        for command in commands:
            if isinstance(command, do.Finish | do.Fail):
                assert command.query not in self.ended, f"{command.query} ends twice"
                self.ended[command.query] = command
        return commands

    def wait(self, seconds: float) -> Hand:
        self.now += seconds
        return self

    # --- what can happen -------------------------------------------------------------------

    def submit(self, id: str, *jobs: Job, estimates: Any = None, **query: Any) -> list[do.Command]:
        """Submit a query; `estimates` are map_s, reduce_s, work_s by job, or one for all."""
        asked = Query(id, jobs, **query)
        told = [] if estimates is None else self._estimates(asked, estimates)
        return self.do(ev.QuerySubmitted(self.now, asked), *told)

    def _estimates(self, query: Query, given: Any) -> list[ev.Event]:
        if not isinstance(given, Mapping):
            given = {
                job.name: {"work_s": given} if job.divisible else {"map_s": given}
                for job in query.jobs
            }
        return [
            ev.EstimateChanged(self.now, query.job_id(name), **times)
            for name, times in given.items()
        ]

    def number(self, task: str) -> int:
        """The launch in which a task runs now."""
        found = [
            number for number, run in self.state.running.items() if task in map(str, run.tasks)
        ]
        assert len(found) == 1, f"{task} runs {len(found)} times"
        return found[0]

    def finish(self, *tasks: str, place: Any = ON_ITS_NODE) -> list[do.Command]:
        """Tasks end well; their output lives on their node unless told otherwise."""
        events = []
        for number in dict.fromkeys(map(self.number, tasks)):
            where = self.state.running[number].node if place is ON_ITS_NODE else place
            events.append(ev.TaskFinished(self.now, number, where))
        return self.do(*events)

    def fail(self, task: str, cause: str = "out of luck") -> list[do.Command]:
        return self.do(ev.TaskFailed(self.now, self.number(task), cause))

    def killed(self, commands: Iterable[do.Command]) -> list[do.Command]:
        """Obey the kills among commands."""
        numbers = [command.number for command in commands if isinstance(command, do.Kill)]
        return self.do(*(ev.TaskFailed(self.now, number, "killed") for number in numbers))

    def returned(self, commands: Iterable[do.Command]) -> list[do.Command]:
        """Obey the revokes among commands."""
        revokes = [command for command in commands if isinstance(command, do.Revoke)]
        return self.do(
            *(ev.LeaseEnded(self.now, r.job, r.node, r.slots, "revoked") for r in revokes)
        )

    def lease_over(self, job: str, outcome: Any = "finished", cause: str = "") -> list[do.Command]:
        """All slots of a divisible job come back at once."""
        leases = self.state.jobs[job].leases
        return self.do(
            *(
                ev.LeaseEnded(self.now, job, node, sum(slots), outcome, cause)
                for node, slots in leases.items()
            )
        )

    def cancel(self, query: str) -> list[do.Command]:
        return self.do(ev.QueryCancelled(self.now, query))

    def lose(self, *nodes: str) -> list[do.Command]:
        return self.do(*(ev.NodeLost(self.now, node) for node in nodes))

    def join(self, *nodes: Node) -> list[do.Command]:
        return self.do(*(ev.NodeJoined(self.now, node) for node in nodes))

    def run_all(self, most: int = 10_000) -> list[str]:
        """Finish whatever runs, the oldest first, one a second; the tasks in their order."""
        order = []
        for _ in range(most):
            self.now += 1.0
            if self.state.running:
                run = next(iter(self.state.running.values()))
                order += map(str, run.tasks)
                self.obey(self.do(ev.TaskFinished(self.now, run.number, run.node)))
            elif self.state.leaseholders:
                self.obey(self.lease_over(next(iter(self.state.leaseholders))))
            else:
                return order
        raise AssertionError(f"nothing has come to an end after {most} steps")

    def obey(self, commands: list[do.Command]) -> None:
        """Answer kills, revokes and releases, and whatever follows from the answers."""
        while commands:
            gone = [c.node for c in commands if isinstance(c, do.Release)]
            answers = [*self.killed(commands), *self.returned(commands)]
            commands = [*answers, *(self.lose(*gone) if gone else [])]

    # --- looking ---------------------------------------------------------------------------

    def running(self) -> list[str]:
        """Everything that runs, sorted."""
        return sorted(str(task) for run in self.state.running.values() for task in run.tasks)

    def slots(self, query: str) -> int:
        return self.state.queries[query].slots

    def check_replay(self) -> None:
        """The journal, written out and read back, leads a fresh kernel to the same commands."""
        difference = replay(Journal.from_lines(self.journal.to_lines()))
        assert difference is None, str(difference)


def launched(commands: Iterable[do.Command]) -> list[str]:
    """The tasks that were launched; riders are joined by a plus sign."""
    return [
        "+".join(map(str, command.tasks)) for command in commands if isinstance(command, do.Launch)
    ]


def of_type(kind: type, commands: Iterable[do.Command]) -> list[Any]:
    return [command for command in commands if isinstance(command, kind)]


def granted(commands: Iterable[do.Command]) -> dict[str, int]:
    """Slots granted by job."""
    total: dict[str, int] = {}
    for command in of_type(do.Grant, commands):
        total[command.job] = total.get(command.job, 0) + command.slots
    return total


def revoked(commands: Iterable[do.Command]) -> dict[str, int]:
    """Slots revoked by job."""
    total: dict[str, int] = {}
    for command in of_type(do.Revoke, commands):
        total[command.job] = total.get(command.job, 0) + command.slots
    return total

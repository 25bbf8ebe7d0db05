"""What `live` asks of the place where work runs, and what it is told.

A backend offers slots on nodes. It is given work (`add`), carries out the kernel's commands
(`execute`) and posts what really happened. It decides nothing: which query has which slot, whether
a failed attempt is repeated and which error a user sees is decided above it.

Every call returns at once; every outcome is an event, in the order in which it happened. `post` may
be called from any thread. A worker's failure is an event, never only a line in a log.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from queryard.core.commands import Grant, Kill, Launch, Release, Revoke, Scale
from queryard.core.events import (
    AnswerReported,
    LeaseEnded,
    NodeJoined,
    NodeLost,
    NodeSilent,
    TaskFinished,
    WidthChanged,
)
from queryard.core.model import TaskId
from queryard.estimate.widths import NOTHING_SEEN, Idling

NATIVE_JOB = "native"
"""The one job of a native query: its id is the query's, and this."""


# --- work ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Leased:
    """A divisible job: one query that DuckDB plans and runs on slots lent to it.

    Several identical queries may share one `run` (an execution, with the id of its first query).
    Each reads the answer from an `output` of its own, and the slots of each work on the run.
    `statement` is what the engine runs; it is None for a query that joins an existing run.

    It can use up to `width` slots. One that is expected to be over in a moment is `narrow`: it has
    one slot, and if it is not over by then the backend tells that it can use more.
    """

    run: str
    width: int
    output: Any
    statement: Any = None
    narrow: bool = False


class TaskSet(Protocol):
    """The tasks of a staged query, as far as a backend knows them."""

    def reading(
        self, launch: int, riders: Sequence[tuple[TaskSet, TaskId]]
    ) -> AbstractContextManager[Sequence[str]]:
        """What the tasks of a launch read together is there, for as long as the context lasts.

        The first rider is of this set; the others may be of other sets, and read the same split.
        The context gives what is handed to `run` of each rider. The names of jobs are those
        within their queries.
        """

    def cost_s(self, task: TaskId) -> float:
        """What a task was expected to take, to charge for what it reads together with others."""

    def run(self, launch: int, task: TaskId, source: str = "") -> float:
        """Run one task of a launch on the calling thread; the bytes it made.

        The task's job has the name it has within its query. `source` is what `reading` gave.
        """

    def kill(self, launch: int) -> None:
        """Stop the tasks of one launch."""

    def cancel(self, error: BaseException) -> None:
        """Stop all of them; no further one begins."""


@dataclass(frozen=True, slots=True)
class Staged:
    """Jobs of map and reduce tasks that the kernel launches one by one."""

    tasks: TaskSet


class Ready(NamedTuple):
    """A task that finds all its inputs, and what a node must know to run it."""

    task: TaskId
    spec: Any


class PlacedTasks(Protocol):
    """The tasks of a staged query as data: what they are, and where their rows lie.

    The names of jobs are those within the query.
    """

    def opening(self, cluster_bytes: float) -> Any:
        """What each node is sent once, before its first task; all have so much memory by now."""

    def next_for(
        self, task: TaskId, attempt: int, making: Container[TaskId], beside: bool
    ) -> Ready | None:
        """What to run next so that a launched task can run; at last the task itself.

        Results of other jobs are made again here if they were lost with a node: to the kernel those
        jobs are done. None if it must wait: for maps that the kernel launches, or for what is being
        made (`making`). `beside` the kernel, which has finished the query, everything is made here.
        `attempt` is above that of every earlier run of the task.
        """

    def done(self, task: TaskId, outcome: Any, beside: bool) -> None:
        """A task has run; `beside` the kernel, which does not know where its rows lie."""

    def lose_place(self, place: str) -> None:
        """A node is gone, with the rows there."""

    def lose_pieces(self, task: TaskId, error: BaseException) -> BaseException:
        """A task has failed, maybe because rows are gone that it reads; the error to tell."""


@dataclass(frozen=True, slots=True)
class Spread:
    """As `Staged`, for a backend that runs tasks in other processes."""

    tasks: PlacedTasks


Work = Leased | Staged | Spread


# --- events --------------------------------------------------------------------------------------


class Usage(NamedTuple):
    """What one query has cost so far, on whatever slots.

    `burst_s` are the slot-seconds of its slots after they were written off: they had not left when
    they were revoked, and burst slots ran in their place. `idling` is what was seen of slots that
    did nothing.
    """

    work_s: float = 0.0
    held_s: float = 0.0
    burst_s: float = 0.0
    slots: int = 0
    idling: Idling = NOTHING_SEEN


NO_USAGE = Usage()


class RunJoined(NamedTuple):
    """A query has joined an existing run, which answers it."""

    query: str


class JoinRefused(NamedTuple):
    """A query came too late to join a run: rows it needs are gone."""

    query: str


class RunReport(NamedTuple):
    """How far a run is, while slots work on it.

    `memory_bytes` is what it uses now; None where that is not known or was not looked at.
    """

    run: str
    progress: float
    memory_bytes: int | None
    usage: Mapping[str, Usage]


class RunEnded(NamedTuple):
    """A run is over; it comes before the ends of its leases.

    `rows_out` says whether readers have seen anything of it, so that it cannot be run again. `node`
    is the one of a cluster at which it ran; "" if that was the driver's process. A run that failed
    at a node may be granted slots again: it begins anew.
    """

    run: str
    error: BaseException | None
    rows_out: bool
    node: str = ""


class QueryUsed(NamedTuple):
    """What a query has cost; it comes before the end of each of its leases and launches."""

    query: str
    usage: Usage


class LaunchFailed(NamedTuple):
    """A launch ended without a result; `query` is the query of the failed task.

    Where several tasks ride on one launch, `job` names the job of the rider that failed: the end
    of the launch is told by a further event. Without it none of the riders has a result.
    """

    launch: int
    query: str
    error: BaseException
    job: str = ""


class WorkerFailed(NamedTuple):
    """A thread of the backend met an error that belongs to no query: a defect of Queryard's own."""

    error: BaseException


BackendEvent = (
    RunJoined
    | JoinRefused
    | RunReport
    | RunEnded
    | QueryUsed
    | LaunchFailed
    | WorkerFailed
    | AnswerReported
    | LeaseEnded
    | TaskFinished
    | WidthChanged
    | NodeJoined
    | NodeLost
    | NodeSilent
)


class BackendReport(NamedTuple):
    """What the backend itself has cost, and how often a burst slot was used.

    `sprints` are queries begun as very short ones, `restarts` those of them that were stopped and
    begun again, `restart_s` the seconds until then.
    """

    cpu_s: float = 0.0
    bursts: int = 0
    burst_s: float = 0.0
    sprints: int = 0
    restarts: int = 0
    restart_s: float = 0.0


class NodeNote(NamedTuple):
    """What a backend knows of a node beside its slots.

    Where it is, for how long it has not answered, and how many outputs of tasks it holds.
    """

    where: str = ""
    silent_s: float = 0.0
    objects: int = 0


Post = Callable[[BackendEvent], None]
BackendCommand = Grant | Revoke | Launch | Kill | Scale | Release


class Backend(Protocol):
    """Where work runs. Calls come from one thread, but for `report` and `close`."""

    @property
    def slots(self) -> int:
        """How many there are at most."""

    @property
    def width(self) -> int:
        """How many slots one divisible job can use at most."""

    def start(self, post: Post) -> None:
        """Begin: post `NodeJoined` for each node there is, `NodeLost` when one goes, `NodeSilent`
        while one does not answer.
        """

    def add(self, query: str, work: Work) -> None:
        """Make the work of a query known, before it enters the kernel.

        A query that joins a run is answered by `RunJoined` or `JoinRefused`.
        """

    def execute(self, command: BackendCommand) -> None:
        """Begin to carry out a command."""

    def set_guarantee_unmet(self, unmet: bool) -> None:
        """Whether a waiting tenant has less than its guarantee: then more overstaying slots than
        usual may be replaced by burst slots.
        """

    def stop(self, query: str, error: BaseException) -> None:
        """A query is not wanted any more: end what runs for it alone."""

    def forget(self, query: str) -> None:
        """A query has ended; nothing of it runs but launches of tasks that others have done."""

    def report(self) -> BackendReport: ...

    def notes(self) -> Mapping[str, NodeNote]:
        """What there is to say of nodes, by name; of a process's own there is nothing."""

    @property
    def refused(self) -> tuple[str, ...]:
        """The nodes that do not take part, each with the reason."""

    def close(self, timeout_s: float) -> bool:
        """End everything; False if something goes on for longer than that."""

"""Launches of tasks at nodes, as the driver knows them.

A launch runs its task at its node. If results of other jobs that it reads were lost with a node,
they are made again first, in its slot: to the kernel those jobs are done. Rows of maps that were
lost are the kernel's to make again; a reduce that needs them waits.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from queryard.backends.protocol import LaunchFailed, PlacedTasks, Post
from queryard.core.commands import Kill, Launch
from queryard.core.events import TaskFinished
from queryard.core.model import JobId, TaskId
from queryard.engine.errors import QueryCancelled
from queryard.engine.staged.exchange import Superseded

from .link import Link
from .messages import Ahead, Execute, Forget, Made, NodeEvent, Open, StartTask, Stop

# Numbers of tasks that are made again begin here: the kernel's own never get so far.
BESIDE = 1 << 40


@dataclass(slots=True)
class Launched:
    """A launch of the kernel, or a task that is made again because its rows are to be read."""

    number: int
    query: str
    task: TaskId  # with the name that its job has within the query
    link: Link
    # What runs at the node now: its number there, and the task. None while it waits.
    runs: tuple[int, TaskId] | None = None
    # Hears of the end, in place of the kernel.
    ended: Callable[[BaseException | None], None] | None = None
    # Whether another launch has done its task: what it makes is not used.
    beaten: bool = False
    # Whether what it has made of its task is used.
    used: bool = False

    @property
    def is_beside(self) -> bool:
        """Whether the kernel knows nothing of it."""
        return self.ended is not None


@dataclass(slots=True)
class TasksOf:
    """What is under way of one query."""

    tasks: PlacedTasks
    launched: dict[int, Launched] = field(default_factory=dict)
    # How many launches make a task now: two runs of one task may be under way.
    making: Counter[TaskId] = field(default_factory=Counter)
    at: dict[str, Link] = field(default_factory=dict)

    def made(self, task: TaskId) -> None:
        """A launch does not make a task any more."""
        self.making[task] -= 1
        if not self.making[task]:
            del self.making[task]


class Launches:
    """All launches; its owner makes one call at a time."""

    def __init__(
        self, prepared: Callable[[Link], None], cluster_bytes: Callable[[], float]
    ) -> None:
        """`prepared` sends what a node must know before a plan; `cluster_bytes` is the memory of
        all nodes together, by now.
        """
        self._prepared = prepared
        self._cluster_bytes = cluster_bytes
        self._post: Post = _nothing
        self._queries: dict[str, TasksOf] = {}
        self._numbers = itertools.count(BESIDE)
        # A task that runs later counts more, whatever it runs for.
        self._attempts = itertools.count(1)
        # By the number at the node.
        self._running: dict[int, Launched] = {}

    def begin(self, post: Post) -> None:
        self._post = post

    def add(self, query: str, tasks: PlacedTasks) -> None:
        self._queries[query] = TasksOf(tasks)

    def has(self, query: str) -> bool:
        return query in self._queries

    # --- commands -----------------------------------------------------------------------------

    def launch(self, command: Launch, link: Link) -> None:
        (task,) = command.tasks  # nothing that is spread shares a scan
        job = JobId.of(task.job)
        self._enter(Launched(command.number, job.query, task._replace(job=job.name), link))

    def make_again(
        self, query: str, task: TaskId, link: Link, ended: Callable[[BaseException | None], None]
    ) -> None:
        """Run a task once more, because its rows are gone before they were read."""
        self._enter(Launched(next(self._numbers), query, task, link, ended=ended))

    def _enter(self, launched: Launched) -> None:
        known = self._queries.get(launched.query)
        if known is None:
            self._tell(launched, QueryCancelled("cancelled"))
            return
        known.launched[launched.number] = launched
        self._advance(known, launched)

    def _advance(self, known: TasksOf, launched: Launched) -> None:
        """Run what is next for a launch, if something is."""
        try:
            found = known.tasks.next_for(
                launched.task, next(self._attempts), known.making, launched.is_beside
            )
        except Exception as error:
            del known.launched[launched.number]
            self._tell(launched, error)
            return
        if found is None:
            return  # it waits
        self._open(known, launched)
        link = launched.link
        is_last = found.task == launched.task
        number = launched.number if is_last else next(self._numbers)
        known.making[found.task] += 1
        launched.runs = number, found.task
        self._running[number] = launched
        job = str(JobId(launched.query, found.task.job))
        command = Launch(number, link.name, (found.task._replace(job=job),))
        link.send(StartTask(command, found.spec))

    def _open(self, known: TasksOf, launched: Launched) -> None:
        """Let a node know a query, before anything else of it."""
        link = launched.link
        if link.name not in known.at:
            known.at[link.name] = link
            self._prepared(link)
            link.send(Open(launched.query, known.tasks.opening(self._cluster_bytes())))

    def _advance_all(self, known: TasksOf) -> None:
        """Something has changed: what waited may go on."""
        for launched in list(known.launched.values()):
            if launched.runs is None and launched.number in known.launched:
                self._advance(known, launched)

    def kill(self, command: Kill) -> None:
        for known in self._queries.values():
            launched = known.launched.get(command.number)
            if launched is None:
                continue
            if launched.runs is None:
                del known.launched[launched.number]
                self._tell(launched, QueryCancelled("killed"))
            else:
                launched.link.send(Execute(Kill(launched.runs[0])))
            return

    def stop(self, query: str, error: BaseException) -> None:
        known = self._queries.get(query)
        if known is None:
            return
        for launched in [each for each in known.launched.values() if each.runs is None]:
            del known.launched[launched.number]
            self._tell(launched, error)
        for link in known.at.values():
            link.send(Stop(query, error))

    def forget(self, query: str) -> None:
        known = self._queries.pop(query, None)
        if known is None:
            return
        for launched in known.launched.values():
            if launched.runs is not None:
                self._running.pop(launched.runs[0], None)
            # The second run of a task whose first one has been used, or what is made again for a
            # reader that has gone: it ends with the query.
            self._tell(launched, QueryCancelled("killed"))
        for link in known.at.values():
            link.send(Forget(query))

    # --- what nodes tell ----------------------------------------------------------------------

    def hear(self, event: NodeEvent) -> bool:
        """Whether it was about a launch."""
        match event:
            case Made():
                self._made(event)
            case TaskFinished():
                self._over(event.launch, None, event.output_bytes)
            case LaunchFailed():
                self._over(event.launch, event.error)
            case _:
                return False
        return True

    def _made(self, event: Made) -> None:
        launched = self._running.get(event.launch)
        if launched is None:
            return
        known = self._queries[launched.query]
        is_own = event.task == launched.task
        if is_own:
            if launched.beaten:
                return
            _set_beaten(known, launched, True)
            launched.used = True
        known.tasks.done(event.task, event.outcome, launched.is_beside or not is_own)
        if event.task.kind == "map":
            for waiting in known.launched.values():
                if waiting.runs is None:
                    self._tell_ahead(known, waiting, event)

    def _tell_ahead(self, known: TasksOf, waiting: Launched, event: Made) -> None:
        """A reduce was launched early: let its node fetch the rows of maps as they end."""
        task, link = waiting.task, waiting.link
        if task.kind != "reduce" or event.task.job != task.job:
            return
        pieces = tuple(
            piece
            for piece in event.outcome.pieces
            if piece.part == task.index and piece.rows and piece.holder != link.name
        )
        if pieces:
            self._open(known, waiting)
            link.send(Ahead(waiting.query, pieces))

    def _over(self, number: int, error: BaseException | None, output_bytes: float = 0.0) -> None:
        """What ran at a node for a launch has ended."""
        launched = self._running.pop(number, None)
        if launched is None or launched.runs is None:
            return
        known = self._queries[launched.query]
        _, task = launched.runs
        launched.runs = None
        known.made(task)
        if error is None and not launched.used and task == launched.task:
            error = Superseded(f"another run of task {task} was first")
        if error is not None:
            error = known.tasks.lose_pieces(launched.task, error)
        if error is not None or task == launched.task:
            del known.launched[launched.number]
            self._tell(launched, error, output_bytes)
        self._advance_all(known)

    def _tell(
        self, launched: Launched, error: BaseException | None, output_bytes: float = 0.0
    ) -> None:
        if launched.ended is not None:
            launched.ended(error)
        elif error is not None:
            self._post(LaunchFailed(launched.number, launched.query, error))
        else:
            place = launched.link.name
            self._post(TaskFinished(0.0, launched.number, place, output_bytes))

    def has_any_at(self, link: Link) -> bool:
        """Whether a task runs at a node."""
        return any(launched.link is link for launched in self._running.values())

    def lose(self, link: Link, reason: str) -> None:
        """A node is lost, with what ran there and the rows there; the kernel knows its launches."""
        for known in list(self._queries.values()):
            known.tasks.lose_place(link.name)
            known.at.pop(link.name, None)
            for launched in [each for each in known.launched.values() if each.link is link]:
                del known.launched[launched.number]
                _set_beaten(known, launched, False)
                if launched.runs is not None:
                    self._running.pop(launched.runs[0], None)
                    known.made(launched.runs[1])
                if launched.ended is not None:
                    launched.ended(QueryCancelled(f"node {link.name} was lost: {reason}"))
            self._advance_all(known)

    def close(self) -> None:
        """Nothing runs any more: what waits for a task to be made again need not wait."""
        for known in self._queries.values():
            for launched in known.launched.values():
                if launched.ended is not None:
                    launched.ended(QueryCancelled("the session was closed"))


def _set_beaten(known: TasksOf, launched: Launched, beaten: bool) -> None:
    """Other launches of a task are in vain from now on, or are not: its rows were lost at once."""
    for other in known.launched.values():
        if other is not launched and other.task == launched.task:
            other.beaten = beaten


def _nothing(event: object) -> None:
    pass

"""One node of the cluster: a process that holds a whole local backend.

The driver sends batches of orders, alone or with its next question for events, which is a long
poll. Both can be repeated without harm where an answer was lost on its way: batches are numbered,
and carried out in the order of their numbers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Any

from queryard.backends.local import LocalBackend
from queryard.backends.protocol import LaunchFailed, Leased, QueryUsed, Staged, WorkerFailed
from queryard.backends.workers import Workers
from queryard.core.errors import QueryardError
from queryard.core.events import NodeJoined, NodeLost
from queryard.core.model import JobId, Node, TaskId
from queryard.engine import gil_interval

from .messages import (
    Ahead,
    Credit,
    Execute,
    Forget,
    Gone,
    Lease,
    Lost,
    Made,
    Met,
    NodeEvent,
    NodeFacts,
    NodeReport,
    NodeSetting,
    Open,
    Order,
    RowsCame,
    StartTask,
    Stop,
    Tables,
    Unmet,
    Wanted,
)
from .node_tasks import NodeTasks
from .packing import Parcel, Unreadable, as_carried, packed, unpacked_each
from .rows_out import RowsOut
from .workplace import OpenWorkplace

# Events of at most so many bytes of rows are one answer.
BATCH_BYTES = 8 << 20
# Events that others follow at once: they are told together.
FOLLOWED = (Made, QueryUsed)
# Events that come sooner after the last ones wait for so long.
SPACE_S = 0.003
# Threads of the actor by what they do: events are waited for, and nothing may wait for that.
GROUPS = {"orders": 1, "events": 1, "rows": 2}


class Outbox:
    """Events in their order, until the driver has them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._events: list[NodeEvent] = []
        self._told_s = 0.0
        self._last = 0
        self._sent = packed((0, []))

    def put(self, event: NodeEvent) -> None:
        with self._changed:
            self._events.append(event)
            if not isinstance(event, FOLLOWED):
                self._changed.notify_all()

    def take(self, known: int, wait_s: float) -> Parcel:
        """A number, and the batch behind the batch `known`: the last again if that was not it."""
        with self._changed:
            if known < self._last:
                return self._sent
            self._changed.wait_for(self._is_full, wait_s)
        # Where much happens, it is told together.
        time.sleep(max(0.0, self._told_s + SPACE_S - time.monotonic()))
        with self._changed:
            end, size_bytes = 0, 0
            while end < len(self._events) and size_bytes < BATCH_BYTES:
                event = self._events[end]
                size_bytes += event.bytes if isinstance(event, RowsCame) else 0
                end += 1
            taken, self._events = self._events[:end], self._events[end:]
            self._told_s = time.monotonic()
            self._last = known + 1
            self._sent = packed((self._last, taken))
            return self._sent

    def _is_full(self) -> bool:
        return bool(self._events) and not isinstance(self._events[-1], FOLLOWED)


class NodeActor:
    """The process of a node; Ray makes an actor of it."""

    def __init__(self, setting: NodeSetting, open_workplace: OpenWorkplace) -> None:
        self._workplace = open_workplace(setting)
        self._outbox = Outbox()
        self._background = Workers(lambda error: self._outbox.put(_told(WorkerFailed(error))))
        node = Node(setting.name, setting.slots)
        self._backend = LocalBackend(self._workplace.engine, (node,))
        self._outputs: dict[str, RowsOut] = {}
        self._tasks: dict[str, NodeTasks] = {}
        # Queries that could not be opened here: their launches fail, and the node stays.
        self._unopened: dict[str, Open] = {}
        # Held while orders are carried out: they may come on two threads.
        self._executing = threading.Condition()
        self._last = 0
        self._backend.start(self._post)

    def _post(self, event: Any) -> None:
        # That this node is there is for the driver to tell.
        if not isinstance(event, NodeJoined | NodeLost):
            self._outbox.put(_told(event))

    # --- what the driver calls ----------------------------------------------------------------

    def facts(self) -> NodeFacts:
        """What the driver compares before it lets the node join."""
        return self._workplace.facts()

    def execute(self, parcel: Parcel) -> None:
        """Carry out a batch of orders, of which the number is the head."""
        self._execute(*unpacked_each(parcel))

    def _execute(self, number: int, orders: Iterable[Any]) -> None:
        """A batch that came before is left alone."""
        with self._executing:
            self._executing.wait_for(lambda: number <= self._last + 1)
            if number <= self._last:
                return
            for order in orders:
                try:
                    if isinstance(order, Unreadable):
                        raise QueryardError(order.why)
                    self._carry_out(order)
                except BaseException as error:
                    self._outbox.put(_told(WorkerFailed(error)))
            self._last = number
            self._executing.notify_all()

    def events(self, parcel: Parcel) -> Parcel:
        """What has happened since a batch of events that is known.

        The head is the number of that batch, how long to wait, and the number of the batch of
        orders that comes with the question, 0 if none does.
        """
        (known, wait_s, number), orders = unpacked_each(parcel)
        if number:
            self._execute(number, orders)
        return self._outbox.take(known, wait_s)

    def rows(self, query: str, wanted: tuple[Wanted, ...]) -> Any:
        """What another place asks for of what tasks have made here."""
        tasks = self._tasks.get(query)
        return Gone(tuple(each.key for each in wanted)) if tasks is None else tasks.rows(wanted)

    def report(self) -> NodeReport:
        """What it holds now, and what it has cost."""
        objects = sum(tasks.objects for tasks in list(self._tasks.values()))
        queries = len(self._tasks) + len(self._outputs)
        return NodeReport(queries, objects, *self._backend.report())

    def close(self, timeout_s: float) -> bool:
        """End everything; False if something goes on for longer than that."""
        deadline_s = time.monotonic() + timeout_s
        stopped = self._backend.close(timeout_s)
        for query in list(self._outputs):
            self._end_lease(query)
        while self._tasks:
            _, tasks = self._tasks.popitem()
            gil_interval.end()
            tasks.close()
        stopped = self._background.close(deadline_s) and stopped
        if stopped:
            self._workplace.close()
        return stopped

    # --- orders -------------------------------------------------------------------------------

    def _carry_out(self, order: Order) -> None:
        backend = self._backend
        match order:
            case Execute():
                backend.execute(order.command)
            case StartTask():
                self._run(order)
            case Credit():
                if (output := self._outputs.get(order.run)) is not None:
                    output.has_room(order.bytes)
            case Lease():
                self._lease(order)
            case Open():
                self._open(order)
            case Stop():
                backend.stop(order.query, order.error)
            case Forget():
                self._forget(order.query)
            case Ahead():
                if (tasks := self._tasks.get(order.query)) is not None:
                    tasks.ask_ahead(order.pieces)
            case Met():
                self._workplace.peers.meet(order.place, order.actor)
            case Lost():
                self._workplace.peers.lose(order.place)
                for tasks in self._tasks.values():
                    tasks.lose(order.place)
            case Tables():
                self._workplace.take(order)
            case Unmet():
                backend.set_guarantee_unmet(order.unmet)

    def _open(self, order: Open) -> Exception | None:
        """Make a query's tasks known; why that cannot be done, if so."""
        try:
            tasks = self._workplace.open_tasks(order.query, order.opening, self._made)
        except Exception as error:
            self._unopened[order.query] = order
            return error
        self._unopened.pop(order.query, None)
        gil_interval.begin()
        self._tasks[order.query] = tasks
        self._backend.add(order.query, Staged(tasks))
        return None

    def _run(self, order: StartTask) -> None:
        number = order.launch.number
        query = JobId.of(order.launch.tasks[0].job).query
        # What was in the way may have passed, such as a full disk.
        unopened = self._unopened.get(query)
        error = None if unopened is None else self._open(unopened)
        if error is not None:
            self._post(LaunchFailed(number, query, error))
            return
        self._tasks[query].expect(number, order.spec)
        self._backend.execute(order.launch)

    def _made(self, launch: int, task: TaskId, outcome: Any) -> None:
        self._outbox.put(Made(launch, task, outcome))

    def _lease(self, order: Lease) -> None:
        # While queries run, threads of Python take turns often, as at the driver.
        gil_interval.begin()
        output = self._outputs[order.query] = RowsOut(order.query, self._outbox.put)
        work = Leased(order.query, order.width, output, order.statement)
        self._backend.add(order.query, work)

    def _forget(self, query: str) -> None:
        self._backend.forget(query)
        self._end_lease(query)
        self._unopened.pop(query, None)
        if (tasks := self._tasks.pop(query, None)) is not None:
            gil_interval.end()
            self._background.start(tasks.close)

    def _end_lease(self, query: str) -> None:
        if self._outputs.pop(query, None) is not None:
            gil_interval.end()


def _told(event: Any) -> Any:
    """An event as it can travel."""
    error = getattr(event, "error", None)
    return event._replace(error=as_carried(error)) if isinstance(error, BaseException) else event

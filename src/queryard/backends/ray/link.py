"""One node as the driver knows it: orders go there, events come back, and its death is heard of.

Two threads per node: one waits for events in a long poll, and lets the orders that follow from
events travel with its next question; one sends other orders, those together that have collected
since its last batch was answered. Batches are numbered, and the node carries them out by their
numbers.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from queryard.core.model import Node

from .messages import (
    Execute,
    Forget,
    NodeEvent,
    NodeFacts,
    Order,
    RowsBegan,
    RowsCame,
    RowsEnded,
    StartTask,
    Stop,
)
from .packing import as_carried, packed_each, unpacked

# How long a node waits for something to tell before it answers all the same.
POLL_S = 1.0
# A node that has not answered for so long gets no orders until it answers again.
SUSPECT_S = 3.0
# How soon to ask again where a call did not get through.
AGAIN_S = 0.2
# Orders that follow from events are waited for so long: a call of Ray's costs more than packing
# them. The node holds back events for as long in any case.
FOLLOW_S = 0.002
# Orders that a node carries out in a moment.
QUICK = (StartTask, Execute, Forget)

Hear = Callable[["Link", Sequence[NodeEvent]], None]
Gone = Callable[["Link", str], None]


class Batch(NamedTuple):
    """Orders that travel together; the number 0 stands for none."""

    number: int = 0
    orders: Sequence[Order] = ()


class Link:
    """`hear` is called with events, `gone` once, with the reason, when the node is lost."""

    def __init__(
        self,
        ray: Any,
        actor: Any,
        node: Node,
        ray_node: str,
        where: str,
        facts: NodeFacts,
        hear: Hear,
        gone: Gone,
    ) -> None:
        self.node = node
        self.ray_node = ray_node
        self.where = where
        self.facts = facts
        self.actor = actor
        # The catalog that it knows, by its version.
        self.tables_version = -1
        # Whether the kernel takes it to be silent.
        self.told_suspect = False
        self._ray = ray
        self._execute = actor.execute.options(concurrency_group="orders")
        self._events = actor.events.options(concurrency_group="events")
        self._hear = hear
        self._gone = gone
        self._lock = threading.Lock()
        # Each wakes one thread: the one that sends, and the one that asks.
        self._to_send = threading.Condition(self._lock)
        self._to_ask = threading.Condition(self._lock)
        self._orders: list[Order] = []
        self._batches = 0
        # Whether the thread that asks takes the orders that come now; and whether the other one
        # waits for the answer to some.
        self._asks_soon = False
        self._is_sending = False
        self._began_s = self._heard_s = time.monotonic()
        self._closed = False
        self._threads = [
            threading.Thread(target=work, name=f"queryard-{what}-{node.id}", daemon=True)
            for what, work in (("orders", self._send_all), ("events", self._hear_all))
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    @property
    def name(self) -> str:
        """The name of this incarnation of the node."""
        return self.node.id

    @property
    def silent_s(self) -> float:
        """For how long it has not answered."""
        return time.monotonic() - self._heard_s

    @property
    def lived_s(self) -> float:
        """How long ago it has joined."""
        return time.monotonic() - self._began_s

    @property
    def is_suspect(self) -> bool:
        """Whether it may be lost: it is sent nothing, and what it should run is kept."""
        return self.silent_s > SUSPECT_S

    def wait_anew(self) -> None:
        """Its silence counts from now on: nothing could be heard before."""
        self._heard_s = time.monotonic()

    def send(self, order: Order) -> None:
        if isinstance(order, Stop):
            order = order._replace(error=as_carried(order.error))
        with self._lock:
            self._orders.append(order)
            (self._to_ask if self._asks_soon else self._to_send).notify()

    # --- its threads --------------------------------------------------------------------------

    def _send_all(self) -> None:
        while (batch := self._batch_to_send()) is not None:
            # A batch is sent again until it is answered: the node takes it once.
            parcel = packed_each(batch.orders, batch.number)
            del batch
            if not self._call(partial(self._execute.remote, parcel)):
                return

    def _batch_to_send(self) -> Batch | None:
        """What the thread that sends is to send next, once there is something; None at the end."""
        with self._lock:
            self._is_sending = False
            while not self._closed:
                if self._orders and not self._asks_soon and not self.is_suspect:
                    self._is_sending = True
                    return self._taken()
                self._to_send.wait(AGAIN_S if self._orders else None)
        return None

    def _taken(self) -> Batch:
        """All orders; under the lock."""
        orders, self._orders = self._orders, []
        self._batches += 1
        return Batch(self._batches, orders)

    def _hear_all(self) -> None:
        answer: list[Any] = []
        question = packed_each((), (0, POLL_S, 0))
        while self._call(partial(self._events.remote, question), answer):
            self._heard_s = time.monotonic()
            known, events = unpacked(answer.pop())
            batch = self._heard(events) if events else Batch()
            question = packed_each(batch.orders, (known, POLL_S, batch.number))
            del events, batch

    def _heard(self, events: Sequence[NodeEvent]) -> Batch:
        """Tell events, and wait a moment for the orders that follow from them."""
        # Passing on rows may take long; orders do not wait for that.
        asks_soon = not any(isinstance(each, RowsBegan | RowsCame | RowsEnded) for each in events)
        self._asks_soon = asks_soon
        self._hear(self, events)
        if not asks_soon:
            return Batch()
        with self._lock:
            self._to_ask.wait_for(lambda: self._orders or self._closed, FOLLOW_S)
            self._asks_soon = False
            is_quick = all(isinstance(order, QUICK) for order in self._orders)
            if not self._orders or self._is_sending or not is_quick:
                # Events must not wait for orders that take longer, nor for those under way.
                self._to_send.notify()
                return Batch()
            return self._taken()

    def _call(self, call: Callable[[], Any], answer: list[Any] | None = None) -> bool:
        """Call the node until it has answered; False if it is lost, or all is over."""
        errors = self._ray.exceptions
        while not self._closed:
            try:
                found = self._ray.get(call())
            except errors.ActorUnavailableError:
                time.sleep(AGAIN_S)
            except errors.RayActorError as error:
                self._lost(_reason(error))
                return False
            except BaseException as error:
                # A defect, or Ray was shut down under us: nothing can be said of the node.
                self._lost(f"{type(error).__name__}: {error}")
                return False
            else:
                if answer is not None:
                    answer.append(found)
                return True
        return False

    def _lost(self, reason: str) -> None:
        if self._set_closed():
            self._gone(self, reason)

    def _set_closed(self) -> bool:
        """Let both threads end; False if they were told before."""
        with self._lock:
            first, self._closed = not self._closed, True
            self._to_send.notify()
            self._to_ask.notify()
        return first

    # --- the end ------------------------------------------------------------------------------

    def give_up(self, reason: str) -> None:
        """It is taken for lost, whatever Ray says."""
        self._lost(reason)
        self.kill()

    def kill(self) -> None:
        """End its process."""
        self._set_closed()
        # At the end of a program Ray may have ended it already, and itself.
        with contextlib.suppress(Exception):
            self._ray.kill(self.actor, no_restart=True)

    def close(self, timeout_s: float) -> bool:
        """End what runs there, then its process; False if something did not end in time."""
        self._set_closed()
        stopped = False
        try:
            ending = self.actor.close.remote(timeout_s)
            stopped = bool(self._ray.get(ending, timeout=timeout_s + 1.0))
        except Exception:
            pass  # it did not answer in time, or is gone
        self.kill()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(2.0)
        return stopped


def _reason(error: BaseException) -> str:
    """What Ray says of the death of an actor, in its first line that says something."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if line and not line.startswith(("class_name", "actor_id"))]
    return said[0] if said else type(error).__name__

"""One node as the driver knows it: orders go there, news come back, and its death is heard of.

Two threads per node: one sends what has collected since its last batch was answered, so that
orders keep their order and come in batches; one waits for news in a long poll.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from queryard.core.model import Node

from .messages import News, NodeFacts, Order, Stop
from .packing import as_carried, packed_each, unpacked

# How long a node waits for something to tell before it answers all the same.
POLL_S = 1.0
# A node that has not answered for so long gets no orders until it answers again.
SUSPECT_S = 3.0
# How soon to ask again where a call did not get through.
AGAIN_S = 0.2

Hear = Callable[["Link", Sequence[News]], None]
Gone = Callable[["Link", str], None]


class Link:
    """`hear` is called with news, `gone` once, with the reason, when the node is lost."""

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
        self._obey = actor.obey.options(concurrency_group="orders")
        self._news = actor.news.options(concurrency_group="news")
        self._hear = hear
        self._gone = gone
        self._changed = threading.Condition()
        self._orders: list[Order] = []
        self._began_s = self._heard_s = time.monotonic()
        self._closed = False
        self._threads = [
            threading.Thread(target=work, name=f"queryard-{what}-{node.id}", daemon=True)
            for what, work in (("orders", self._send_all), ("news", self._hear_all))
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
        with self._changed:
            self._orders.append(order)
            self._changed.notify_all()

    # --- its threads --------------------------------------------------------------------------

    def _send_all(self) -> None:
        number = 0
        while (orders := self._next_orders()) is not None:
            number += 1
            text, beside = packed_each(orders)
            # A batch is sent again until it is answered: the node takes it once.
            if not self._call(partial(self._obey.remote, number, text, beside)):
                return

    def _next_orders(self) -> list[Order] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._orders or self._closed)
            while self.is_suspect and not self._closed:
                self._changed.wait(AGAIN_S)
            if self._closed:
                return None
            orders, self._orders = self._orders, []
            return orders

    def _hear_all(self) -> None:
        known = 0
        answer: list[Any] = []
        while self._call(partial(self._news.remote, known, POLL_S), answer):
            self._heard_s = time.monotonic()
            known, text, beside = answer.pop()
            if news := unpacked(text, beside):
                self._hear(self, news)
            del news, beside

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
        with self._changed:
            first, self._closed = not self._closed, True
            self._changed.notify_all()
        if first:
            self._gone(self, reason)

    # --- the end ------------------------------------------------------------------------------

    def give_up(self, reason: str) -> None:
        """It is taken for lost, whatever Ray says."""
        self._lost(reason)
        self.kill()

    def kill(self) -> None:
        """End its process."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        # At the end of a program Ray may have ended it already, and itself.
        with contextlib.suppress(Exception):
            self._ray.kill(self.actor, no_restart=True)

    def close(self, timeout_s: float) -> bool:
        """End what runs there, then its process; False if something did not end in time."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
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

"""Orders and events of one node: few calls of Ray's, and orders in their order."""

from __future__ import annotations

import queue
import threading
import types
from collections.abc import Iterator
from typing import Any

import pytest

from queryard.backends.ray import link as module
from queryard.backends.ray.actor import NodeActor
from queryard.backends.ray.link import Link
from queryard.backends.ray.messages import Forget, RowsEnded, Unmet
from queryard.backends.ray.packing import Parcel, packed, packed_each, unpacked_each
from queryard.core.events import TaskFinished
from queryard.core.model import Node

PATIENCE_S = 30.0
END = TaskFinished(0.0, 1, "n", 10.0)


class _Unavailable(Exception):
    pass


class _Died(Exception):
    pass


class Far:
    """A node that is told when to answer: it notes calls, each with the orders that came."""

    def __init__(self) -> None:
        self.calls: queue.Queue[tuple[str, list[Any]]] = queue.Queue()
        self.events: queue.Queue[list[Any]] = queue.Queue()
        self.executes = threading.Event()
        self.executes.set()
        self._told = 0
        errors = types.SimpleNamespace(ActorUnavailableError=_Unavailable, RayActorError=_Died)
        self.ray = types.SimpleNamespace(
            exceptions=errors, get=lambda call: call(), kill=lambda *given, **named: None
        )
        self.actor = types.SimpleNamespace(
            execute=self._method("execute"), events=self._method("events")
        )

    def _method(self, name: str) -> Any:
        def remote(*given: Any) -> Any:
            _, orders = unpacked_each(*given)
            self.calls.put((name, list(orders)))
            return self._execute if name == "execute" else self._answer

        method = types.SimpleNamespace(remote=remote)
        method.options = lambda concurrency_group: method
        return method

    def _execute(self) -> None:
        assert self.executes.wait(PATIENCE_S)

    def _answer(self) -> Parcel:
        events = self.events.get(timeout=PATIENCE_S)
        self._told += 1
        if not events:
            raise _Died("the test is over")
        return packed((self._told, events))

    def next_call(self) -> tuple[str, list[Any]]:
        return self.calls.get(timeout=PATIENCE_S)


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> Iterator[Far]:
    monkeypatch.setattr(module, "FOLLOW_S", PATIENCE_S)
    monkeypatch.setattr(module, "SUSPECT_S", 10 * PATIENCE_S)
    made = Far()
    yield made
    made.executes.set()
    made.events.put([])


def linked(far: Far, *follow: Any) -> Link:
    """A link whose driver gives these orders as soon as it hears of something."""

    def hear(link: Link, events: Any) -> None:
        for order in follow:
            link.send(order)

    link = Link(
        far.ray,
        far.actor,
        Node("n", 1),
        "",
        "",
        None,
        hear,
        lambda link, reason: None,  # type: ignore[arg-type]
    )
    link.start()
    assert far.next_call() == ("events", [])
    return link


def test_orders_that_follow_from_events_travel_with_the_next_question(far: Far):
    linked(far, Forget("q"))
    far.events.put([END])
    assert far.next_call() == ("events", [Forget("q")])


def test_other_orders_travel_at_once(far: Far):
    link = linked(far)
    link.send(Forget("q"))
    assert far.next_call() == ("execute", [Forget("q")])


@pytest.mark.parametrize(
    ("event", "order"), [(END, Unmet(True)), (RowsEnded("q"), Forget("q"))], ids=["slow", "rows"]
)
def test_events_wait_for_no_orders_that_take_longer_nor_orders_for_rows(far: Far, event, order):
    linked(far, order)
    far.events.put([event])
    assert sorted((far.next_call(), far.next_call())) == [("events", []), ("execute", [order])]


def test_events_do_not_wait_for_orders_that_are_under_way(far: Far):
    link = linked(far, Forget("second"))
    far.executes.clear()
    link.send(Forget("first"))
    assert far.next_call() == ("execute", [Forget("first")])
    far.events.put([END])
    assert far.next_call() == ("events", [])
    far.executes.set()
    assert far.next_call() == ("execute", [Forget("second")])


def test_a_node_carries_out_batches_in_the_order_of_their_numbers(monkeypatch):
    """They may come on two threads, and twice."""
    done: list[str] = []
    monkeypatch.setattr(NodeActor, "_carry_out", lambda self, order: done.append(order.query))
    node = object.__new__(NodeActor)
    node._executing, node._last = threading.Condition(), 0
    node._outbox = types.SimpleNamespace(take=lambda known, wait_s: [known + 1])  # type: ignore[assignment]
    second = threading.Thread(target=node.execute, args=(packed_each([Forget("b")], 2),))
    second.start()
    second.join(0.05)
    assert done == []
    assert node.events(packed_each([Forget("a")], (0, 0.0, 1))) == [1]
    second.join(PATIENCE_S)
    assert node.events(packed_each([Forget("a")], (1, 0.0, 1))) == [2]
    assert node.events(packed_each([], (2, 0.0, 0))) == [3]
    assert done == ["a", "b"]

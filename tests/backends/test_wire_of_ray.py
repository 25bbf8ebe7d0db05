"""What travels between the driver and its nodes: in batches, in order, and short."""

from __future__ import annotations

import threading

import pytest

from queryard.backends.protocol import QueryUsed, Usage
from queryard.backends.ray import actor as module
from queryard.backends.ray.actor import Outbox
from queryard.backends.ray.messages import Forget, Lease, Made, Open, StartTask
from queryard.backends.ray.packing import (
    as_carried,
    packed,
    packed_each,
    unpacked,
    unpacked_each,
)
from queryard.core.commands import Launch
from queryard.core.events import TaskFinished
from queryard.core.model import TaskId
from queryard.engine.staged.exchange import Piece
from queryard.engine.staged.instance import Build
from queryard.engine.staged.task import Input, Output, TaskOutcome, TaskSpec

LONG_S = 30.0


def end_of(launch):
    return TaskFinished(0.0, launch, "n", 10.0)


def made_by(launch):
    return Made(launch, TaskId("j", "map", launch), None)


def test_what_a_task_has_made_is_told_with_its_end():
    outbox = Outbox()
    told = []
    waiting = threading.Thread(target=lambda: told.append(outbox.take(0, LONG_S)))
    waiting.start()
    outbox.put(made_by(1))
    outbox.put(QueryUsed("q", Usage(1.0)))
    assert not told
    outbox.put(end_of(1))
    waiting.join(LONG_S)
    number, events = unpacked(told[0])
    assert number == 1
    assert [type(each).__name__ for each in events] == ["Made", "QueryUsed", "TaskFinished"]


def test_events_that_come_soon_after_others_are_told_together(monkeypatch):
    monkeypatch.setattr(module, "SPACE_S", 0.2)
    outbox = Outbox()
    outbox.put(end_of(1))
    assert unpacked(outbox.take(0, LONG_S)) == (1, [end_of(1)])
    outbox.put(end_of(2))
    threading.Timer(0.01, lambda: outbox.put(end_of(3))).start()
    assert unpacked(outbox.take(1, LONG_S)) == (2, [end_of(2), end_of(3)])


def test_an_answer_that_was_lost_on_its_way_is_given_again():
    outbox = Outbox()
    outbox.put(end_of(1))
    first = outbox.take(0, LONG_S)
    outbox.put(end_of(2))
    assert outbox.take(0, LONG_S) == first
    assert unpacked(outbox.take(1, LONG_S)) == (2, [end_of(2)])
    assert unpacked(outbox.take(2, 0.0)) == (3, [])


class OfThisProcess(Exception):
    """Cannot be read again: it is made of two values, and gives one."""

    def __init__(self, one, other):
        super().__init__(one)


def test_an_order_that_cannot_travel_keeps_back_no_other():
    orders = [Forget("q1"), Open("q2", lambda: 1), Forget("q3")]
    _, (first, bad, last) = unpacked_each(packed_each(orders))
    assert (first, last) == (orders[0], orders[2])
    assert "a value of type Open cannot be sent" in bad.why


def test_an_order_that_cannot_be_read_keeps_back_no_other():
    orders = [Forget("q1"), Open("q2", OfThisProcess(1, 2)), Forget("q3")]
    _, (first, bad, last) = unpacked_each(packed_each(orders))
    assert (first, last) == (orders[0], orders[2])
    assert "cannot be read: TypeError" in bad.why


@pytest.mark.parametrize("statement", [lambda: 1, OfThisProcess(1, 2)])
def test_of_a_statement_that_cannot_travel_the_rest_of_its_order_arrives(statement):
    _, (order,) = unpacked_each(packed_each([Lease("q", 2, statement)]))
    assert (order.query, order.width) == ("q", 2)
    assert "cannot be" in order.statement.why
    _, (order,) = unpacked_each(packed_each([Lease("q", 2, "x")]))
    assert order == Lease("q", 2, "x")


def test_errors_travel_whatever_they_are():
    assert str(as_carried(OfThisProcess(1, 2))) == "OfThisProcess: 1"
    error = ValueError("x")
    assert as_carried(error) is error


@pytest.mark.parametrize("maps", [0, 10, 50])
def test_a_task_weighs_less_than_a_kilobyte(maps):
    """Also a reduce that reads what many maps have made at several nodes."""
    pieces = tuple(
        Piece(f"q-17/j3:m{n}", 3, f"88b0d2aa-{n % 4}", 1000 + 7 * n, 80_000 + 53 * n, 120 + n)
        for n in range(maps)
    )
    spec = TaskSpec(
        "q-17",
        "j3",
        "reduce",
        3,
        7,
        "",
        (Input("x_j3_0", pieces),),
        (),
        Output("q-17/j3:r3", None),
        16_384,
        1e9,
    )
    order = StartTask(Launch(123, "88b0d2aa-2", (TaskId("q-17/j3", "reduce", 3),)), spec)
    parcel = packed([order])
    assert unpacked(parcel) == [order]
    assert len(parcel) < 1024


def test_what_tasks_read_and_have_made_is_the_same_after_its_way():
    pieces = tuple(Piece("q/j:m0", n, "n", n, 10 * n, n) for n in range(3))
    told = [
        Input("x", ()),
        Input("x", pieces),
        Build("j", "a, b", pieces, ("q/k",)),
        TaskOutcome(7, pieces, 3, 30.0, 0.5, 0.1, 0.2),
    ]
    assert unpacked(packed(told)) == told

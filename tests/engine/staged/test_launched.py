"""Launches of a query at one node, and the instance that the first of them opens."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from queryard.engine.errors import QueryCancelled
from queryard.engine.staged.launched import Launched

PATIENCE_S = 20.0


class Pool:
    """Lends memory when the test says so."""

    def __init__(self) -> None:
        self.asked, self.has_room = threading.Event(), threading.Event()
        self.lent = 0

    def lend(self, memory_bytes: int) -> None:
        self.asked.set()
        assert self.has_room.wait(PATIENCE_S)
        self.lent += memory_bytes

    def take_back(self, memory_bytes: int) -> None:
        self.lent -= memory_bytes


class Opening:
    """A task that opens the instance, on a thread of its own."""

    def __init__(self) -> None:
        self.pool = Pool()
        self.node = SimpleNamespace(cancel=lambda: None)
        self.launched = Launched(self.pool, 8, lambda stack, half: self.node)  # type: ignore[arg-type]
        self.found: list[Any] = []
        self._thread = threading.Thread(target=self._open)
        self._thread.start()
        assert self.pool.asked.wait(PATIENCE_S)

    def _open(self) -> None:
        try:
            self.found.append(self.launched.node())
        except QueryCancelled as error:
            self.found.append(error)

    def goes_on(self) -> Any:
        self.pool.has_room.set()
        self._thread.join(PATIENCE_S)
        return self.found.pop()


@pytest.fixture
def opening() -> Opening:
    return Opening()


def beside(work: Any) -> bool:
    """Whether something ends although a task waits for memory."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(PATIENCE_S / 4)
    return not thread.is_alive()


def test_a_launch_is_stopped_while_the_instance_waits_for_memory(opening):
    is_over = beside(lambda: opening.launched.kill(7))
    assert opening.goes_on() is opening.node
    assert is_over
    assert opening.launched.cancellation(7).is_asked
    assert (opening.launched.node(), opening.pool.lent) == (opening.node, 8)
    opening.launched.close()
    assert opening.pool.lent == 0


def test_a_query_that_is_cancelled_meanwhile_has_no_instance(opening):
    is_over = beside(opening.launched.cancel)
    assert isinstance(opening.goes_on(), QueryCancelled)
    assert (is_over, opening.pool.lent) == (True, 0)

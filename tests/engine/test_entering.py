"""Slots of a query whose instance is still being opened."""

from __future__ import annotations

import threading
from types import SimpleNamespace

from queryard.engine.errors import QueryCancelled
from queryard.engine.native_query import NativeQuery
from queryard.engine.statement import Lease
from queryard.results.streams import ResultStream


class SlowPlace:
    """Opens when it is told to."""

    def __init__(self) -> None:
        self.opening = threading.Event()
        self.may_open = threading.Event()
        self.entered = 0
        self.left = 0
        self.reach = SimpleNamespace(told=lambda error: error)

    def enter(self):
        self.entered += 1
        self.opening.set()
        assert self.may_open.wait(30.0)
        raise QueryCancelled("opened too late")

    def leave(self):
        self.left += 1


def test_a_slot_that_waits_for_the_instance_can_be_revoked():
    place = SlowPlace()
    query = NativeQuery(place, [], ResultStream(), ())  # type: ignore[arg-type]
    first, second = Lease(), Lease()
    opens = threading.Thread(target=query.serve, args=(first,))
    opens.start()
    assert place.opening.wait(30.0)
    waits = threading.Thread(target=query.serve, args=(second,))
    waits.start()
    query.withdraw(second)
    waits.join(30.0)
    assert not waits.is_alive()
    assert opens.is_alive()
    assert place.entered == 1
    assert not place.left
    place.may_open.set()
    opens.join(30.0)
    assert query.ended
    assert place.left == 1

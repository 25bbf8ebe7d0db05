"""What held queries: looks add up to the time they waited, and memory stays bounded."""

from __future__ import annotations

import pytest

from queryard.live.overview import Standing
from queryard.service.observing import holds
from queryard.service.observing.holds import Holds
from service.observing.test_visibility import a_query, present


def test_looks_add_up_by_reason_until_the_query_begins():
    kept = []
    held = Holds(lambda query, seconds: kept.append((query, dict(seconds))))
    for hold, now_s in (("memory", 1.0), ("memory", 2.0), ("cap", 3.0), ("planning", 4.0)):
        waiting = a_query("q", started_s=None), Standing(0, hold, 0.0)
        held.look(present([waiting]).overview._replace(now_s=now_s), 1.0)
    assert held.of("q") == {"memory": 2.0, "the cap of its pool": 1.0}
    begun = a_query("q", started_s=4.5), Standing(2, "", 0.0)
    held.look(present([begun]).overview._replace(now_s=5.0), 1.0)
    assert held.of("q") == {"memory": 2.0, "the cap of its pool": 1.0}
    assert held.of("another") == {}
    assert kept == [("q", {"memory": 2.0, "the cap of its pool": 1.0})]


def test_a_query_that_has_just_come_waited_no_longer_than_it_is_there():
    held = Holds(lambda query, seconds: None)
    waiting = a_query("q", started_s=None), Standing(0, "memory", 0.0)
    held.look(present([waiting]).overview._replace(now_s=0.25), 1.0)
    assert held.of("q") == {"memory": pytest.approx(0.25)}


def test_a_pause_is_told_as_such():
    held = Holds(lambda query, seconds: None)
    waiting = a_query("q", started_s=None), Standing(0, "order", 0.0)
    held.look(present([waiting]).overview._replace(paused_by="ops"), 1.0)
    assert held.of("q") == {holds.PAUSED: 1.0}


def test_no_more_queries_are_remembered_than_is_said(monkeypatch):
    monkeypatch.setattr(holds, "KEPT", 5)
    monkeypatch.setattr(holds, "MOST_WAITING", 10)
    held = Holds(lambda query, seconds: None)
    for started_s in (None, 4.0):
        queries = [
            (a_query(f"q{number}", started_s=started_s), Standing(0, "memory", 0.0))
            for number in range(30)
        ]
        held.look(present(queries).overview, 1.0)
        known = [number for number in range(30) if held.of(f"q{number}")]
        assert len(known) == (10 if started_s is None else 5)

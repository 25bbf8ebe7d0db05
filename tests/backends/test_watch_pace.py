"""How often a running statement is polled: soon where that is of use, else rarely."""

from __future__ import annotations

from itertools import pairwise

import pytest

from queryard.backends.local import watch
from queryard.backends.local.member import LeasedExecution
from queryard.results.fan import Fan
from queryard.results.streams import ResultStream
from tests.backends.stubborn import StubbornQuery


@pytest.fixture
def run():
    return LeasedExecution("run", StubbornQuery(), Fan(ResultStream()))


def polls(run, seconds: float) -> list[float]:
    """When a statement is polled that goes on for so long."""
    now, found = 0.0, []
    while now < seconds:
        run.query.current_s = now
        found.append(now)
        now = watch._next(run, now)
    return found


def test_what_seems_ready_is_polled_soon_and_then_ever_more_rarely(run):
    run.query.seems_ready = True
    found = polls(run, 10.0)
    assert found[1] == pytest.approx(watch.CONFIRM_S)
    # DuckDB may say so all the time: about as often as any other statement that goes on.
    assert len([each for each in found if each > 1.0]) < 9.0 / watch.POLL_S[1] * 1.1
    run.query.seems_ready = False
    watch._next(run, 10.0)
    run.query.seems_ready = True
    assert watch._next(run, 10.1) == pytest.approx(10.1 + watch.CONFIRM_S)


def test_a_statement_is_polled_by_a_share_of_the_time_it_takes(run):
    found = polls(run, 10.0)
    assert found[1] == pytest.approx(watch.POLL_S[0])
    gaps = [b - a for a, b in pairwise(found)]
    assert max(gaps) <= watch.POLL_S[1] + 1e-9


def test_a_sprint_is_not_polled_at_first(run):
    made = watch.Watch(lambda each, now: None)
    try:
        run.query.sprints = run.query.sprinting = True
        made.add(run)
        made.remove(run)
        assert run.due_s >= run.told_s + watch.POLL_S[1]
    finally:
        made.close()

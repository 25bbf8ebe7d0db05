"""While the kernel is paused no waiting query starts, and what runs goes on."""

from __future__ import annotations

import pytest
from by_hand import Hand, divisible, granted, launched, maps

from queryard.core import events as ev
from queryard.core.model import Node, Split, Table
from queryard.sim import forecast


def test_waiting_queries_wait_and_running_ones_go_on():
    hand = Hand("fifo", "1x2")
    hand.submit("a", maps("j", 3))
    assert hand.do(ev.Paused(0.0, "ann")) == []
    assert hand.submit("b", maps("j", 1)) == []
    assert launched(hand.finish("a/j:m0")) == ["a/j:m2"]
    hand.finish("a/j:m1")
    hand.finish("a/j:m2")
    assert hand.state.queries.keys() == {"b"}, "both slots are free"
    assert launched(hand.do(ev.Resumed(hand.now))) == ["b/j:m0"]
    hand.finish("b/j:m0")
    hand.check_replay()


def test_a_running_query_has_the_slots_for_which_others_would_wait():
    hand = Hand("fair", "1x4")
    hand.submit("a", divisible("j", 4), estimates=10.0)
    hand.do(ev.Paused(0.0, "ann"))
    assert hand.submit("b", divisible("j", 4), estimates=10.0) == [], "no slot is revoked"
    revoked = hand.do(ev.Resumed(0.0))
    assert granted(hand.returned(revoked)) == {"b/j": 2}
    hand.check_replay()


def test_why_says_by_whom_and_the_forecast_has_no_start():
    hand = Hand("fifo", "1x1")
    hand.submit("a", maps("j", 1))
    hand.submit("b", maps("j", 1))
    hand.do(ev.Paused(0.0, "ann"))
    assert hand.scheduler.why("b").reasons == ("no query starts: paused by ann",)
    assert hand.scheduler.why("a").reasons[0] == "1 slot at work on it"
    found = forecast(hand.scheduler)
    assert found["a"].end_s is not None
    assert (found["b"].start_s, found["b"].end_s) == (None, None)
    hand.do(ev.Paused(0.0, "bob"))
    assert hand.scheduler.why("b").reasons == ("no query starts: paused by bob",)


def test_it_holds_for_forks_and_through_a_change_of_the_policy():
    hand = Hand("fifo", "1x1")
    hand.do(ev.Paused(0.0))
    hand.submit("a", maps("j", 1))
    assert hand.scheduler.fork().handle(ev.Woke(0.0)) == []
    assert hand.do(ev.PolicyChosen(0.0, {"order": "srtf"})) == []
    assert hand.scheduler.why("a").reasons == ("no query starts: paused",)
    assert launched(hand.do(ev.Resumed(0.0))) == ["a/j:m0"]
    hand.check_replay()


@pytest.mark.parametrize("sharing", ["circular", "mrshare"])
def test_a_waiting_query_does_not_ride(sharing: str):
    table = Table("t", tuple(Split(1.0) for _ in range(3)))
    hand = Hand({"order": "fifo", "sharing": sharing}, [Node("n0", 1)], [table])
    hand.submit("a", maps("j", 3, scans=("t",)))
    for _ in range(100):
        if hand.state.running:
            break
        hand.wait(1.0).do(ev.Woke(hand.now))
    hand.do(ev.Paused(hand.now, "ann"))
    hand.submit("b", maps("j", 3, scans=("t",)))
    for _ in range(20):
        if "a" in hand.state.queries:
            for run in list(hand.state.running.values()):
                assert {task.job for task in run.tasks} == {"a/j"}
                hand.finish(str(run.tasks[0]))
    assert hand.state.queries.keys() == {"b"}
    hand.do(ev.Resumed(hand.now))
    for _ in range(200):
        for run in list(hand.state.running.values()):
            hand.finish(str(run.tasks[0]))
        hand.wait(1.0).do(ev.Woke(hand.now))
    assert not hand.state.queries
    hand.check_replay()


def test_a_query_of_which_all_work_is_lost_waits_for_the_end_of_the_pause():
    hand = Hand("fifo", [Node("n0", 1), Node("n1", 1)])
    hand.submit("a", divisible("j", 1), estimates=10.0)
    (node,) = hand.state.jobs["a/j"].leases
    hand.do(ev.Paused(0.0, "ann"))
    assert hand.do(ev.NodeLost(0.0, node)) == []
    assert granted(hand.do(ev.Resumed(0.0))) == {"a/j": 1}
    hand.check_replay()

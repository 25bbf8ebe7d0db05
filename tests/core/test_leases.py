"""Divisible work: slots are granted, taken back after a delay, and come back at the end."""

from __future__ import annotations

import pytest
from by_hand import Hand, divisible, granted, launched, maps, of_type, revoked

from queryard.core import events as ev
from queryard.core.commands import Fail, Finish, Grant, Revoke
from queryard.core.model import Node, Query


def test_a_lone_query_is_given_all_slots_up_to_its_width():
    hand = Hand("fifo", "3x4")
    assert granted(hand.submit("q", divisible("d", 7))) == {"q/d": 7}
    assert {node.leased for node in hand.state.nodes.values()} == {2, 3}, "spread over the nodes"
    assert hand.join(Node("more", 9)) == [], "it can use no more"


def test_it_widens_when_slots_become_free():
    hand = Hand("fifo", "1x4")
    hand.submit("tasks", maps("j", 3))
    assert granted(hand.submit("q", divisible("d", 4))) == {"q/d": 1}
    assert granted(hand.finish("tasks/j:m0")) == {"q/d": 1}
    assert granted(hand.join(Node("new", 1, host="one"))) == {"q/d": 1}
    assert hand.slots("q") == 3


@pytest.mark.parametrize(
    ("profile", "small_gets"), [("swrd", 4), ("fair", 2), ("query-fair", 2), ("fifo", 0)]
)
def test_a_small_query_takes_slots_from_a_big_one(profile: str, small_gets: int):
    hand = Hand(profile, "2x2")
    hand.submit("big", divisible("d", 4), estimates=400.0)
    commands = hand.wait(1.0).submit("small", divisible("d", 4), estimates=4.0)
    assert revoked(commands) == ({"big/d": small_gets} if small_gets else {})
    assert not of_type(Grant, commands), "nothing is free before it came back"
    hand.returned(commands)
    assert hand.slots("big") == 4 - small_gets
    assert hand.slots("small") == small_gets
    back = hand.wait(1.0).lease_over("small/d") if small_gets else []
    assert granted(back) == ({"big/d": small_gets} if small_gets else {})
    hand.check_replay()


def test_tasks_take_slots_from_leases_too():
    hand = Hand("swrd", "1x3")
    hand.submit("big", divisible("d", 3), estimates=400.0)
    commands = hand.wait(1.0).submit("small", maps("j", 2), estimates=1.0)
    assert revoked(commands) == {"big/d": 2}
    assert launched(hand.returned(commands)) == ["small/j:m0", "small/j:m1"]


def test_tasks_are_not_interrupted_by_leases():
    hand = Hand("swrd", "1x2")
    hand.submit("tasks", maps("j", 2), estimates=100.0)
    assert hand.wait(1.0).submit("small", divisible("d", 2), estimates=1.0) == []
    assert granted(hand.finish("tasks/j:m0")) == {"small/d": 1}


def test_a_revoke_takes_effect_only_when_the_slots_are_back():
    hand = Hand("swrd", "1x2")
    hand.submit("big", divisible("d", 2), estimates=100.0)
    revokes = hand.wait(1.0).submit("small", divisible("d", 1), estimates=1.0)
    assert revoked(revokes) == {"big/d": 1}
    assert hand.slots("big") == 2
    assert hand.wait(5.0).do(ev.Woke(hand.now)) == [], "it is not asked for twice"
    assert hand.slots("small") == 0
    assert hand.returned(revokes) == [Grant("small/d", "n0", 1)]


def test_a_slot_that_was_asked_back_in_vain_goes_back_to_its_job():
    hand = Hand("swrd", "1x2")
    hand.submit("big", divisible("d", 2), estimates=100.0)
    revokes = hand.wait(1.0).submit("small", divisible("d", 1), estimates=1.0)
    hand.cancel("small")
    assert granted(hand.returned(revokes)) == {"big/d": 1}


def test_slots_may_come_back_one_by_one():
    hand = Hand("swrd", "1x4")
    hand.submit("big", divisible("d", 4), estimates=100.0)
    assert revoked(hand.wait(1.0).submit("small", divisible("d", 3), estimates=1.0)) == {"big/d": 3}
    for left in (3, 2, 1):
        back = hand.do(ev.LeaseEnded(hand.now, "big/d", "n0", 1, "revoked"))
        assert granted(back) == {"small/d": 1}
        assert hand.slots("big") == left


def test_work_stays_on_the_nodes_where_it_is():
    hand = Hand("query-fair", "4x1")
    hand.submit("a", divisible("d", 4))
    hand.obey(hand.wait(1.0).submit("b", divisible("d", 4)))
    homes = {job: set(hand.state.jobs[job].leases) for job in ("a/d", "b/d")}
    for _ in range(5):
        assert hand.wait(1.0).do(ev.Woke(hand.now)) == []
    assert {job: set(hand.state.jobs[job].leases) for job in homes} == homes


def test_progress_may_fall_when_there_is_more_to_do_than_it_seemed():
    hand = Hand("swrd", "1x1")
    hand.submit("q", divisible("d", 1), estimates=10.0)
    job = hand.state.jobs["q/d"]
    hand.do(ev.Progressed(0.0, "q/d", 0.5))
    assert job.left_s == 5.0
    hand.do(ev.Progressed(0.0, "q/d", 0.25))
    assert job.left_s == 7.5
    assert hand.state.queries["q"].left_s == 7.5
    assert hand.state.queries["q"].total_s == 10.0


def test_progress_changes_whose_turn_it_is():
    hand = Hand("swrd", "1x1")
    hand.submit("a", divisible("d", 1), estimates=10.0)
    assert hand.wait(1.0).submit("b", divisible("d", 1), estimates=8.0) == [Revoke("a/d", "n0", 1)]
    hand.returned([Revoke("a/d", "n0", 1)])
    hand.wait(1.0)
    assert hand.do(ev.Progressed(hand.now, "a/d", 0.5)) == [Revoke("b/d", "n0", 1)]


def test_a_job_on_several_nodes_is_finished_when_all_its_slots_are_back():
    hand = Hand("fifo", "3x1")
    hand.submit("q", divisible("d", 3), maps("k", 1, upstream=("d",)))
    ended = [ev.LeaseEnded(0.0, "q/d", f"n{i}", 1, "finished") for i in range(3)]
    assert hand.do(ended[0]) == [], "nor is anything granted again"
    assert hand.do(ended[2]) == []
    assert launched(hand.do(ended[1])) == ["q/k:m0"]


def test_a_node_that_is_lost_while_the_job_finishes_completes_it():
    hand = Hand("fifo", "2x1")
    hand.submit("q", divisible("d", 2))
    assert hand.do(ev.LeaseEnded(0.0, "q/d", "n0", 1, "finished")) == []
    assert hand.lose("n1") == [Finish("q")]


def test_a_lost_node_takes_only_its_own_slots():
    hand = Hand("fifo", "2x2")
    hand.submit("q", divisible("d", 4))
    hand.lose("n0")
    assert hand.state.jobs["q/d"].leases == {"n1": [2, 0]}
    assert granted(hand.join(Node("n2", 1, host="one"))) == {"q/d": 1}


def test_revoked_slots_of_a_lost_node_are_forgotten():
    hand = Hand("swrd", "2x1")
    hand.submit("big", divisible("d", 2), estimates=100.0)
    (revoke,) = of_type(Revoke, hand.wait(1.0).submit("s", divisible("d", 1), estimates=1.0))
    hand.lose(revoke.node)
    late = ev.LeaseEnded(hand.now, "big/d", revoke.node, 1, "revoked")
    assert hand.do(late) == []
    hand.run_all()
    assert set(hand.ended.values()) == {Finish("big"), Finish("s")}


def test_a_failed_lease_fails_the_query_with_the_cause():
    hand = Hand("fifo", "2x1")
    hand.submit("q", divisible("d", 2))
    commands = hand.do(ev.LeaseEnded(0.0, "q/d", "n0", 1, "failed", "out of memory"))
    assert commands == [Revoke("q/d", "n1", 1)]
    assert hand.returned(commands) == [Fail("q", "job q/d: out of memory")]


def test_leases_and_width_hold_for_every_job_of_a_query():
    hand = Hand("fifo", "1x9")
    hand.submit("q", divisible("a", 2), divisible("b", 3), divisible("c", 9, upstream=("a",)))
    assert {job.spec.name: job.slots for job in hand.state.queries["q"].jobs} == {
        "a": 2,
        "b": 3,
        "c": 0,
    }
    assert granted(hand.lease_over("q/a")) == {"q/c": 6}
    assert granted(hand.lease_over("q/b")) == {"q/c": 3}


def test_grants_of_an_instant_are_told_once_a_node():
    hand = Hand("fifo", [Node("a", 5, host="one"), Node("b", 2, host="one")])
    commands = hand.submit("q", divisible("d", 7))
    assert sorted(commands) == [Grant("q/d", "a", 5), Grant("q/d", "b", 2)]


def test_however_long_it_works_nothing_is_said_per_slice():
    hand = Hand("fifo", "1x2")
    hand.submit("q", divisible("d", 2), estimates=1e6)
    steps = len(hand.journal.steps)
    hand.wait(1e6).lease_over("q/d")
    assert len(hand.journal.steps) == steps + 1
    assert hand.ended == {"q": Finish("q")}


def test_a_job_that_waits_takes_no_part_in_the_deal():
    hand = Hand("query-fair", "1x4")
    hand.submit("a", divisible("d", 4))
    blocked = Query("b", (divisible("x", 1), divisible("y", 9, upstream=("x",))))
    commands = hand.wait(1.0).do(ev.QuerySubmitted(hand.now, blocked))
    assert revoked(commands) == {"a/d": 1}, "only as many as the newcomer can use"


@pytest.mark.parametrize("profile", ["fair", "query-fair", "srtf", "tls", "swrd", "relaqs"])
def test_deals_settle_down(profile: str):
    """Nothing new happens: after a few answers no slot moves any more."""
    hand = Hand(profile, "3x3")
    for number in range(5):
        hand.wait(1.0)
        job = divisible("d", 2 + number)
        hand.obey(hand.submit(f"q{number}", job, estimates=10.0 * (number + 1)))
    hand.wait(0.01)
    hand.obey(hand.do(ev.Woke(hand.now)))
    before = {q.id: q.slots for q in hand.state.queries.values()}
    assert sum(before.values()) == 9
    hand.obey(hand.do(ev.Woke(hand.now)))
    assert {q.id: q.slots for q in hand.state.queries.values()} == before

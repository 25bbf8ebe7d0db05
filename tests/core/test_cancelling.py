"""A query may be cancelled at any moment; nothing of it stays behind."""

from __future__ import annotations

import pytest
from by_hand import Hand, divisible, launched, maps, of_type, revoked
from hypothesis import given, settings
from hypothesis import strategies as st
from long_forms import examples

from queryard.core import events as ev
from queryard.core.commands import Fail, Finish, Kill, Revoke
from queryard.core.model import Node, Query, Split, Table

TABLE = Table("t", tuple(Split(1.0) for _ in range(3)))
CANCELLED = Fail("q", "cancelled")


def test_while_it_waits():
    hand = Hand("fifo", "1x1")
    hand.submit("first", maps("j", 2))
    hand.submit("q", maps("j", 2))
    assert hand.cancel("q") == [CANCELLED]
    hand.run_all()
    assert hand.ended["first"] == Finish("first")
    hand.check_replay()


def test_in_the_instant_of_its_submission():
    hand = Hand("fifo", "1x1")
    query = Query("q", (maps("j", 1),))
    assert hand.do(ev.QuerySubmitted(0.0, query), ev.QueryCancelled(0.0, "q")) == [CANCELLED]
    assert not hand.state.running


def test_while_tasks_run_it_ends_when_the_last_is_gone():
    hand = Hand("fifo", "1x2")
    hand.submit("q", maps("j", 3))
    hand.submit("next", maps("j", 2))
    first, second = (hand.number(f"q/j:m{i}") for i in (0, 1))
    assert hand.cancel("q") == [Kill(first), Kill(second)]
    assert launched(hand.do(ev.TaskFailed(0.0, first, "killed"))) == ["next/j:m0"]
    commands = hand.do(ev.TaskFinished(0.0, second, None))
    assert CANCELLED in commands, "a task that was quicker than its kill is as good"
    assert launched(commands) == ["next/j:m1"]
    hand.check_replay()


def test_while_its_node_is_lost():
    hand = Hand("fifo", "1x2")
    hand.submit("q", maps("j", 3), divisible("d", 1))
    hand.cancel("q")
    assert hand.lose("n0") == [CANCELLED]


def test_with_leases_it_ends_when_the_slots_are_back():
    hand = Hand("fifo", "2x2")
    hand.submit("q", divisible("d", 3))
    commands = hand.cancel("q")
    assert revoked(commands) == {"q/d": 3}
    first, second = of_type(Revoke, commands)
    assert hand.do(ev.LeaseEnded(0.0, "q/d", first.node, first.slots, "revoked")) == []
    assert hand.do(ev.LeaseEnded(0.0, "q/d", second.node, second.slots, "finished")) == [CANCELLED]


def test_slots_that_were_on_their_way_back_are_not_asked_for_twice():
    hand = Hand("fair", "1x2")
    hand.submit("q", divisible("d", 2))
    on_the_way = hand.wait(1.0).submit("other", maps("j", 5))
    assert revoked(on_the_way) == {"q/d": 1}
    assert revoked(hand.cancel("q")) == {"q/d": 1}
    assert of_type(Fail, hand.do(ev.LeaseEnded(1.0, "q/d", "n0", 2, "revoked"))) == [CANCELLED]


def test_while_it_is_paused():
    hand = Hand("swrd", [Node("n0", 1, 100.0)])
    hand.submit("q", divisible("d", 1), estimates=50.0, memory_bytes=60.0)
    hand.obey(hand.wait(1.0).submit("small", divisible("d", 1), estimates=1.0))
    assert hand.slots("q") == 0
    assert hand.state.reserved_bytes == 60.0
    assert hand.cancel("q") == [CANCELLED]
    assert hand.state.reserved_bytes == 0.0


def test_riding_with_others_it_gets_off_and_the_scan_goes_on():
    profile = {"order": "fifo", "sharing": {"name": "mrshare", "count": 2}}
    hand = Hand(profile, "1x1", [TABLE])
    hand.submit("q", maps("j", 3, scans=("t",)))
    assert launched(hand.submit("other", maps("j", 3, scans=("t",)))) == ["q/j:m0+other/j:m0"]
    assert hand.cancel("q") == [CANCELLED], "nothing is killed, the other still reads"
    assert hand.running() == ["other/j:m0"]
    assert launched(hand.finish("other/j:m0")) == ["other/j:m1"]
    hand.run_all()
    assert hand.ended["other"] == Finish("other")
    hand.check_replay()


def test_when_all_riders_get_off_the_scan_is_killed():
    profile = {"order": "fifo", "sharing": {"name": "mrshare", "count": 2}}
    hand = Hand(profile, "1x1", [TABLE])
    hand.submit("q", maps("j", 3, scans=("t",)))
    hand.submit("other", maps("j", 3, scans=("t",)))
    hand.cancel("q")
    kills = hand.cancel("other")
    assert len(of_type(Kill, kills)) == 1
    assert hand.killed(kills) == [Fail("other", "cancelled")]
    assert not hand.state.running


def test_while_it_waits_for_a_shared_scan():
    hand = Hand("mrshare", "1x1", [TABLE])
    assert launched(hand.submit("q", maps("j", 3, scans=("t",)))) == []
    assert of_type(Fail, hand.cancel("q")) == [CANCELLED]
    hand.submit("other", maps("j", 3, scans=("t",)))
    hand.wait(60.0)
    assert launched(hand.do(ev.Woke(hand.now))) == ["other/j:m0"]


def test_twice_is_once():
    hand = Hand("fifo", "1x1")
    hand.submit("q", maps("j", 1))
    kills = hand.cancel("q")
    assert hand.do(ev.QueryCancelled(0.0, "q", "another cause")) == []
    assert hand.killed(kills) == [CANCELLED]


def test_after_its_end_it_stays_as_it_ended():
    hand = Hand("fifo", "1x1")
    hand.submit("q", maps("j", 1))
    hand.finish("q/j:m0")
    assert hand.cancel("q") == []
    assert hand.ended == {"q": Finish("q")}


def test_in_the_instant_in_which_it_finishes():
    hand = Hand("fifo", "1x1")
    hand.submit("q", maps("j", 1))
    number = hand.number("q/j:m0")
    assert hand.do(ev.TaskFinished(0.0, number, None), ev.QueryCancelled(0.0, "q")) == [Finish("q")]


def test_with_the_cause_that_was_given():
    hand = Hand("fifo", "1x1")
    hand.submit("first", maps("j", 1))
    hand.submit("q", maps("j", 1))
    assert hand.do(ev.QueryCancelled(0.0, "q", "the user left")) == [Fail("q", "the user left")]


def test_a_kill_is_not_sent_twice():
    hand = Hand("fifo", "2x1", slow_start=0.0)
    hand.submit("q", maps("j", 1, 1))
    kills = hand.lose(hand.state.running[hand.number("q/j:m0")].node)
    assert len(of_type(Kill, kills)) == 1
    assert hand.cancel("q") == []
    assert hand.killed(kills) == [CANCELLED]


@pytest.mark.parametrize("profile", ["fifo", "s3", "mrshare", "tumm", "swrd", "relaqs"])
@settings(max_examples=examples(25), deadline=None, derandomize=True)
@given(before=st.integers(0, 25), others=st.booleans())
def test_after_any_number_of_steps(profile: str, before: int, others: bool):
    hand = Hand(profile, "2x2", [TABLE], slow_start=0.5)
    jobs = (
        maps("scan", 3, 2, scans=("t",)),
        divisible("work", 3),
        maps("join", 2, 1, upstream=("scan", "work")),
    )
    hand.submit("q", *jobs, estimates=5.0)
    if others:
        hand.obey(hand.submit("x", *jobs, estimates=5.0))
    for _ in range(before):
        hand.wait(1.0)
        if hand.state.running:
            run = next(iter(hand.state.running.values()))
            hand.obey(hand.do(ev.TaskFinished(hand.now, run.number, run.node), ev.Woke(hand.now)))
        elif hand.state.leaseholders:
            hand.obey(hand.lease_over(next(iter(hand.state.leaseholders))))
        else:
            hand.wait(60.0).do(ev.Woke(hand.now))
    was_over = "q" in hand.ended
    hand.obey(hand.cancel("q"))
    assert "q" in hand.ended
    assert isinstance(hand.ended["q"], Finish if was_over else Fail)
    assert not [task for task in hand.running() if task.startswith("q/")]
    hand.check_replay()

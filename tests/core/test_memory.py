"""Memory is reserved before a query starts, held while it is paused, released at its end."""

from __future__ import annotations

import pytest
from by_hand import Hand, divisible, granted, launched, maps, of_type
from hypothesis import given, settings
from hypothesis import strategies as st
from long_forms import examples

from queryard.core import events as ev
from queryard.core.commands import Fail, Finish
from queryard.core.errors import InvalidModel
from queryard.core.model import Node, Query, Split, Table

HUNDRED = [Node("n0", 8, 100.0)]


def test_it_is_reserved_before_the_first_task():
    hand = Hand("fifo", HUNDRED)
    assert hand.state.reserved_bytes == 0.0
    hand.submit("a", maps("j", 1), memory_bytes=70.0)
    assert hand.state.reserved_bytes == 70.0
    assert hand.submit("b", maps("j", 1), memory_bytes=40.0) == [], "although slots are free"
    assert hand.state.queries["b"].stage == "waiting"
    assert hand.state.reserved_bytes == 70.0


def test_it_is_released_at_the_end_and_the_next_starts():
    hand = Hand("fifo", HUNDRED)
    hand.submit("a", maps("j", 1), memory_bytes=70.0)
    hand.submit("b", maps("j", 1), memory_bytes=40.0)
    assert launched(hand.finish("a/j:m0")) == ["b/j:m0"]
    assert hand.state.reserved_bytes == 40.0
    hand.finish("b/j:m0")
    assert hand.state.reserved_bytes == 0.0
    hand.check_replay()


def test_a_failed_query_releases_it_too():
    hand = Hand("fifo", HUNDRED, max_attempts=1)
    hand.submit("a", maps("j", 1), memory_bytes=70.0)
    hand.submit("b", maps("j", 1), memory_bytes=40.0)
    commands = hand.fail("a/j:m0")
    assert of_type(Fail, commands)
    assert launched(commands) == ["b/j:m0"]


def test_it_is_held_until_the_last_kill_is_answered():
    hand = Hand("fifo", HUNDRED)
    hand.submit("a", maps("j", 2), memory_bytes=70.0)
    hand.submit("b", maps("j", 1), memory_bytes=40.0)
    numbers = [hand.number("a/j:m0"), hand.number("a/j:m1")]
    hand.cancel("a")
    assert hand.do(ev.TaskFailed(0.0, numbers[0], "killed")) == []
    assert hand.state.reserved_bytes == 70.0
    assert launched(hand.do(ev.TaskFailed(0.0, numbers[1], "killed"))) == ["b/j:m0"]


def test_it_is_held_while_the_query_is_paused():
    hand = Hand("swrd", [Node("n0", 2, 100.0)])
    hand.submit("big", divisible("d", 2), estimates=100.0, memory_bytes=80.0)
    hand.obey(hand.wait(1.0).submit("small", maps("j", 2), estimates=1.0))
    assert hand.slots("big") == 0
    assert hand.state.reserved_bytes == 80.0
    assert hand.submit("other", maps("j", 1), estimates=1.0, memory_bytes=30.0) == []
    assert "it needs 30 bytes of memory and 20 are free" in hand.scheduler.why("other").reasons
    assert granted(hand.finish("small/j:m0", "small/j:m1")) == {"big/d": 2}


def test_between_two_jobs_it_is_held():
    hand = Hand("fifo", [Node("n0", 2, 100.0)])
    hand.submit("a", maps("j", 1), maps("k", 1, upstream=("j",)), memory_bytes=80.0)
    hand.submit("b", maps("j", 1), memory_bytes=80.0)
    assert launched(hand.finish("a/j:m0")) == ["a/k:m0"]


def test_the_number_of_started_queries_is_bounded():
    hand = Hand("query-fair", [Node("n0", 50, 100.0)])
    for number in range(10):
        hand.submit(f"q{number}", maps("j", 3), memory_bytes=30.0)
    started = [q for q in hand.state.queries.values() if q.stage == "running"]
    assert len(started) == 3
    hand.run_all()
    assert len(hand.ended) == 10


def test_queries_without_demand_are_not_held_up():
    hand = Hand("fifo", HUNDRED)
    hand.submit("a", maps("j", 1), memory_bytes=100.0)
    hand.submit("big", maps("j", 1), memory_bytes=90.0)
    assert launched(hand.submit("c", maps("j", 1))) == ["c/j:m0"]


def test_a_large_query_is_not_passed_by_small_ones_for_ever():
    """Small queries keep coming; they would always fit, but room is made for the large one."""
    hand = Hand("fifo", HUNDRED)
    for number in range(3):
        hand.submit(f"s{number}", maps("j", 1), memory_bytes=30.0)
    assert hand.submit("large", maps("j", 1), memory_bytes=90.0) == []
    for number in range(3, 8):
        assert hand.submit(f"s{number}", maps("j", 1), memory_bytes=10.0) == []
    assert "memory is kept for large, which was refused first" in (hand.scheduler.why("s3").reasons)
    hand.finish("s0/j:m0", "s1/j:m0")
    assert "large/j:m0" in launched(hand.finish("s2/j:m0"))
    hand.run_all()
    assert {type(end) for end in hand.ended.values()} == {Finish}


def test_a_query_before_the_large_one_in_the_order_may_pass():
    hand = Hand("priority", HUNDRED)
    hand.submit("a", maps("j", 1), memory_bytes=40.0)
    hand.submit("large", maps("j", 1), memory_bytes=70.0)
    urgent = hand.submit("urgent", maps("j", 1), memory_bytes=50.0, priority=1.0)
    assert launched(urgent) == ["urgent/j:m0"]


def test_no_query_waits_for_a_large_query_that_cannot_start_here_any_more():
    hand = Hand("fifo", [Node("n0", 4, 60.0), Node("n1", 4, 60.0)])
    hand.submit("a", maps("j", 1), memory_bytes=50.0)
    hand.submit("large", maps("j", 1), memory_bytes=100.0)
    idle = ({"n0", "n1"} - {hand.state.running[0].node}).pop()
    hand.lose(idle)
    assert launched(hand.submit("b", maps("j", 1), memory_bytes=10.0)) == ["b/j:m0"]


def test_memory_that_joins_lets_the_waiting_start():
    hand = Hand("fifo", [Node("n0", 4, 60.0)])
    hand.submit("a", maps("j", 1), memory_bytes=50.0)
    hand.submit("b", maps("j", 1), memory_bytes=50.0)
    assert launched(hand.join(Node("n1", 1, 60.0))) == ["b/j:m0"]


def test_memory_that_joins_is_offered_in_the_order_of_the_queries():
    hand = Hand("priority", [Node("a", 2, 100.0)])
    hand.submit("holder", maps("j", 1), memory_bytes=90.0)
    hand.submit("low", maps("j", 9))
    hand.submit("high", maps("j", 1), priority=5.0, memory_bytes=50.0)
    assert launched(hand.finish("low/j:m0")) == ["low/j:m1"]
    assert launched(hand.join(Node("b", 1, 100.0))) == ["high/j:m0"]


def test_memory_that_is_lost_is_no_reason_to_stop_anybody():
    hand = Hand("fifo", [Node("n0", 4, 60.0), Node("n1", 4, 60.0)])
    hand.submit("a", maps("j", 2), memory_bytes=100.0)
    hand.lose("n0")
    assert hand.state.reserved_bytes == 100.0
    assert not hand.ended
    hand.run_all()
    assert hand.ended == {"a": Finish("a")}


def test_riders_reserve_their_own():
    table = Table("t", tuple(Split(1.0) for _ in range(2)))
    hand = Hand({"sharing": "circular"}, [Node("n0", 1, 100.0)], [table])
    queries = [
        Query(id, (maps("j", 2, scans=("t",)),), memory_bytes=40.0) for id in ("a", "b", "c")
    ]
    commands = hand.do(*(ev.QuerySubmitted(0.0, query) for query in queries))
    assert launched(commands) == ["a/j:m0+b/j:m0"], "there is room for two to ride"
    assert hand.state.reserved_bytes == 80.0
    hand.run_all()
    assert len(hand.ended) == 3


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(
    demands=st.lists(
        st.sampled_from((0.0, 1.0, 5.0, 10.0, 35.0, 60.0, 100.0)), min_size=1, max_size=12
    ),
    profile=st.sampled_from(("fifo", "fair", "swrd", "capacity", "tls", "srtf", "tumm")),
    kept=st.sampled_from((0.0, 10.0, 60.0)),
    order=st.randoms(use_true_random=False),
)
def test_it_is_never_over_committed_and_every_query_starts(demands, profile, kept, order):
    nodes = [
        Node("a", 2, 60.0, kept_bytes=kept, host="one"),
        Node("b", 2, 40.0, host="one"),
    ]
    hand = Hand(profile, nodes)
    for number, demand in enumerate(demands):
        job = maps("j", 1 + number % 3, number % 2) if number % 4 else divisible("j", 2)
        tenant = f"t{number % 2}"
        hand.submit(f"q{number}", job, estimates=1.0, memory_bytes=demand, tenant=tenant)
        assert hand.state.reserved_bytes <= 100.0
    while hand.state.queries:
        hand.wait(1.0)
        runs = list(hand.state.running.values())
        leased = list(hand.state.leaseholders)
        assert runs or leased, [str(hand.scheduler.why(q)) for q in hand.state.queries]
        if runs and (not leased or order.random() < 0.7):
            run = order.choice(runs)
            hand.obey(hand.do(ev.TaskFinished(hand.now, run.number, run.node)))
        else:
            hand.obey(hand.lease_over(order.choice(leased)))
        assert hand.state.reserved_bytes <= 100.0
    assert {type(end) for end in hand.ended.values()} == {Finish}
    assert hand.state.reserved_bytes == 0.0


KEPT = [Node("n0", 8, 100.0, kept_bytes=24.0)]  # small is what needs 8 or less


def test_large_queries_leave_some_to_small_ones():
    hand = Hand("fifo", KEPT)
    hand.submit("a", maps("j", 1), memory_bytes=40.0)
    assert launched(hand.submit("b", maps("j", 1), memory_bytes=36.0)) == ["b/j:m0"]
    assert hand.submit("c", maps("j", 1), memory_bytes=20.0) == []
    (reason,) = [r for r in hand.scheduler.why("c").reasons if "memory" in r]
    assert reason == (
        "it needs 20 bytes of memory and 24 are free, of which 24 are kept for small queries"
    )
    for number in range(8):
        small = hand.submit(f"s{number}", maps("j", 1), memory_bytes=3.0)
        assert launched(small) == [f"s{number}/j:m0"] or number >= 6, "there are 8 slots"
    hand.run_all()
    assert len(hand.ended) == 11


def test_small_ones_in_what_is_kept_do_not_hold_up_the_large_one():
    hand = Hand("fifo", KEPT)
    hand.submit("a", maps("j", 1), memory_bytes=70.0)
    hand.submit("large", maps("j", 1), memory_bytes=76.0)
    for number in range(4):
        assert launched(hand.submit(f"s{number}", maps("j", 1), memory_bytes=3.0))
    assert "large/j:m0" in launched(hand.finish("a/j:m0"))
    assert hand.state.reserved_bytes == 88.0


def test_more_small_ones_than_there_is_kept_for_wait_for_the_large_one():
    hand = Hand("fifo", [Node("n0", 40, 100.0, kept_bytes=24.0)])
    hand.submit("a", maps("j", 1), memory_bytes=60.0)
    hand.submit("large", maps("j", 1), memory_bytes=76.0)
    started = [
        launched(hand.submit(f"s{number}", maps("j", 1), memory_bytes=3.0)) for number in range(12)
    ]
    assert sum(map(len, started)) == 8
    assert "large/j:m0" in launched(hand.finish("a/j:m0"))
    hand.run_all()
    assert len(hand.ended) == 14


def test_who_needs_all_gets_all():
    hand = Hand("fifo", KEPT)
    hand.submit("s", maps("j", 1), memory_bytes=3.0)
    hand.submit("all", maps("j", 1), memory_bytes=100.0)
    assert hand.submit("t", maps("j", 1), memory_bytes=3.0) == [], "or it would wait for ever"
    assert launched(hand.finish("s/j:m0")) == ["all/j:m0"]
    hand.run_all()
    assert len(hand.ended) == 3


def test_another_tenants_small_query_passes_one_that_waits():
    hand = Hand("fair", KEPT)
    hand.submit("a", maps("j", 1), memory_bytes=70.0, tenant="batch")
    hand.submit("large", maps("j", 1), memory_bytes=70.0, tenant="batch")
    assert launched(hand.submit("s", maps("j", 1), memory_bytes=3.0, tenant="web")) == ["s/j:m0"]


def test_no_node_keeps_more_than_it_has():
    with pytest.raises(InvalidModel, match="kept_bytes 2 are more than its memory_bytes 1"):
        Node("n", 1, 1.0, kept_bytes=2.0)

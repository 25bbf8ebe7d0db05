"""Memory by host: queries of tasks use a part of every host, and count there."""

from __future__ import annotations

import math

import pytest
from by_hand import Hand, divisible, launched, maps, of_type
from hypothesis import given
from hypothesis import strategies as st

from queryard.core.commands import Grant
from queryard.core.model import Node


def test_tasks_leave_room_for_their_part_on_a_host():
    hand = Hand("fifo", [Node("a", 2, 100.0), Node("b", 2, 100.0)])
    assert launched(hand.submit("tasks", maps("j", 1), memory_bytes=80.0))
    assert not of_type(Grant, hand.submit("large", divisible("d", 1), memory_bytes=70.0))
    hand.cancel("large")
    assert of_type(Grant, hand.submit("native", divisible("d", 1), memory_bytes=60.0))


def test_tasks_wait_for_room_on_every_host():
    hand = Hand("fifo", [Node("a", 2, 100.0), Node("b", 2, 100.0)])
    hand.submit("native", divisible("d", 1), memory_bytes=70.0)
    assert not launched(hand.submit("tasks", maps("j", 1), memory_bytes=80.0))
    assert any("memory" in reason for reason in hand.scheduler.why("tasks").reasons)
    assert launched(hand.lease_over("native/d")) == ["tasks/j:m0"]


def test_large_hosts_have_large_parts():
    hand = Hand("fifo", [Node("small", 2, 50.0), Node("large", 2, 150.0)])
    assert launched(hand.submit("tasks", maps("j", 1), memory_bytes=200.0)), "all there is"
    assert [hand.state.part_of(host) for host in ("small", "large")] == [0.25, 0.75]


def test_hosts_without_a_limit_have_room_for_all():
    hand = Hand("fifo", [Node("a", 2), Node("b", 2, 10.0)])
    assert launched(hand.submit("tasks", maps("j", 1), memory_bytes=1e9))
    assert of_type(Grant, hand.submit("native", divisible("d", 1), memory_bytes=9.0))


def test_memory_is_kept_for_a_native_query_that_waits_while_tasks_come_and_go():
    hand = Hand("fifo", [Node("a", 8, 100.0), Node("b", 8, 100.0)])
    hand.submit("first", maps("j", 1), memory_bytes=60.0)
    assert not hand.submit("native", divisible("d", 1), memory_bytes=90.0)
    assert not hand.submit("second", maps("j", 1), memory_bytes=60.0), "it would pass for good"
    assert of_type(Grant, hand.finish("first/j:m0"))


@given(
    sizes=st.lists(st.sampled_from([50.0, 100.0, 150.0, math.inf]), min_size=2, max_size=4),
    asked=st.lists(st.tuples(st.booleans(), st.floats(1.0, 120.0)), max_size=12),
)
def test_no_host_holds_more_than_it_has_and_all_queries_end(sizes, asked):
    hand = Hand("fair", [Node(f"n{i}", 2, size) for i, size in enumerate(sizes)])
    for number, (native, memory) in enumerate(asked):
        job = divisible("j", 2) if native else maps("j", 2)
        hand.submit(f"q{number}", job, memory_bytes=memory)
        check_hosts(hand)
    hand.run_all()
    assert len(hand.ended) == len(asked)


def check_hosts(hand: Hand) -> None:
    state = hand.state
    for name, host in state.hosts.items():
        held = 0.0
        for query, reserved in state.reservations.items():
            job = state.queries[query].jobs[0]
            if job.stays:
                held += reserved if job.host == name else 0.0
            else:
                held += reserved * state.part_of(name)
        assert held == pytest.approx(min(held, host.memory_bytes))

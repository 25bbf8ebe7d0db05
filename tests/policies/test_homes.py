"""Divisible work starts near what it reads, where a slot is free."""

from __future__ import annotations

import pytest
from by_hand import Hand, divisible, maps
from hypothesis import given
from hypothesis import strategies as st

from queryard.core.commands import Grant
from queryard.core.model import Job, Node, Split, Table

NODES = [
    Node("a", 2, 100.0, rack="r1"),
    Node("b", 2, 100.0, rack="r2"),
    Node("c", 2, 100.0, rack="r2"),
]


def table(*places: str) -> Table:
    return Table("t", tuple(Split(64e6, (place,) if place else ()) for place in places))


def reader(width: int = 2) -> Job:
    return divisible("d", width, scans=("t",), scans_alone=True)


@pytest.mark.parametrize("placement", ["local", "locf", "rack"])
def test_it_starts_on_the_node_with_the_most_of_its_splits(placement):
    hand = Hand({"placement": placement}, NODES, [table("b", "c", "c", "")])
    assert hand.submit("q", reader()) == [Grant("q/d", "c", 2)]
    assert hand.submit("r", reader()) == [Grant("r/d", "b", 2)], "the best one is busy"
    assert hand.submit("s", reader()) == [Grant("s/d", "a", 2)], "no slot waits for a place"
    hand.check_replay()


def test_without_such_a_part_it_starts_anywhere():
    hand = Hand({"placement": "any"}, NODES, [table("c")])
    assert hand.submit("q", reader()) == [Grant("q/d", "a", 2)]


def test_a_neighbour_in_the_rack_is_next_best():
    hand = Hand({"placement": "rack"}, NODES, [table("c", "c")])
    hand.submit("busy", divisible("d", 2, scans=("t",), scans_alone=True))
    assert hand.submit("q", reader()) == [Grant("q/d", "b", 2)]


def test_it_does_not_start_where_its_memory_does_not_fit():
    hand = Hand({"placement": "local"}, NODES, [table("c", "c", "b")])
    hand.submit("large", reader(1), memory_bytes=80.0)
    assert hand.submit("q", reader(1), memory_bytes=50.0) == [Grant("q/d", "b", 1)]


def test_no_job_rides_on_a_scan_that_is_read_alone():
    profile = {"sharing": "circular", "placement": "local"}
    hand = Hand(profile, [Node("a", 1)], [table("a", "a")])
    for query in ("q", "r"):
        hand.submit(query, maps("j", 2, scans=("t",), scans_alone=True))
    assert hand.run_all() == ["q/j:m0", "q/j:m1", "r/j:m0", "r/j:m1"]


@given(
    places=st.lists(st.sampled_from("abc"), min_size=1, max_size=6),
    widths=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    placement=st.sampled_from(["local", "locf", "rack"]),
)
def test_no_slot_stays_free_that_a_query_could_use(places, widths, placement):
    hand = Hand({"placement": placement}, NODES, [table(*places)])
    for number, width in enumerate(widths):
        hand.submit(f"q{number}", reader(width))
        waiting = [query for query in hand.state.queries.values() if query.stage == "waiting"]
        free = sum(node.free for node in hand.state.nodes.values())
        assert not waiting or not free
    hand.run_all()
    assert len(hand.ended) == len(widths)

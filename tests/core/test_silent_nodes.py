"""A node that does not answer takes no new work until it answers again; it stays otherwise."""

from __future__ import annotations

from typing import Any

import pytest
from by_hand import Hand, divisible, launched, maps, of_type

from queryard.core import events as ev
from queryard.core.commands import Finish, Grant, Launch, Release
from queryard.core.errors import InvalidEvent
from queryard.core.model import Node

TWO = [Node("a", 1), Node("b", 1)]


def silent(hand: Hand, node: str, is_so: bool = True) -> list[Any]:
    return hand.do(ev.NodeSilent(hand.now, node, is_so))


def test_a_silent_node_is_launched_nothing_until_it_answers():
    hand = Hand("fifo", TWO)
    assert silent(hand, "b") == []
    assert hand.state.total_slots == 1
    assert {launch.node for launch in hand.submit("q", maps("j", 3))} == {"a"}
    assert {launch.node for launch in hand.finish("q/j:m0")} == {"a"}
    (launch,) = silent(hand, "b", False)
    assert (launch.node, hand.state.total_slots) == ("b", 2)
    hand.run_all()
    assert hand.ended == {"q": Finish("q")}
    hand.check_replay()


def test_what_runs_at_a_silent_node_goes_on_and_counts():
    hand = Hand("fifo", TWO)
    hand.submit("q", maps("j", 2))
    (at_b,) = [str(run.tasks[0]) for run in hand.state.running.values() if run.node == "b"]
    silent(hand, "b")
    assert not of_type(Launch, hand.finish(at_b))
    hand.run_all()
    assert hand.ended == {"q": Finish("q")}


def test_divisible_work_begins_elsewhere_and_stays_where_it_has_begun():
    hand = Hand("fifo", TWO)
    silent(hand, "a")
    assert hand.submit("q", divisible("d", 1)) == [Grant("q/d", "b", 1)]
    assert silent(hand, "b") == []
    assert hand.submit("r", divisible("d", 1)) == []
    assert silent(hand, "a", False) == [Grant("r/d", "a", 1)]
    hand.run_all()
    assert set(hand.ended) == {"q", "r"}


def test_a_silent_node_that_is_lost_is_lost():
    hand = Hand("fifo", TWO)
    silent(hand, "b")
    hand.lose("b")
    assert list(hand.state.nodes) == ["a"]
    with pytest.raises(InvalidEvent, match="unknown node 'b'"):
        silent(hand, "b", False)


def test_provisioning_neither_gives_up_a_silent_node_nor_wakes_it():
    rule = {"name": "-x", "period_s": 10.0, "minimum": 2}
    hand = Hand({"order": "fifo", "provisioning": rule}, TWO)
    silent(hand, "b")
    commands = hand.submit("q", maps("j", 2))
    hand.wait(20.0)
    commands += hand.finish("q/j:m0")
    assert not of_type(Release, commands)
    chosen = {"order": "fifo"}
    hand.do(ev.PolicyChosen(hand.now, chosen))
    assert hand.state.nodes["b"].draining
    assert launched(silent(hand, "b", False)) == []
    assert not hand.state.nodes["b"].draining

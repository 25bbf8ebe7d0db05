"""Provisioning: nodes are drained without losing work, released when no reduce needs them."""

from __future__ import annotations

from typing import Any

from by_hand import Hand, divisible, launched, maps, of_type, revoked

from queryard.core import events as ev
from queryard.core.commands import Finish, Launch, Release, Scale
from queryard.core.model import Node


def shrinking(minimum: int = 1, period_s: float = 10.0) -> dict[str, Any]:
    rule = {"name": "-x", "period_s": period_s, "minimum": minimum}
    return {"order": "fifo", "provisioning": rule}


def draining(hand: Hand) -> list[str]:
    return [node.id for node in hand.state.nodes.values() if node.draining]


def test_a_drained_node_takes_no_new_work_and_is_released_when_idle():
    hand = Hand(shrinking(), "2x1")
    commands = hand.submit("q", maps("j", 4))
    assert Scale(1) in commands
    (drained,) = draining(hand)
    here = next(str(r.tasks[0]) for r in hand.state.running.values() if r.node == drained)
    there = next(task for task in hand.running() if task != here)
    released = hand.wait(1.0).finish(here, place=None)
    assert of_type(Release, released) == [Release(drained)]
    assert not of_type(Launch, released)
    assert not of_type(Release, hand.wait(1.0).finish(there)), "it is said once"
    hand.obey(hand.lose(drained))
    hand.run_all()
    assert hand.ended == {"q": Finish("q")}
    assert list(hand.state.nodes) == [({"n0", "n1"} - {drained}).pop()]


def test_a_node_is_kept_while_reduces_need_an_output_that_lives_there():
    hand = Hand(shrinking(), "2x1")
    hand.submit("q", maps("j", 2, 1))
    (drained,) = draining(hand)
    here = next(str(r.tasks[0]) for r in hand.state.running.values() if r.node == drained)
    there = next(task for task in hand.running() if task != here)
    assert not of_type(Release, hand.wait(1.0).finish(here)), "its output is on the node"
    assert launched(hand.wait(1.0).finish(there)) == ["q/j:r0"]
    assert hand.state.nodes[drained].free == 1
    commands = hand.wait(1.0).finish("q/j:r0")
    assert Finish("q") in commands
    assert Release(drained) in commands


def test_leases_on_a_drained_node_are_asked_back():
    hand = Hand(shrinking(), "2x2")
    hand.submit("q", divisible("d", 4))
    commands = hand.wait(1.0).do(ev.Woke(hand.now))
    assert revoked(commands) == {"q/d": 2}
    (drained,) = draining(hand)
    assert Release(drained) in hand.returned(commands)
    assert hand.slots("q") == 2


def test_slots_that_drain_do_not_count_for_shares():
    hand = Hand(shrinking(), "2x4")
    assert hand.state.total_slots == 8
    hand.submit("q", maps("j", 1))
    assert hand.state.total_slots == 4


def test_the_least_busy_nodes_are_drained():
    hand = Hand(shrinking(minimum=2), [Node("busy", 3), Node("idle", 1), Node("some", 2)])
    hand.submit("q", maps("j", 2))
    assert draining(hand) == ["idle"]


def test_drained_nodes_serve_again_when_more_are_wanted():
    rule = {"name": "dlx", "period_s": 10.0, "minimum": 1}
    hand = Hand({"order": "edf", "provisioning": rule}, "3x1")
    hand.submit("batch", maps("j", 9), estimates=1.0)
    assert len(draining(hand)) == 2, "no deadline, no need for nodes"
    hand.wait(10.0)
    commands = hand.submit("due", maps("j", 60), estimates=1.0, deadline_s=hand.now + 20.0)
    assert Scale(3) in commands
    assert draining(hand) == []
    for task in hand.running():
        hand.wait(0.1).finish(task)
    assert len(hand.running()) == 3


def test_a_release_that_was_overtaken_by_new_work_loses_none_of_it():
    hand = Hand(shrinking(), "3x1")
    hand.submit("q", maps("j", 6, 1))
    while hand.state.queries:
        hand.wait(3.0)
        run = next(iter(hand.state.running.values()))
        commands = hand.do(ev.TaskFinished(hand.now, run.number, run.node), ev.Woke(hand.now))
        for release in of_type(Release, commands):
            hand.lose(release.node)
    assert hand.ended == {"q": Finish("q")}
    assert len(hand.state.nodes) >= 1
    hand.check_replay()


def test_a_cluster_is_not_made_too_small_for_the_memory_of_a_query():
    nodes = [Node(f"n{i}", 1, 50.0) for i in range(4)]
    hand = Hand({"order": "fifo", "provisioning": {"name": "-x", "x": 4, "period_s": 5.0}}, nodes)
    hand.submit("large", maps("j", 1), memory_bytes=90.0)
    for _ in range(6):
        hand.obey(hand.wait(5.0).do(ev.Woke(hand.now)))
    assert hand.state.memory_bytes >= 90.0
    hand.submit("also large", maps("j", 1), memory_bytes=90.0)
    hand.run_all()
    assert {type(end) for end in hand.ended.values()} == {Finish}

"""A query that was at node after node when they were lost ends, since it may be why."""

from __future__ import annotations

import pytest
from by_hand import Hand, divisible, launched, maps, of_type

from queryard.core import events as ev
from queryard.core.commands import Fail, Finish, Grant
from queryard.core.errors import InvalidModel
from queryard.core.model import Node
from queryard.core.state import Settings


def lose(hand: Hand, node: str, *spared: str, cause: str = "segmentation fault") -> list:
    return hand.do(ev.NodeLost(hand.now, node, cause, spared))


def test_a_task_at_too_many_lost_nodes_ends_its_query_and_the_cause_is_told():
    hand = Hand("fifo", [Node("a0", 1)], max_losses=3)
    hand.submit("q", maps("j", 2))
    for number in range(2):
        assert lose(hand, f"a{number}") == []
        assert launched(hand.join(Node(f"a{number + 1}", 1))) == ["q/j:m0"]
    assert lose(hand, "a2", cause="out of memory") == [
        Fail("q", "task q/j:m0 was at 3 nodes when they were lost, the last a2: out of memory")
    ]
    hand.check_replay()


def test_losses_are_counted_task_by_task():
    hand = Hand("fifo", [Node("a0", 1)], max_losses=2)
    hand.submit("q", maps("j", 3, 1))
    for number, task in enumerate(("q/j:m0", "q/j:m1", "q/j:m2", "q/j:r0")):
        assert hand.running() == [task]
        lose(hand, f"a{number}")
        hand.join(Node(f"a{number + 1}", 1))
        hand.finish(task, place=None)
    assert hand.ended == {"q": Finish("q")}


@pytest.mark.parametrize("most", [0, 2])
def test_a_divisible_job_that_lost_its_host_too_often_ends_its_query(most):
    hand = Hand("fifo", [Node("a0", 2)], max_losses=most)
    hand.submit("q", divisible("d", 2))
    lose(hand, "a0")
    assert of_type(Grant, hand.join(Node("a1", 2)))
    told = lose(hand, "a1", cause="")
    if not most:
        assert told == [], "any number is allowed"
        return
    assert told == [Fail("q", "job q/d was at 2 nodes when they were lost, the last a1")]
    hand.check_replay()


def test_a_job_that_had_slots_by_name_only_is_not_to_blame():
    hand = Hand("fifo", [Node("a0", 1)], max_losses=1)
    hand.submit("q", divisible("d", 1))
    assert lose(hand, "a0", "q/d") == []
    assert of_type(Grant, hand.join(Node("a1", 1)))


def test_of_several_that_were_there_one_ends_the_youngest_of_those_there_most_often():
    hand = Hand("fair", [Node("a0", 3)], max_losses=2)
    hand.submit("long", divisible("d", 1))
    hand.submit("bad", maps("j", 1))
    lose(hand, "a0")
    hand.join(Node("a1", 3))
    hand.submit("late", maps("j", 1))
    assert [fail.query for fail in of_type(Fail, lose(hand, "a1"))] == ["bad"]
    hand.join(Node("a2", 3))
    hand.run_all()
    assert {hand.ended["long"], hand.ended["late"]} == {Finish("long"), Finish("late")}


def test_a_fork_counts_on_from_what_was_lost():
    hand = Hand("fifo", [Node("a0", 2)], max_losses=2)
    hand.submit("q", maps("j", 1))
    hand.submit("r", divisible("d", 1))
    lose(hand, "a0")
    hand.join(Node("a1", 2))
    fork = hand.scheduler.fork()
    for kernel in (fork, hand.scheduler):
        assert of_type(Fail, kernel.handle(ev.NodeLost(1.0, "a1", "power")))


def test_a_number_of_losses_below_none_is_refused():
    with pytest.raises(InvalidModel, match="max_losses must be at least 0, got -1"):
        Settings(max_losses=-1)

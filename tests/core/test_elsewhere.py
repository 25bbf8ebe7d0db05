"""Work that failed at a node, which may be why, is tried at another one first."""

from __future__ import annotations

from typing import Any

import pytest
from by_hand import Hand, divisible, launched, maps, of_type

from queryard.core import events as ev
from queryard.core.commands import Fail, Finish, Grant, Launch, WakeAt
from queryard.core.failed_at import AVOIDED_S
from queryard.core.model import Node, Split, Table

TWO = [Node("a", 1, 100.0), Node("b", 1, 100.0)]
TABLE = Table("t", tuple(Split(1.0, ("a",)) for _ in range(3)))


def at(hand: Hand, node: str) -> list[str]:
    """The tasks that run at a node."""
    return [str(t) for run in hand.state.running.values() if run.node == node for t in run.tasks]


def fail(hand: Hand, task: str, retry: Any = "elsewhere") -> list[Any]:
    return hand.do(ev.TaskFailed(hand.now, hand.number(task), "disk full", retry))


def fail_at(hand: Hand, node: str) -> tuple[str, list[Any]]:
    (task,) = at(hand, node)
    return task, fail(hand, task)


def fail_lease(hand: Hand, job: str, retry: Any = "elsewhere") -> list[Any]:
    leases = hand.state.jobs[job].leases
    ends = [
        ev.LeaseEnded(hand.now, job, node, sum(slots), "failed", "disk full", retry)
        for node, slots in leases.items()
    ]
    return hand.do(*ends)


def test_a_task_waits_for_another_node_and_its_own_takes_other_tasks():
    hand = Hand("fifo", TWO)
    hand.submit("q", maps("j", 4))
    failed, commands = fail_at(hand, "a")
    (launch,) = of_type(Launch, commands)
    assert launch.node == "a"
    assert launched([launch]) != [failed]
    (other,) = at(hand, "b")
    (launch,) = of_type(Launch, hand.finish(other))
    assert (launch.node, launched([launch])) == ("b", [failed]), "it is next there"
    hand.run_all()
    assert hand.ended == {"q": Finish("q")}
    hand.check_replay()


def test_a_node_that_fails_everything_at_once_fails_no_query():
    hand = Hand("fifo", TWO)
    hand.submit("q", maps("j", 12, 2))
    for _ in range(200):
        hand.wait(0.1)
        if at(hand, "a"):
            fail_at(hand, "a")
        elif at(hand, "b"):
            hand.finish(*at(hand, "b"))
    assert hand.ended == {"q": Finish("q")}
    hand.check_replay()


def test_attempts_are_counted_wherever_they_were_made():
    hand = Hand("fifo", [*TWO, Node("c", 1)], max_attempts=3)
    hand.submit("q", maps("j", 1))
    places = []
    while "q" not in hand.ended:
        (run,) = hand.state.running.values()
        places.append(run.node)
        fail(hand, "q/j:m0")
    assert sorted(places) == ["a", "b", "c"]
    assert hand.ended["q"] == Fail("q", "task q/j:m0 failed 3 times, the last time with: disk full")


def test_where_a_task_has_failed_at_all_nodes_any_will_do():
    hand = Hand("fifo", TWO, max_attempts=4)
    hand.submit("q", maps("j", 1))
    for _ in range(3):
        assert launched(fail(hand, "q/j:m0")) == ["q/j:m0"]
    assert of_type(Fail, fail(hand, "q/j:m0"))


def test_a_lone_node_tries_again_itself():
    hand = Hand("fifo", "1x1")
    hand.submit("q", maps("j", 1))
    assert launched(fail(hand, "q/j:m0")) == ["q/j:m0"]


@pytest.mark.parametrize("retry", ["count", "free"])
def test_other_failures_say_nothing_of_the_node(retry: str):
    hand = Hand("fifo", TWO)
    hand.submit("q", maps("j", 2))
    (task,) = at(hand, "a")
    (launch,) = of_type(Launch, fail(hand, task, retry))
    assert (launch.node, launched([launch])) == ("a", [task])


@pytest.mark.parametrize("gone", ["lost", "silent"])
def test_if_the_other_node_is_gone_it_runs_where_it_failed(gone: str):
    hand = Hand("fifo", TWO)
    hand.submit("q", maps("j", 2))
    _, commands = fail_at(hand, "a")
    assert not launched(commands)
    event = ev.NodeLost(0.0, "b") if gone == "lost" else ev.NodeSilent(0.0, "b", True)
    (launch,) = of_type(Launch, hand.do(event))[:1]
    assert launch.node == "a"
    hand.run_all()
    assert hand.ended == {"q": Finish("q")}


def test_reduces_that_wait_for_the_very_task_at_all_other_nodes_do_not_stop_it_for_good():
    hand = Hand("fifo", TWO, slow_start=0.0)
    hand.submit("q", maps("j", 2, 2))
    (other,) = at(hand, "b")
    hand.finish(other)
    assert at(hand, "b")[0].endswith("r0"), "a reduce waits there"
    failed, commands = fail_at(hand, "a")
    wakes = [wake.time_s for wake in of_type(WakeAt, commands)]
    assert wakes == [AVOIDED_S]
    if failed not in at(hand, "a"):
        hand.wait(AVOIDED_S).obey(hand.do(ev.Woke(AVOIDED_S)))
    hand.run_all()
    assert hand.ended == {"q": Finish("q")}


def test_locality_does_not_send_a_task_back():
    hand = Hand({"order": "fifo", "placement": "local"}, TWO, [TABLE])
    hand.submit("q", maps("j", 3, scans=("t",), scans_alone=True))
    failed, commands = fail_at(hand, "a")
    assert launched(commands) != [failed]
    (other,) = at(hand, "b")
    assert launched(hand.finish(other)) == [failed]
    hand.run_all()
    hand.check_replay()


def test_a_task_remembers_where_it_failed_when_its_output_is_lost():
    hand = Hand("fifo", [*TWO, Node("c", 1)])
    hand.submit("q", maps("j", 1, 1))
    (run,) = hand.state.running.values()
    first = run.node
    fail(hand, "q/j:m0")
    (run,) = hand.state.running.values()
    hand.finish("q/j:m0", place=run.node)
    hand.do(ev.NodeLost(hand.now, run.node))
    again = [r.node for r in hand.state.running.values() if str(r.tasks[0]) == "q/j:m0"]
    assert again
    assert first not in again


# --- divisible work ------------------------------------------------------------------------------


def test_divisible_work_begins_again_on_another_host():
    hand = Hand("fifo", TWO)
    hand.submit("q", divisible("d", 1))
    (first,) = hand.state.jobs["q/d"].leases
    (grant,) = of_type(Grant, fail_lease(hand, "q/d"))
    assert grant.node != first
    hand.run_all()
    assert hand.ended == {"q": Finish("q")}
    hand.check_replay()


def test_it_waits_for_the_other_host_while_that_is_busy_and_says_so():
    hand = Hand("fifo", TWO)
    hand.submit("other", divisible("d", 1))
    (busy,) = hand.state.jobs["other/d"].leases
    hand.submit("q", divisible("d", 1))
    (first,) = hand.state.jobs["q/d"].leases
    assert not of_type(Grant, fail_lease(hand, "q/d"))
    assert f"job d: it failed at {first}; others come first" in hand.scheduler.why("q").reasons
    assert Grant("q/d", busy, 1) in hand.lease_over("other/d")


def test_locality_does_not_send_divisible_work_back():
    hand = Hand({"order": "fifo", "placement": "local"}, TWO, [TABLE])
    hand.submit("q", divisible("d", 1, scans=("t",), scans_alone=True))
    assert list(hand.state.jobs["q/d"].leases) == ["a"]
    assert of_type(Grant, fail_lease(hand, "q/d")) == [Grant("q/d", "b", 1)]


def test_a_host_that_is_too_small_is_no_other_host():
    hand = Hand("fifo", [Node("a", 1, 100.0), Node("b", 1, 10.0)])
    hand.submit("q", divisible("d", 1), memory_bytes=50.0)
    assert of_type(Grant, fail_lease(hand, "q/d")) == [Grant("q/d", "a", 1)]


def test_divisible_work_fails_when_its_attempts_are_exhausted():
    hand = Hand("fifo", TWO, max_attempts=2)
    hand.submit("q", divisible("d", 1))
    fail_lease(hand, "q/d")
    assert fail_lease(hand, "q/d") == [
        Fail("q", "job q/d failed 2 times, the last time with: disk full")
    ]


def test_a_fork_avoids_the_same_nodes():
    hand = Hand("fifo", TWO)
    hand.submit("q", maps("j", 3))
    fail_at(hand, "a")
    (other,) = at(hand, "b")
    ended = ev.TaskFinished(hand.now, hand.number(other), "b")
    fork = hand.scheduler.fork()
    fork.validate()
    assert fork.handle(ended) == hand.scheduler.handle(ended)

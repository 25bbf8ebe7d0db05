"""Failed tasks are tried again, lost nodes take their work and their outputs with them."""

from __future__ import annotations

import pytest
from by_hand import Hand, divisible, launched, maps, of_type

from queryard.core import events as ev
from queryard.core.commands import Fail, Finish, Grant, Kill, Launch, Revoke
from queryard.core.model import Node, Query, Split, Table

TABLE = Table("t", tuple(Split(1.0) for _ in range(2)))
TWO = [Node("a", 1), Node("b", 1)]


# --- retries -----------------------------------------------------------------------------------


def test_a_task_is_tried_up_to_the_limit_then_the_query_fails_with_the_cause():
    hand = Hand("fifo", "1x1", max_attempts=3)
    hand.submit("q", maps("j", 1))
    assert launched(hand.fail("q/j:m0", "disk full")) == ["q/j:m0"]
    assert launched(hand.fail("q/j:m0", "disk full")) == ["q/j:m0"]
    assert hand.fail("q/j:m0", "disk on fire") == [
        Fail("q", "task q/j:m0 failed 3 times, the last time with: disk on fire")
    ]
    hand.check_replay()


def test_one_attempt_means_none_again():
    hand = Hand("fifo", "1x1", max_attempts=1)
    hand.submit("q", maps("j", 2))
    assert of_type(Fail, hand.fail("q/j:m0"))


def test_attempts_are_counted_task_by_task():
    hand = Hand("fifo", "1x1", max_attempts=2)
    hand.submit("q", maps("j", 3, 1))
    for task in ("q/j:m0", "q/j:m1", "q/j:m2", "q/j:r0"):
        while task not in hand.running():
            hand.finish(*hand.running())
        hand.fail(task)
    hand.run_all()
    assert hand.ended == {"q": Finish("q")}


def test_the_last_failure_ends_everything_else_of_the_query():
    hand = Hand("fifo", "1x4", max_attempts=1)
    hand.submit("q", maps("j", 2), divisible("d", 2))
    failed = hand.fail("q/j:m0")
    assert not of_type(Fail, failed), "a task and leases still run"
    hand.obey(failed)
    assert isinstance(hand.ended["q"], Fail)
    assert not hand.state.running
    assert not hand.state.leaseholders


def test_a_killed_task_does_not_count_as_failed():
    hand = Hand("fifo", TWO, slow_start=0.0, max_attempts=1)
    hand.submit("q", maps("j", 1, 1))
    mapping = hand.state.running[hand.number("q/j:m0")].node
    kills = hand.lose(mapping)
    assert kills == [Kill(hand.number("q/j:r0"))], "it holds the slot its own map needs"
    assert launched(hand.killed(kills)) == ["q/j:m0"]
    hand.run_all()
    assert hand.ended == {"q": Finish("q")}


def test_a_failure_among_riders_is_tried_again_alone_and_counts_for_none():
    profile = {"order": "fifo", "sharing": {"name": "mrshare", "count": 2}}
    hand = Hand(profile, "1x1", [TABLE], max_attempts=1)
    hand.submit("a", maps("j", 2, scans=("t",)))
    assert launched(hand.submit("b", maps("j", 2, scans=("t",)))) == ["a/j:m0+b/j:m0"]
    again = hand.fail("a/j:m0")
    assert not hand.ended
    tried = launched(again)
    while hand.state.queries:
        tried += launched(hand.finish(*hand.running()))
    alone = [task for task in tried if task.endswith(":m0")]
    assert sorted(alone) == ["a/j:m0", "b/j:m0"], "each by itself"
    assert set(hand.ended.values()) == {Finish("a"), Finish("b")}


def test_alone_a_rider_fails_like_anybody():
    profile = {"order": "fifo", "sharing": {"name": "mrshare", "count": 2}}
    hand = Hand(profile, "1x1", [TABLE], max_attempts=1)
    hand.submit("a", maps("j", 2, scans=("t",)))
    hand.submit("b", maps("j", 2, scans=("t",)))
    hand.fail("a/j:m0")
    hand.fail("a/j:m0")
    assert isinstance(hand.ended["a"], Fail)
    hand.run_all()
    assert hand.ended["b"] == Finish("b")


# --- a node is lost ----------------------------------------------------------------------------


def test_what_ran_on_a_lost_node_runs_again_elsewhere():
    hand = Hand("fifo", TWO)
    hand.submit("q", maps("j", 2))
    (again,) = [str(t) for run in hand.state.running.values() if run.node == "a" for t in run.tasks]
    (other,) = [task for task in hand.running() if task != again]
    assert hand.lose("a") == [], "no slot is free"
    assert launched(hand.finish(other)) == [again]
    assert hand.finish(again) == [Finish("q")]


def test_a_lost_node_counts_as_no_failure():
    hand = Hand("fifo", "1x1", max_attempts=1)
    hand.submit("q", maps("j", 1))
    for _ in range(3):
        hand.lose("n0")
        assert launched(hand.join(Node("n0", 1))) == ["q/j:m0"]
    assert hand.finish("q/j:m0") == [Finish("q")]


def finished_maps(**where: str | None) -> Hand:
    """Two maps are done, their outputs are where the test says, and two reduces run."""
    hand = Hand("fifo", [Node("a", 1), Node("b", 1), Node("c", 1)])
    hand.submit("q", maps("j", 2, 2))
    for task, output in zip(("q/j:m0", "q/j:m1"), where.values(), strict=True):
        hand.finish(task, place=output)
    assert hand.running() == ["q/j:r0", "q/j:r1"]
    return hand


def test_lost_outputs_are_made_again_while_reduces_need_them():
    hand = finished_maps(first="b", second="c")
    reducing = {run.node for run in hand.state.running.values()}
    free = ({"a", "b", "c"} - reducing).pop()
    assert launched(hand.lose("b" if free != "b" else "c")) in (["q/j:m0"], ["q/j:m1"])
    assert not hand.state.jobs["q/j"].maps_done
    hand.run_all()
    assert hand.ended == {"q": Finish("q")}


def test_only_the_outputs_that_were_there_are_made_again():
    hand = finished_maps(first="b", second="c")
    hand.lose("b")
    assert hand.state.jobs["q/j"].map.done == 1


def test_a_durable_output_survives_its_node():
    hand = finished_maps(first=None, second=None)
    for node in ("a", "b", "c"):
        hand.lose(node)
    assert hand.state.jobs["q/j"].maps_done
    hand.join(Node("d", 2))
    assert hand.running() == ["q/j:r0", "q/j:r1"], "only the reduces run again"


def test_nothing_is_made_again_for_a_job_without_reduces():
    hand = Hand("fifo", TWO)
    hand.submit("q", maps("j", 3))
    hand.finish("q/j:m0", "q/j:m1")
    hand.lose("a" if hand.state.running[2].node == "b" else "b")
    assert hand.state.jobs["q/j"].map.done == 2


def test_nothing_is_made_again_for_a_job_that_is_done():
    hand = Hand("fifo", TWO)
    hand.submit("q", maps("j", 1, 1), maps("k", 1, upstream=("j",)))
    hand.finish("q/j:m0", place="a")
    hand.finish("q/j:r0", place="a")
    assert hand.running() == ["q/k:m0"]
    hand.lose("a")
    hand.run_all()
    redone = [
        str(t) for s in hand.journal.steps for c in of_type(Launch, s.commands) for t in c.tasks
    ]
    assert redone.count("q/j:m0") == 1
    assert hand.ended == {"q": Finish("q")}


def test_riders_of_a_lost_node_all_run_again():
    hand = Hand("s3", TWO, [TABLE])
    queries = [Query(id, (maps("j", 2, scans=("t",)),)) for id in "xy"]
    hand.do(*(ev.QuerySubmitted(0.0, query) for query in queries))
    (run,) = [run for run in hand.state.running.values() if run.node == "a"]
    assert len(run.tasks) == 2
    hand.lose("a")
    hand.run_all()
    assert set(hand.ended.values()) == {Finish("x"), Finish("y")}


def test_all_nodes_are_lost_and_come_back():
    hand = Hand("fair", "2x2")
    hand.submit("tasks", maps("j", 6, 2))
    hand.submit("leased", divisible("d", 3))
    hand.finish(hand.running()[0])
    assert hand.lose("n0", "n1") == []
    assert not hand.state.running
    assert not hand.state.leaseholders
    assert hand.state.total_slots == 0
    assert hand.submit("meanwhile", maps("j", 1)) == []
    assert "the cluster has no nodes" in hand.scheduler.why("meanwhile").reasons
    hand.join(Node("n1", 2))
    hand.run_all()
    assert {type(end) for end in hand.ended.values()} == {Finish}
    assert len(hand.ended) == 3
    hand.check_replay()


def test_a_node_that_joins_is_used_at_once():
    hand = Hand("fifo", "1x1")
    hand.submit("q", maps("j", 3))
    commands = hand.join(Node("new", 2))
    assert [(str(c.tasks[0]), c.node) for c in commands] == [("q/j:m1", "new"), ("q/j:m2", "new")]


def test_a_node_may_be_lost_and_join_again_in_one_instant():
    hand = Hand("fifo", "1x1")
    hand.submit("q", maps("j", 1))
    commands = hand.do(ev.NodeLost(0.0, "n0"), ev.NodeJoined(0.0, Node("n0", 2)))
    assert launched(commands) == ["q/j:m0"]
    assert hand.state.nodes["n0"].free == 1


def test_a_task_that_ended_as_its_node_was_lost_is_judged_by_the_order_of_events():
    for lost_first in (False, True):
        hand = Hand("fifo", "2x1")
        hand.submit("q", maps("j", 1))
        number, node = hand.number("q/j:m0"), hand.state.running[0].node
        events = [ev.TaskFinished(0.0, number, None), ev.NodeLost(0.0, node)]
        commands = hand.do(*(reversed(events) if lost_first else events))
        assert launched(commands) == (["q/j:m0"] if lost_first else [])


@pytest.mark.parametrize("outcome", ["finished", "failed"])
def test_a_lost_launch_may_still_report(outcome: str):
    hand = Hand("fifo", "2x1")
    hand.submit("q", maps("j", 1))
    number, node = hand.number("q/j:m0"), hand.state.running[0].node
    assert launched(hand.lose(node)) == ["q/j:m0"]
    late = (
        ev.TaskFinished(0.0, number, None)
        if outcome == "finished"
        else ev.TaskFailed(0.0, number, "late")
    )
    assert hand.do(late) == []
    assert hand.finish("q/j:m0") == [Finish("q")]


def test_a_lease_is_lost_with_its_node_and_goes_on_elsewhere():
    hand = Hand("fifo", "2x2")
    hand.submit("q", divisible("d", 3))
    assert hand.slots("q") == 3
    commands = hand.lose("n0")
    assert hand.slots("q") == 2
    assert of_type(Grant, commands) == [Grant("q/d", "n1", 1)]
    assert hand.lease_over("q/d") == [Finish("q")]


# --- what a failure means for the next attempt -------------------------------------------------


def test_what_would_fail_again_ends_the_query_at_once_with_its_cause():
    hand = Hand("fifo", "1x1", max_attempts=4)
    hand.submit("q", maps("j", 2))
    failed = ev.TaskFailed(0.0, hand.number("q/j:m0"), "value out of range", "never")
    assert hand.do(failed) == [Fail("q", "task q/j:m0 failed: value out of range")]
    hand.check_replay()


def test_a_failure_that_is_not_the_fault_of_the_task_does_not_count():
    hand = Hand("fifo", "1x1", max_attempts=1)
    hand.submit("q", maps("j", 1))
    for _ in range(3):
        gone = ev.TaskFailed(0.0, hand.number("q/j:m0"), "its inputs are gone", "free")
        assert launched(hand.do(gone)) == ["q/j:m0"]
    hand.run_all()
    assert hand.ended == {"q": Finish("q")}


def fail_lease(hand: Hand, job: str, retry: str) -> list[object]:
    leases = hand.state.jobs[job].leases
    return hand.do(  # type: ignore[return-value]
        *(
            ev.LeaseEnded(hand.now, job, node, sum(slots), "failed", "out of memory", retry)  # type: ignore[arg-type]
            for node, slots in leases.items()
        )
    )


def test_a_divisible_job_that_failed_begins_again_from_nothing_up_to_the_limit():
    hand = Hand("fifo", "2x1", max_attempts=2)
    hand.submit("q", divisible("d", 2), estimates=10.0)
    hand.do(ev.Progressed(0.0, "q/d", 0.5))
    assert sorted(fail_lease(hand, "q/d", "count")) == [
        Grant("q/d", "n0", 1),
        Grant("q/d", "n1", 1),
    ]
    assert hand.state.queries["q"].left_s == 10.0
    assert fail_lease(hand, "q/d", "count") == [
        Fail("q", "job q/d failed 2 times, the last time with: out of memory")
    ]
    hand.check_replay()


def test_it_begins_again_when_all_its_slots_are_back():
    hand = Hand("fifo", "2x1")
    hand.submit("q", divisible("d", 2))
    failed = ev.LeaseEnded(0.0, "q/d", "n0", 1, "failed", "out of memory", "count")
    revokes = hand.do(failed)
    assert revokes == [Revoke("q/d", "n1", 1)]
    hand.do(ev.Progressed(0.0, "q/d", 0.9))
    assert hand.state.jobs["q/d"].done_share == 0.0, "that was said of the attempt before"
    assert len(of_type(Grant, hand.returned(revokes))) == 2
    assert hand.state.jobs["q/d"].failures == 1, "it failed once, whatever the number of slots"


def test_a_query_that_begins_again_reserves_its_memory_anew():
    hand = Hand("fifo", [Node("a", 2, 100.0)])
    hand.submit("q", divisible("d", 1), memory_bytes=40.0)
    hand.submit("other", divisible("d", 1), memory_bytes=50.0)
    hand.do(
        ev.LeaseEnded(0.0, "q/d", "a", 1, "failed", "out of memory", "count"),
        ev.MemoryChanged(0.0, "q", 80.0),
    )
    assert hand.state.queries["q"].stage == "waiting"
    assert hand.state.reserved_bytes == 50.0
    assert hand.lease_over("other/d") == [Finish("other"), Grant("q/d", "a", 1)]
    assert hand.state.reserved_bytes == 80.0
    hand.check_replay()


def test_a_paused_job_may_fail_and_begin_again():
    hand = Hand("swrd", "1x1")
    hand.submit("long", divisible("d", 1), estimates=100.0)
    hand.obey(hand.wait(1.0).submit("short", divisible("d", 1), estimates=1.0))
    hand.do(ev.Progressed(hand.now, "long/d", 0.5))
    hand.do(ev.LeaseEnded(hand.now, "long/d", "n0", 0, "failed", "lost", "free"))
    assert hand.state.queries["long"].stage == "waiting"
    assert hand.state.queries["long"].left_s == 100.0
    hand.run_all()
    assert hand.ended == {"short": Finish("short"), "long": Finish("long")}

"""Reduces may start before all maps are done, but never hold the slots those maps need."""

from __future__ import annotations

import pytest
from by_hand import Hand, launched, maps, of_type

from queryard.core import events as ev
from queryard.core.commands import Finish, Kill
from queryard.core.model import Node, Query


@pytest.mark.parametrize(
    ("slow_start", "maps_done"), [(0.0, 0), (0.05, 1), (0.25, 1), (0.3, 2), (0.75, 3), (1.0, 4)]
)
def test_reduces_start_after_the_configured_share_of_the_maps(slow_start: float, maps_done: int):
    hand = Hand("fifo", "1x9", slow_start=slow_start)
    started = launched(hand.submit("q", maps("j", 4, 1)))
    done = 0
    while "q/j:r0" not in started:
        started = launched(hand.finish(f"q/j:m{done}"))
        done += 1
    assert done == maps_done


def test_maps_of_the_job_come_before_its_reduces():
    hand = Hand("fifo", "1x2", slow_start=0.0)
    assert launched(hand.submit("q", maps("j", 3, 2))) == ["q/j:m0", "q/j:m1"]
    assert launched(hand.finish("q/j:m0")) == ["q/j:m2"]
    assert launched(hand.finish("q/j:m1")) == ["q/j:r0"]


def test_reduces_wait_for_jobs_upstream_like_maps_do():
    hand = Hand("fifo", "1x9", slow_start=0.0)
    assert launched(hand.submit("q", maps("a", 1), maps("b", 1, 1, upstream=("a",)))) == ["q/a:m0"]


def stuck() -> tuple[Hand, list[object]]:
    """Two early reduces hold the only node when a map's node is lost with its output."""
    hand = Hand("fifo", [Node("a", 1), Node("b", 2)], slow_start=0.0)
    hand.submit("q", maps("j", 1, 3))
    on_a = [str(t) for r in hand.state.running.values() if r.node == "a" for t in r.tasks]
    if on_a == ["q/j:m0"]:
        return hand, hand.lose("a")
    hand.finish("q/j:m0", place="a")
    return hand, hand.lose("a")


def test_one_waiting_reduce_is_killed_when_they_hold_every_slot():
    hand, commands = stuck()
    (kill,) = of_type(Kill, commands)
    victim = str(hand.state.running[kill.number].tasks[0])
    assert ":r" in victim
    assert launched(hand.killed(commands)) == ["q/j:m0"]
    assert victim not in hand.running()


def test_without_slow_start_reduces_wait_for_outputs_that_were_lost():
    """They were launched when all maps were done; then a node is lost with the output of one."""
    hand = Hand("fifo", [Node("a", 1), Node("b", 2)])
    hand.submit("q", maps("j", 1, 3))
    (mapping,) = hand.state.running.values()
    hand.finish("q/j:m0", place=mapping.node)
    assert len(hand.running()) == 3
    commands = hand.lose(mapping.node)
    assert len(of_type(Kill, commands)) == 1
    assert launched(hand.killed(commands)) == ["q/j:m0"]
    assert hand.state.remaking
    hand.run_all()
    assert hand.ended == {"q": Finish("q")}
    assert not hand.state.remaking
    hand.check_replay()


def test_its_job_starts_no_more_reduces_before_its_maps_are_done():
    hand, commands = stuck()
    hand.killed(commands)
    assert launched(hand.join(Node("c", 5))) == [], "although five slots are free"
    hand.finish("q/j:m0")
    assert len(hand.running()) == 3
    hand.run_all()
    assert hand.ended == {"q": Finish("q")}
    hand.check_replay()


def test_while_a_kill_is_under_way_there_is_no_second_one():
    hand, commands = stuck()
    assert len(of_type(Kill, commands)) == 1
    assert hand.do(ev.Woke(hand.now)) == []


def test_nothing_is_killed_while_something_runs_that_ends_by_itself():
    hand = Hand("fifo", "1x3", slow_start=0.0)
    hand.submit("q", maps("j", 1, 1))
    hand.submit("other", maps("j", 1))
    assert hand.running() == ["other/j:m0", "q/j:m0", "q/j:r0"]
    number = hand.number("q/j:m0")
    hand.submit("third", maps("j", 1))
    commands = hand.do(ev.TaskFailed(hand.now, number, "bad luck"))
    assert not of_type(Kill, commands)
    assert launched(commands) == ["q/j:m0"]


def test_a_pool_at_its_cap_is_freed_although_other_slots_are_idle():
    capped = {"pools": {"by": "tenant", "default": {"order": "fifo", "cap": 0.5}}}
    hand = Hand(capped, [Node("a", 1), Node("b", 1), Node("c", 2)], slow_start=0.0)
    hand.submit("q", maps("j", 1, 1))
    assert hand.running() == ["q/j:m0", "q/j:r0"]
    mapping = hand.state.running[hand.number("q/j:m0")].node
    commands = hand.lose(mapping)
    # Of three slots (or two) the pool may use one, and its reduce waits in it.
    assert len(of_type(Kill, commands)) == 1
    assert launched(hand.killed(commands)) == ["q/j:m0"]
    hand.run_all()
    assert hand.ended == {"q": Finish("q")}


@pytest.mark.parametrize("profile", ["fifo", "fair", "tumm", "h-tumm", "static", "s3", "capacity"])
def test_no_livelock_whichever_node_is_lost_at_any_time(profile: str):
    """Early reduces of many jobs, and every node is lost once: all queries end, soon enough."""
    hand = Hand(profile, [Node(name, 2) for name in "abc"], slow_start=0.0)
    queries = [Query(f"q{i}", (maps("j", 3, 4), maps("k", 2, 3))) for i in range(3)]
    hand.do(*(ev.QuerySubmitted(0.0, query) for query in queries))
    for round, name in enumerate("abcabc"):
        for _ in range(2):
            hand.wait(1.0)
            run = next(iter(hand.state.running.values()))
            hand.obey(hand.do(ev.TaskFinished(hand.now, run.number, run.node)))
        hand.obey(hand.lose(name))
        hand.obey(hand.join(Node(name, 1 + round % 2)))
    finish_what_can(hand)
    assert set(hand.ended.values()) == {Finish(query.id) for query in queries}
    hand.check_replay()


def finish_what_can(hand: Hand, most: int = 500) -> None:
    """As a cluster would: a reduce ends only after the maps of its job."""
    for _ in range(most):
        ready = [
            run
            for run in hand.state.running.values()
            if run.tasks[0].kind == "map" or hand.state.jobs[run.tasks[0].job].maps_done
        ]
        if not ready:
            assert not hand.state.queries, f"nothing can move: {hand.running()}"
            return
        hand.wait(1.0)
        hand.obey(hand.do(ev.TaskFinished(hand.now, ready[0].number, ready[0].node)))
    raise AssertionError(f"no end after {most} tasks")

"""The kernel in words: what happened to a query, and why it waits."""

from __future__ import annotations

import pytest
from by_hand import Hand, divisible, maps

from queryard.core import events as ev
from queryard.core.errors import QueryardError
from queryard.core.model import Node, Split, Table
from queryard.core.scheduler import Scheduler
from queryard.policies import compose

TABLE = Table("t", tuple(Split(1.0) for _ in range(2)))


def told() -> Hand:
    """q is retried once and cancelled later; r is leased and loses a node."""
    hand = Hand("fifo", [Node("a", 1), Node("b", 2)], [TABLE])
    hand.submit("q", maps("j", 2, scans=("t",)))
    hand.wait(1.0).submit("r", divisible("d", 2))
    hand.wait(1.0).fail("q/j:m0", "disk full")
    hand.wait(1.0).finish("q/j:m1")
    hand.wait(1.0).lose("b")
    hand.wait(1.0)
    hand.obey(hand.cancel("q"))
    return hand


def words(hand: Hand, entity: str) -> list[str]:
    return [sentence.split()[0] for _, sentence in hand.scheduler.story(entity)]


def test_the_story_of_a_query_is_that_of_its_jobs_and_tasks():
    hand = told()
    story = hand.scheduler.story("q")
    assert story[0] == (0.0, "QuerySubmitted query=q")
    assert story[-1] == (hand.now, "Fail query=q cause=cancelled")
    assert any("tasks=q/j:m0" in sentence for _, sentence in story)
    assert any("cause=disk full" in sentence for _, sentence in story)
    assert not any("r/d" in sentence for _, sentence in story)
    assert [time_s for time_s, _ in story] == sorted(time_s for time_s, _ in story)


def test_the_story_of_a_job():
    assert words(told(), "r/d").count("Grant") >= 1
    assert "Launch" not in words(told(), "r/d")


def test_the_story_of_a_task_is_that_of_its_launches():
    hand = told()
    assert words(hand, "q/j:m1") == ["Launch", "TaskFinished"]
    first = words(hand, "q/j:m0")
    assert first[:3] == ["Launch", "TaskFailed", "Launch"]


def test_the_story_of_a_node():
    hand = told()
    story = words(hand, "b")
    assert story[0] == "NodeJoined"
    assert story[-1] == "NodeLost"
    assert "Launch" in story


def test_the_story_of_a_table():
    assert words(told(), "t")[:2] == ["TableChanged", "QuerySubmitted"]


def test_there_is_no_story_of_an_unknown_query():
    assert told().scheduler.story("unknown") == []


def test_a_name_is_not_taken_for_a_longer_one():
    hand = Hand("fifo", "1x4")
    hand.submit("q", maps("j", 1))
    hand.submit("q1", maps("j", 1))
    hand.submit("qq", maps("j", 1))
    assert words(hand, "q") == ["QuerySubmitted", "Launch"]


def test_without_a_journal_there_is_no_story():
    scheduler = Scheduler(compose, {"order": "fifo"})
    with pytest.raises(QueryardError, match="without a journal"):
        scheduler.story("q")


# --- why -----------------------------------------------------------------------------------------


def reasons(hand: Hand, query: str) -> str:
    why = hand.scheduler.why(query)
    assert str(why) == f"{query} is {why.stage}: " + "; ".join(why.reasons)
    return "; ".join(why.reasons)


def test_queries_ahead_are_named_in_order():
    hand = Hand("swrd", "1x1")
    hand.submit("now", maps("j", 1), estimates=1.0)
    for id, map_s in (("d", 40.0), ("a", 10.0), ("c", 30.0), ("b", 20.0)):
        hand.submit(id, maps("j", 1), estimates=map_s)
    why = hand.scheduler.why("d")
    assert why.ahead == ("a", "b", "c")
    assert why.rule == "swrd"
    assert why.pool == "all"
    assert why.stage == "waiting"
    assert reasons(hand, "d") == "the order swrd puts 3 queries before it: a, b, c"
    assert reasons(hand, "a") == "it is next in its pool; all slots are busy"


def test_a_long_queue_is_cut_short_in_words_only():
    hand = Hand("fifo", "1x1")
    for number in range(7):
        hand.wait(1.0).submit(f"q{number}", maps("j", 2))
    why = hand.scheduler.why("q6")
    assert why.ahead == tuple(f"q{n}" for n in range(6))
    assert why.reasons == ("the order fifo puts 6 queries before it: q0, q1, q2 …",)


def test_a_query_that_works_says_so():
    hand = Hand("fifo", "1x3")
    hand.submit("q", maps("j", 2), divisible("d", 1))
    assert "3 slots at work on it" in reasons(hand, "q")
    assert "job j runs its last 2 maps" in reasons(hand, "q")
    assert "job d has all it can use: 1 slot" in reasons(hand, "q")
    assert hand.scheduler.why("q").slots == 3


def test_reduces_that_run_and_jobs_that_wait_upstream():
    hand = Hand("fifo", "1x1")
    hand.submit("q", maps("a", 1, 1), maps("b", 1, upstream=("a",)))
    hand.finish("q/a:m0")
    assert "job a runs its last 1 reduce" in reasons(hand, "q")
    assert "job b waits for 1 upstream job" in reasons(hand, "q")


def test_a_cap():
    profile = {"pools": {"by": "tenant", "default": {"order": "fifo", "cap": 0.5}}}
    hand = Hand(profile, "1x4")
    hand.submit("q", maps("j", 3), tenant="ann")
    assert "pool ann is at its cap of 2 slots" in reasons(hand, "q")
    assert hand.scheduler.why("q").pool == "ann"


def test_the_guarantee_of_another_pool():
    profile = {
        "pools": {
            "by": "tenant",
            "children": {"vip": {"order": "fifo", "guarantee": 0.5}},
            "default": {"order": "fifo"},
        }
    }
    hand = Hand(profile, "1x4")
    hand.submit("q", maps("j", 9), tenant="ann")
    assert "guarantee" not in reasons(hand, "q")
    hand.submit("v", maps("j", 9), tenant="vip")
    assert "pool vip is below its guarantee of 2 slots" in reasons(hand, "q")
    assert "guarantee" not in reasons(hand, "v")


def test_memory():
    hand = Hand("fifo", [Node("a", 4, 100.0)])
    hand.submit("holder", maps("j", 1), memory_bytes=80.0)
    hand.submit("large", maps("j", 1), memory_bytes=90.0)
    hand.submit("small", maps("j", 1), memory_bytes=10.0)
    assert "it needs 90 bytes of memory and 20 are free" in reasons(hand, "large")
    assert "memory is kept for large, which was refused first" in reasons(hand, "small")


def test_a_round_of_a_shared_scan():
    hand = Hand("s3", "1x1", [TABLE])
    hand.submit("a", maps("j", 2, scans=("t",)))
    hand.submit("b", maps("j", 2, scans=("t",)))
    assert "job j waits for the next round of the shared scan" in reasons(hand, "b")


def test_no_nodes():
    hand = Hand("fifo", [])
    hand.submit("q", maps("j", 1))
    assert "the cluster has no nodes" in reasons(hand, "q")


def test_slots_that_are_kept_back():
    hand = Hand("static", "1x2")
    hand.submit("q", maps("j", 2))
    assert "static keeps back 1 free slot" in reasons(hand, "q")


def test_an_ending():
    hand = Hand("fifo", "1x1")
    hand.submit("q", maps("j", 1))
    hand.do(ev.QueryCancelled(0.0, "q", "the user left"))
    assert reasons(hand, "q") == "it ends (the user left); 1 slot to come back"


def test_of_an_unknown_query_the_active_ones_are_named():
    hand = Hand("fifo", "1x1")
    hand.submit("report", maps("j", 1))
    with pytest.raises(QueryardError, match="unknown active query 'reprot'; did you mean 'report'"):
        hand.scheduler.why("reprot")


def test_asking_changes_nothing():
    hand = Hand("edls-pr", "1x1")
    for number in range(4):
        hand.submit(f"q{number}", maps("j", 2), deadline_s=9.0 if number % 2 else None)
    twin = hand.scheduler.fork()
    for query in list(hand.state.queries):
        hand.scheduler.why(query)
        hand.scheduler.story(query)
    number = hand.number("q0/j:m0") if "q0/j:m0" in hand.running() else 0
    event = ev.TaskFinished(1.0, number, None)
    assert hand.do(event) == twin.handle(event)

"""The tables of transitions, and what a query goes through from submission to its end."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest
from by_hand import Hand, divisible, launched, maps

from queryard.core import events as ev
from queryard.core.changes import queries
from queryard.core.commands import Fail, Finish
from queryard.core.errors import InvalidEvent
from queryard.core.lifecycle import (
    DONE,
    LEASE_MOVES,
    PENDING,
    QUERY_MOVES,
    RUNNING,
    TASK_MOVES,
    QueryStage,
    next_stage,
)
from queryard.core.model import Node, Query, Split, Table, query_ids

STAGES = get_args(QueryStage)
MOVES = sorted({move for _, move in QUERY_MOVES})
TABLE = Table("t", tuple(Split(1.0) for _ in range(3)))


@pytest.mark.parametrize(("stage", "move"), list(product(STAGES, MOVES)))
def test_a_query_moves_only_as_the_table_says(stage: QueryStage, move: str):
    if (stage, move) in QUERY_MOVES:
        assert next_stage("q", stage, move) == QUERY_MOVES[stage, move]
    else:
        with pytest.raises(InvalidEvent, match=f"query 'q' is {stage}: it cannot be {move}"):
            next_stage("q", stage, move)


def test_nothing_leaves_an_end():
    assert not [stage for stage, _ in QUERY_MOVES if stage in ("finished", "failed")]


def test_every_move_of_a_task_changes_its_state():
    assert all(leave != enter for leave, enter in TASK_MOVES.values())
    assert {enter for _, enter in TASK_MOVES.values()} == {PENDING, RUNNING, DONE}


def test_a_lease_that_was_granted_can_always_come_back():
    ways_in = {enter for _, enter in LEASE_MOVES.values()} - {None}
    ways_out = {leave for leave, enter in LEASE_MOVES.values() if enter is None}
    assert ways_in == ways_out


def test_the_life_of_a_query_with_maps_and_reduces():
    hand = Hand("fifo", "1x2")
    assert launched(hand.submit("q", maps("j", 3, 1))) == ["q/j:m0", "q/j:m1"]
    assert hand.state.queries["q"].stage == "running"
    assert launched(hand.finish("q/j:m0")) == ["q/j:m2"]
    assert hand.finish("q/j:m1") == []
    assert launched(hand.finish("q/j:m2")) == ["q/j:r0"]
    assert hand.finish("q/j:r0") == [Finish("q")]
    assert not hand.state.queries
    assert not hand.state.jobs
    hand.check_replay()


def test_a_job_waits_for_all_jobs_upstream():
    hand = Hand("fifo", "1x4")
    jobs = (maps("a", 1), maps("b", 1, 1), maps("c", 1, upstream=("a", "b")))
    assert launched(hand.submit("q", *jobs)) == ["q/a:m0", "q/b:m0"]
    assert hand.finish("q/a:m0") == []
    assert launched(hand.finish("q/b:m0")) == ["q/b:r0"]
    assert launched(hand.finish("q/b:r0")) == ["q/c:m0"]
    assert hand.finish("q/c:m0") == [Finish("q")]


def test_divisible_work_and_tasks_may_follow_each_other():
    hand = Hand("fifo", "1x2")
    hand.submit("q", divisible("a", 2), maps("b", 1, upstream=("a",)))
    assert hand.state.jobs["q/a"].slots == 2
    assert launched(hand.lease_over("q/a")) == ["q/b:m0"]
    assert hand.finish("q/b:m0") == [Finish("q")]


# --- a query that can never run ----------------------------------------------------------------


def test_an_unknown_table_fails_the_query_and_names_those_there_are():
    hand = Hand("fifo", "1x1", [TABLE])
    (failed,) = hand.submit("q", maps("j", 3, scans=("tt",)))
    assert failed == Fail("q", "job q/j: unknown table 'tt' (valid: t)")
    assert not hand.state.queries


def test_as_many_map_tasks_as_splits_are_asked_for():
    hand = Hand("fifo", "1x1", [TABLE])
    assert hand.submit("q", maps("j", 4, scans=("t",))) == [
        Fail("q", "job q/j has 4 map tasks for 3 splits")
    ]
    assert launched(hand.submit("both", maps("j", 6, scans=("t", "t")))) == ["both/j:m0"]


def test_more_memory_than_the_cluster_has_fails_the_query():
    hand = Hand("fifo", [Node("a", 1, 60.0), Node("b", 1, 40.0)])
    (failed,) = hand.submit("q", maps("j", 1), memory_bytes=101.0)
    assert isinstance(failed, Fail)
    assert failed.cause == (
        "it needs 101 bytes of memory and the cluster has 100; add nodes or lower its demand"
    )
    assert launched(hand.submit("just", maps("j", 1), memory_bytes=100.0)) == ["just/j:m0"]


def test_what_fails_at_once_leaves_others_alone():
    hand = Hand("fair", "1x2")
    query, other = Query("bad", (maps("j", 1, scans=("t",)),)), Query("good", (maps("j", 1),))
    commands = hand.do(ev.QuerySubmitted(0.0, query), ev.QuerySubmitted(0.0, other))
    assert launched(commands) == ["good/j:m0"]
    assert hand.ended.keys() == {"bad"}
    hand.check_replay()


# --- the same query again ----------------------------------------------------------------------


def test_a_known_idempotency_key_is_the_earlier_query_again():
    hand = Hand("fifo", "1x4")
    assert launched(hand.submit("q1", maps("j", 1), idempotency_key="k"))
    assert hand.submit("q2", maps("j", 1), idempotency_key="k") == []
    assert hand.submit("q1", maps("j", 1), idempotency_key="k") == []
    assert list(hand.state.queries) == ["q1"]
    assert launched(hand.submit("q3", maps("j", 1), idempotency_key="other")) == ["q3/j:m0"]
    hand.finish("q1/j:m0")
    assert hand.submit("q4", maps("j", 1), idempotency_key="k") == [], "nor after its end"
    hand.check_replay()


def test_two_with_one_key_in_one_instant_are_one():
    hand = Hand("fifo", "1x4")
    twins = [Query(id, (maps("j", 1),), idempotency_key="k") for id in ("q1", "q2")]
    commands = hand.do(*(ev.QuerySubmitted(0.0, query) for query in twins))
    assert launched(commands) == ["q1/j:m0"]


def test_without_a_key_queries_are_never_the_same():
    hand = Hand("fifo", "1x4")
    hand.submit("q1", maps("j", 1))
    assert launched(hand.submit("q2", maps("j", 1))) == ["q2/j:m0"]


def test_the_oldest_keys_are_forgotten(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(queries, "KEYS_KEPT", 2)
    hand = Hand("fifo", "1x9")
    for key in "abc":
        hand.submit(f"q{key}", maps("j", 1), idempotency_key=key)
    assert hand.submit("again-c", maps("j", 1), idempotency_key="c") == []
    assert launched(hand.submit("again-a", maps("j", 1), idempotency_key="a"))
    assert len(hand.state.keys) == 2


def test_a_fork_knows_the_keys_and_keeps_its_own():
    hand = Hand("fifo", "1x9")
    hand.submit("q1", maps("j", 1), idempotency_key="k")
    fork = hand.scheduler.fork()
    fork.handle(ev.QuerySubmitted(0.0, Query("q2", (maps("j", 1),), idempotency_key="k2")))
    assert (
        fork.handle(ev.QuerySubmitted(0.0, Query("q3", (maps("j", 1),), idempotency_key="k"))) == []
    )
    assert launched(hand.submit("q4", maps("j", 1), idempotency_key="k2")) == ["q4/j:m0"]


def test_ids_are_unique_across_restarts():
    first, second = query_ids("monday"), query_ids("tuesday")
    ids = [next(source) for source in (first, second) for _ in range(3)]
    assert len(set(ids)) == 6
    assert ids[0] == "monday-1"
    with pytest.raises(Exception, match="incarnation must be a non-empty string"):
        query_ids("")


def test_an_id_may_be_used_again_after_the_end():
    hand = Hand("fifo", "1x1")
    for _ in range(2):
        hand.submit("q", maps("j", 1))
        hand.ended.clear()
        assert hand.finish("q/j:m0") == [Finish("q")]

"""Reading a journal into rows."""

from __future__ import annotations

import pytest

from queryard.core.commands import Fail, Finish, Grant, Launch
from queryard.core.events import (
    LeaseEnded,
    NodeJoined,
    NodeLost,
    QueryCancelled,
    QuerySubmitted,
    TaskFinished,
)
from queryard.core.journal import Journal, Step
from queryard.core.model import Divisible, Job, Node, Phase, Query, TaskId
from queryard.metrics import RunRows, read_run

WORK = Query("q", jobs=(Job("w", divisible=Divisible(8)),))


def test_each_query_has_its_times_and_its_outcome(run: RunRows) -> None:
    seen = {
        name: (row.submit_s, row.start_s, row.end_s, row.outcome)
        for name, row in run.queries.items()
    }
    assert seen == {
        "a": (10, 10, 20, "finished"),
        "b": (10, 10, 24, "finished"),
        "c": (12, 12, 30, "finished"),
        "d": (12, 12, 14, "cancelled"),
        "e": (13, 14, 25, "failed"),
        "f": (40, 40, None, "unfinished"),
    }
    assert run.queries["e"].cause == "no room"


def test_a_known_idempotency_key_is_a_duplicate(run: RunRows) -> None:
    assert "a2" not in run.queries
    assert run.duplicates == 1


def test_queries_without_a_key_are_not_duplicates_of_one_another(run: RunRows) -> None:
    assert len(run.queries) == 6


def test_task_seconds_count_a_task_once_and_a_rider_in_full(run: RunRows) -> None:
    task_s = {name: row.task_s for name, row in run.queries.items()}
    # a: map 0 in 6 s at the second try, map 1 in 10 s; b rides these 10 s, then 6 s alone;
    # c: 18 s + 10 s + 6 s of slots; the killed launch of d gave nothing.
    assert task_s == {"a": 16, "b": 16, "c": 34, "d": 0, "e": 11, "f": 0}


def test_slot_seconds_count_every_attempt_and_divide_a_ride(run: RunRows) -> None:
    slot_s = {name: row.slot_s for name, row in run.queries.items()}
    assert slot_s == {"a": 2 + 6 + 5, "b": 5 + 6, "c": 34, "d": 2, "e": 11, "f": 10}
    busy_s = sum((row.end_s if row.end_s is not None else 50) - row.start_s for row in run.launches)
    assert sum(slot_s.values()) == pytest.approx(busy_s + 34)


def test_a_task_launched_again_is_a_retry(run: RunRows) -> None:
    assert {name: (row.attempts, row.retries) for name, row in run.queries.items()} == {
        "a": (3, 1),
        "b": (2, 0),
        "c": (0, 0),
        "d": (1, 0),
        "e": (1, 0),
        "f": (1, 0),
    }


def test_launches_end_as_they_did(run: RunRows) -> None:
    assert [row.outcome for row in run.launches] == [
        "failed",
        "finished",
        "killed",
        "finished",
        "finished",
        "finished",
        "running",
    ]


def test_a_lost_node_ends_all_that_ran_there() -> None:
    scan = Query("s", jobs=(Job("scan", map=Phase(2)),))
    task = TaskId("s/scan", "map", 0)
    steps = [
        Step(
            0.0,
            (
                NodeJoined(0.0, Node("n1", 8)),
                NodeJoined(0.0, Node("n2", 8)),
                QuerySubmitted(0.0, WORK),
                QuerySubmitted(0.0, scan),
            ),
            (Grant("q/w", "n1", 3), Grant("q/w", "n2", 2), Launch(0, "n1", (task,))),
        ),
        Step(4.0, (NodeLost(4.0, "n1"),), (Launch(1, "n2", (task,)),)),
        Step(5.0, (TaskFinished(5.0, 0),), ()),
        Step(7.0, (TaskFinished(7.0, 1),), ()),
        Step(9.0, (NodeJoined(9.0, Node("n1", 8)),), ()),
    ]
    run = read_run(Journal(steps=steps))
    assert [(row.outcome, row.end_s) for row in run.launches] == [("lost", 4), ("finished", 7)]
    assert [(row.node, row.outcome, row.end_s) for row in run.leases] == [
        ("n1", "lost", 4),
        ("n2", "running", None),
    ]
    assert [(row.node.id, row.joined_s, row.lost_s) for row in run.nodes] == [
        ("n1", 0, 4),
        ("n2", 0, None),
        ("n1", 9, None),
    ]
    assert run.queries["s"].task_s == 3
    assert run.queries["q"].slot_s == 3 * 4 + 2 * 9


def test_a_lease_given_back_in_part_becomes_two_rows() -> None:
    steps = [
        Step(0.0, (QuerySubmitted(0.0, WORK),), (Grant("q/w", "n", 3),)),
        Step(2.0, (), (Grant("q/w", "n", 1),)),
        Step(5.0, (LeaseEnded(5.0, "q/w", "n", 2, "revoked"),), ()),
        Step(8.0, (LeaseEnded(8.0, "q/w", "n", 2, "finished"),), (Finish("q"),)),
    ]
    run = read_run(Journal(steps=steps))
    rows = sorted((row.start_s, row.end_s, row.slots, row.outcome) for row in run.leases)
    assert rows == [(0, 5, 2, "revoked"), (0, 8, 1, "finished"), (2, 8, 1, "finished")]
    assert run.queries["q"].task_s == 2 * 5 + 8 + 6


def test_a_finished_query_stays_finished_when_it_is_cancelled_later() -> None:
    steps = [
        Step(0.0, (QuerySubmitted(0.0, WORK),), (Finish("q"),)),
        Step(1.0, (QueryCancelled(1.0, "q"),), (Fail("q", "cancelled"),)),
    ]
    row = read_run(Journal(steps=steps)).queries["q"]
    assert (row.outcome, row.end_s) == ("finished", 0.0)


def test_answers_to_what_came_before_the_journal_are_left_out() -> None:
    steps = [
        Step(
            1.0,
            (TaskFinished(1.0, 99), LeaseEnded(1.0, "x/w", "n", 1, "finished"), NodeLost(1.0, "n")),
            (Finish("x"), Launch(100, "n2", (TaskId("x/w", "map", 0),))),
        ),
        Step(2.0, (TaskFinished(2.0, 100),), ()),
    ]
    run = read_run(Journal(steps=steps))
    assert not run.queries
    assert [row.outcome for row in run.launches] == ["finished"]


def test_the_clock_stops_with_the_last_query_or_runs_while_one_is_unfinished(run: RunRows) -> None:
    assert (run.first_submit_s, run.closed_s, run.makespan_s) == (10, 50, 40)
    steps = [
        Step(3.0, (QuerySubmitted(3.0, WORK),), ()),
        Step(8.0, (), (Finish("q"),)),
        Step(60.0, (), ()),
    ]
    assert read_run(Journal(steps=steps)).makespan_s == 5

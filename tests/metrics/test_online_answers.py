"""Time to x % error reduction."""

from __future__ import annotations

import pytest

from queryard.core.commands import Fail, Finish
from queryard.core.events import AnswerReported, QueryCancelled, QuerySubmitted
from queryard.core.journal import Journal, Step
from queryard.core.model import Divisible, Job, Query
from queryard.metrics import RunRows, read_run, summarise
from queryard.metrics.online import error_left, reductions, time_to_reduction


def online(name: str, *jobs: str, target_error: float | None = None) -> Query:
    divisible = Divisible(4, batches=5)
    return Query(
        name,
        jobs=tuple(Job(job, divisible=divisible) for job in jobs or ("w",)),
        kind="online",
        target_error=target_error,
    )


def answers(job: str, *moves: tuple[float, float, float | None]) -> list[Step]:
    """Steps with one answer each: (time, change, error)."""
    return [
        Step(time_s, (AnswerReported(time_s, job, batch, change, 1.0, error),), ())
        for batch, (time_s, change, error) in enumerate(moves, 1)
    ]


def run_of(query: Query, *steps: Step) -> RunRows:
    journal = Journal(steps=[Step(2.0, (QuerySubmitted(2.0, query),), ()), *steps])
    return read_run(journal)


def test_a_reported_error_counts_relative_to_the_first() -> None:
    run = run_of(online("q"), *answers("q/w", (3, 9, 8.0), (4, 1, 4.0), (7, 2, 0.8), (9, 0, 0.0)))
    assert error_left(run.answers) == [1, 0.5, 0.1, 0]
    assert time_to_reduction(run, 0.5) == {"q": 2}
    assert time_to_reduction(run, 0.9) == {"q": 5}
    assert time_to_reduction(run, 1.0) == {"q": 7}


def test_what_the_engine_expects_to_be_left_counts_before_its_errors() -> None:
    steps = answers("q/w", (3, 9, 8.0), (4, 1, 4.0))
    told = [
        Step(step.time_s, (step.events[0]._replace(left=left),), ())
        for step, left in zip(steps, (1.0, 0.2), strict=True)
    ]
    assert error_left(run_of(online("q"), *told).answers) == [1.0, 0.2]
    assert error_left(run_of(online("q"), steps[0], told[1]).answers) == [1.0, 0.5]


def test_without_a_reported_error_the_change_of_the_answer_stands_for_it() -> None:
    run = run_of(
        online("q"), *answers("q/w", (3, 9, None), (4, 2, None), (5, 4, 0.1), (6, 1, None))
    )
    assert error_left(run.answers) == [1, 1, 1, 0.25]
    assert time_to_reduction(run, 0.7) == {"q": 4}


def test_changes_of_batches_that_were_read_together_count_one_by_one() -> None:
    steps = answers("q/w", (3, 9, None), (4, 1, None))
    told = steps[1].events[0]._replace(batch=4, before=(4.0, 2.0))
    run = run_of(online("q"), steps[0], Step(4, (told,), ()))
    assert error_left(run.answers) == [1, 0.25]


def test_an_answer_that_never_moves_has_no_error_left_after_the_second() -> None:
    run = run_of(online("q"), *answers("q/w", (3, 9, None), (4, 0, None)))
    assert error_left(run.answers) == [1, 0]


def test_the_exact_answer_has_no_error_left() -> None:
    steps = answers("q/w", (3, 9, 8.0), (4, 1, 4.0))
    done = Step(12.0, (), (Finish("q"),))
    assert time_to_reduction(run_of(online("q"), *steps, done), 0.99) == {"q": 10}
    stopped = run_of(online("q", target_error=4.0), *steps, done)
    assert time_to_reduction(stopped, 0.99) == {"q": None}


def test_a_query_of_several_jobs_is_as_good_as_its_worst() -> None:
    steps = sorted(
        answers("q/u", (3, 0, 8.0), (4, 0, 1.0)) + answers("q/v", (5, 0, 8.0), (8, 0, 1.0))
    )
    assert time_to_reduction(run_of(online("q", "u", "v"), *steps), 0.8) == {"q": 6}
    assert time_to_reduction(run_of(online("q", "u", "v"), *steps[:3]), 0.8) == {"q": None}


def test_queries_that_do_not_get_there_are_counted() -> None:
    steps = [
        Step(2.0, (QuerySubmitted(2.0, online("slow")),), ()),
        *answers("q/w", (3, 9, 8.0), (4, 1, 2.0)),
        Step(5.0, (QueryCancelled(5.0, "slow"),), (Fail("slow", "cancelled"),)),
    ]
    half, most = reductions(run_of(online("q"), *steps), (0.5, 0.9))
    assert (half.queries, half.reached, half.mean_s, half.max_s) == (2, 1, 2, 2)
    assert (most.queries, most.reached, most.mean_s, most.max_s) == (2, 0, None, None)


def test_exact_queries_are_no_part_of_it() -> None:
    exact = Query("x", jobs=(Job("w", divisible=Divisible(1)),))
    run = run_of(exact, Step(3.0, (), (Finish("x"),)))
    assert summarise(run).online == ()
    assert time_to_reduction(run, 0.5) == {}


@pytest.mark.parametrize("level", [0.5, 0.7, 0.9, 0.99])
def test_no_answers_is_no_error_left_to_speak_of(level: float) -> None:
    assert error_left([]) == []
    assert time_to_reduction(run_of(online("q")), level) == {"q": None}

"""Iterative programs beside queries."""

from __future__ import annotations

import threading
import time

import pytest
from waiting import wait_until

import queryard
from queryard.core.errors import QueryardError


def test_a_program_takes_its_steps_in_order_and_ends():
    seen = []

    def step(number: int) -> float:
        seen.append(number)
        return 1.0 / number

    with queryard.connect(slots=1, history=False) as session:
        handle = session.iterate(step, 5, name="train", work_s=0.01)
        assert handle.result().fetchall() == [(5, 0.2)]
        assert handle.sql == "-- train"
    assert seen == [1, 2, 3, 4, 5]


def test_it_ends_when_it_says_so():
    with queryard.connect(slots=1, history=False) as session:
        handle = session.iterate(lambda number: None if number == 3 else 1.0, 100, work_s=0.01)
        assert handle.result().fetchall() == [(3, 1.0)]


def test_it_makes_way_for_queries():
    begun = threading.Event()

    def step(number: int) -> float:
        begun.set()
        time.sleep(0.02)
        return 1.0

    with queryard.connect(slots=1, history=False) as session:
        handle = session.iterate(step, 10_000, work_s=10.0)
        begun.wait(5)
        assert session.sql("SELECT 42").fetchall() == [(42,)]
        assert not handle.ended
        wait_until(lambda: handle.progress())
        assert 0 < handle.progress() < 1
        handle.cancel()
        assert handle.wait(5)
        assert handle.status == "cancelled"


@pytest.mark.parametrize("answer", [-1.0, "much", float("nan")])
def test_a_step_that_says_nonsense_ends_it(answer: object):
    with queryard.connect(slots=1, history=False) as session:
        handle = session.iterate(lambda number: answer, 3)  # type: ignore[arg-type,return-value]
        with pytest.raises(QueryardError, match="how far the result moved"):
            handle.result()


def test_a_step_that_fails_ends_it():
    def step(number: int) -> float:
        raise ValueError("no gradient")

    with (
        queryard.connect(slots=1, history=False) as session,
        pytest.raises(QueryardError, match="step 1 failed: no gradient"),
    ):
        session.iterate(step, 3).result()


def test_arguments_are_checked():
    with queryard.connect(slots=1, history=False) as session:
        with pytest.raises(QueryardError, match="steps"):
            session.iterate(lambda number: 1.0, 0)
        with pytest.raises(QueryardError, match="step"):
            session.iterate(42, 3)  # type: ignore[arg-type]
        with pytest.raises(QueryardError, match="work_s"):
            session.iterate(lambda number: 1.0, 3, work_s=0)

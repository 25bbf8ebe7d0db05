"""Forecasts beside outcomes: corrections by numbers that can be checked on paper."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.portfolio.budget import SAVED_FOR_S, Budget
from queryard.portfolio.reflection import MOST, Reflection
from queryard.portfolio.scores import OBJECTIVES, QueryEnd, Schedule

RESPONSE = OBJECTIVES["response"]


def forecast(*ends: float) -> Schedule:
    return Schedule(tuple(QueryEnd(f"q{n}", 0.0, end, 1.0) for n, end in enumerate(ends)))


def test_the_outcome_is_known_when_the_last_query_has_ended():
    reflection = Reflection(RESPONSE)
    reflection.expect(7, "tls", forecast(12.0, 14.0), since_s=10.0)
    assert reflection.ended("other", 1.0) == []
    assert reflection.ended("q0", 13.0) == []
    (outcome,) = reflection.ended("q1", 19.0)
    # From 10 s on: 2 and 4 s were forecast, 3 and 9 s came.
    assert (outcome.number, outcome.policy, outcome.queries) == (7, "tls", 2)
    assert (outcome.forecast, outcome.observed) == (pytest.approx(3.0), pytest.approx(6.0))
    assert outcome.error == pytest.approx(1.0)
    assert reflection.ended("q1", 19.0) == []


def test_a_candidate_is_corrected_by_how_far_it_errs_beyond_the_others():
    reflection = Reflection(RESPONSE)
    assert reflection.correction("tls") == 1.0
    for number in range(20):
        policy, came = ("tls", 1.0) if number % 2 else ("edf", 4.0)
        reflection.expect(number, policy, forecast(1.0), since_s=0.0)
        reflection.ended("q0", came)
    assert reflection.correction("edf") > 1.2
    assert reflection.correction("tls") < 0.85
    assert reflection.correction("fifo") == 1.0


def test_where_all_err_alike_none_is_corrected():
    reflection = Reflection(RESPONSE)
    for number in range(10):
        reflection.expect(number, ("tls", "edf")[number % 2], forecast(1.0), since_s=0.0)
        reflection.ended("q0", 3.0)
    assert reflection.correction("tls") == pytest.approx(1.0)


def test_when_the_policy_changes_what_has_ended_is_judged_if_it_is_enough():
    reflection = Reflection(RESPONSE)
    reflection.expect(1, "tls", forecast(1.0, 2.0, 3.0, 4.0), since_s=0.0)
    reflection.ended("q0", 1.0)
    reflection.ended("q1", 2.0)
    assert reflection.settle(2.5) == []
    (outcome,) = reflection.settle(2.5, "edf")
    assert outcome.error == pytest.approx(0.0)
    reflection.expect(2, "edf", forecast(1.0, 2.0, 3.0, 4.0), since_s=0.0)
    reflection.ended("q0", 1.0)
    assert reflection.settle(2.5, "tls") == []
    reflection.expect(3, "tls", forecast(1.0), since_s=0.0)
    assert reflection.ended("q0", None) == []  # it was cancelled
    assert reflection.settle(1e9) == []


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(1e-6, 1e6)), max_size=40))
def test_no_correction_is_larger_than_its_bound(outcomes):
    reflection = Reflection(RESPONSE)
    for number, (policy, came) in enumerate(outcomes):
        reflection.expect(number, policy, forecast(1.0), since_s=0.0)
        reflection.ended("q0", came)
    for policy in "ab":
        assert 1 / MOST <= reflection.correction(policy) <= MOST


@given(
    st.floats(0.01, 1.0),
    st.floats(0.0, 1.0),
    st.lists(st.tuples(st.floats(0.0, 100.0), st.floats(0.0, 2.0)), max_size=50),
)
def test_no_more_than_the_share_is_used_but_for_the_error_of_one_expectation(
    share, right, decisions
):
    budget = Budget(share, now=0.0)
    now = 0.0
    for idle_s, cost_s in decisions:
        expected_s = cost_s * right
        now = budget.free_s(now + idle_s, expected_s)
        assert budget.free_s(now, expected_s) == pytest.approx(now, abs=1e-6)
        budget.spend(cost_s, now)
        assert budget.spent_s <= share * now + (1 - right) * cost_s + 1e-6


def test_an_idle_time_saves_up_little():
    budget = Budget(0.05, now=0.0)
    assert budget.free_s(1000.0, 0.05 * SAVED_FOR_S) == 1000.0
    budget.spend(0.05 * SAVED_FOR_S, 1000.0)
    assert budget.free_s(1000.0, 0.1) == pytest.approx(1002.0)

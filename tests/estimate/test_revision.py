"""The total work of a query, corrected while it runs."""

from __future__ import annotations

import doctest
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.estimate import revision
from queryard.estimate.revision import TELLING, revised

seconds = st.floats(1e-3, 1e5)
shares = st.floats(0.0, 1.0)
spreads = st.floats(1.0, 20.0)


def test_the_examples_in_the_docstrings():
    assert doctest.testmod(revision).failed == 0


@given(seconds, spreads)
def test_nothing_done_leaves_the_prediction(predicted_s, spread):
    assert revised(predicted_s, 0.0, 0.0, spread) == pytest.approx(predicted_s)


@given(seconds, seconds, shares, spreads)
def test_the_total_is_never_less_than_what_is_done(predicted_s, done_s, progress, spread):
    total_s = revised(predicted_s, done_s, progress, spread)
    assert total_s >= done_s
    assert math.isfinite(total_s)


@given(seconds, seconds, seconds, shares, spreads)
def test_more_done_and_more_predicted_never_make_less(predicted_s, one_s, two_s, progress, spread):
    less, more = sorted([one_s, two_s])
    slack = 1 + 1e-9
    assert revised(predicted_s, less, progress, spread) <= slack * revised(
        predicted_s, more, progress, spread
    )
    assert revised(less, predicted_s, progress, spread) <= slack * revised(
        more, predicted_s, progress, spread
    )


@given(seconds, seconds, shares, shares, spreads)
def test_further_progress_never_makes_more(predicted_s, done_s, one, two, spread):
    less, more = sorted([one, two])
    slow = revised(predicted_s, done_s, less, spread)
    assert revised(predicted_s, done_s, more, spread) <= slow * (1 + 1e-9)


@pytest.mark.parametrize("done_s", [1.0, 3.0, 5.0, 7.0, 8.0])
def test_a_sure_prediction_is_left_alone_until_the_end_is_near(done_s):
    assert revised(10.0, done_s, done_s / 12, spread=1.15) == pytest.approx(10.0, rel=0.04)


def test_a_query_that_outlives_its_prediction_is_expected_to_last():
    assert revised(1.0, 10.0, 0.0, spread=1.5) == pytest.approx(12.9, rel=0.01)
    # The less sure the prediction was, the more is still to come.
    assert revised(1.0, 10.0, 0.0, spread=3.0) == pytest.approx(21.0)


def test_progress_bounds_what_was_predicted_far_too_high():
    assert revised(100.0, 2.0, 0.5, spread=3.0) == pytest.approx(4.0)
    # It is not believed at once: a window says two thirds as soon as it begins.
    assert revised(10.0, 0.1, 0.67, spread=1.2) > 5.0
    assert revised(100.0, 2.0, TELLING / 2, spread=2.0) > 99.0


def test_progress_that_lags_behind_changes_nothing():
    # The end of Q1: 0.3 with all but a tenth of the work done.
    assert revised(10.0, 9.0, 0.3, spread=1.15) == revised(10.0, 9.0, 0.0, spread=1.15)

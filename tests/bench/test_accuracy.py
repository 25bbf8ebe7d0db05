"""Figures of accuracy, with numbers that can be checked on paper."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.accuracy import accuracy, ranks, relative_error, repeat_error, share_below, spearman
from bench.single_query import told

AMOUNTS = st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=30)


def test_predictions_that_are_off_by_known_factors():
    found = accuracy([1.0, 4.0, 1.0, 8.0], [1.0, 2.0, 4.0, 8.0])
    assert found.median == 1.5
    assert (found.ninth_decile, found.worst, found.bias) == (4.0, 4.0, 1.0)
    # Ranks 0.5, 2, 0.5, 3 and 0, 1, 2, 3: covariance 3 of deviations 4.5 and 5.
    assert found.correlation == pytest.approx(3 / math.sqrt(4.5 * 5))


def test_equal_values_share_their_rank():
    assert ranks([3.0, 1.0, 3.0, 2.0]) == [2.5, 0.0, 2.5, 1.0]
    assert math.isnan(spearman([1.0, 1.0], [1.0, 2.0]))


@given(AMOUNTS)
def test_ranks_do_not_change_with_a_growing_function(values):
    assert ranks(values) == ranks([2 * value for value in values])
    assert statistics.fmean(ranks(values)) == pytest.approx((len(values) - 1) / 2)


@given(AMOUNTS, st.floats(1.1, 100))
def test_a_constant_factor_is_the_bias_and_every_error(values, factor):
    found = accuracy([value * factor for value in values], values)
    assert found.median == pytest.approx(factor)
    assert found.worst == pytest.approx(factor)
    assert found.bias == pytest.approx(factor)


@given(AMOUNTS, st.floats(0.01, 1.0))
def test_the_share_at_most_the_quantile_is_reached_and_not_without_it(values, share):
    found = share_below(values, share)
    assert sum(value <= found for value in values) >= share * len(values) - 1e-6
    assert sum(value < found for value in values) < share * len(values)


def test_errors_relative_to_what_was():
    assert repeat_error([2.0, 1.0, 4.0]) == 0.5
    assert relative_error([1.0, 3.0], [2.0, 2.0]) == 0.5
    assert math.isnan(relative_error([], []))


def test_short_queries_are_judged_by_what_is_added_and_long_ones_by_ratios():
    rows = [("a", 0.1, 0.2), ("b", 1.0, 0.5), ("c", 0.04, 0.042)]
    assert told(rows) == (
        "geometric mean 1.000, worst 2.00 of 2 above 50 ms; 2.0 ms added to 1 below (most 2.0)"
    )

"""Work from plans and from the past, and what is learnt from being wrong."""

from __future__ import annotations

import doctest
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.estimate import work
from queryard.estimate.work import (
    FIGURES,
    LEAST_S,
    SPREADS,
    Figure,
    Prediction,
    bias_of,
    from_past,
    noted,
    raised,
    spread_of,
)

works = st.lists(st.floats(1e-3, 1e4), min_size=1, max_size=32)


def test_the_examples_in_the_docstrings():
    assert doctest.testmod(work).failed == 0


@given(works)
def test_the_past_is_predicted_within_its_range(found):
    prediction = from_past([Figure(work_s) for work_s in found])
    low, high = max(min(found), LEAST_S), max(*found, LEAST_S)
    assert low <= prediction.work_s <= high
    assert prediction.spread >= 1.0


def test_one_odd_run_changes_nothing_and_a_lasting_change_does():
    usual = [Figure(1.0)] * 10
    assert from_past([*usual, Figure(100.0)]).work_s == 1.0
    assert from_past([*usual, *[Figure(3.0)] * 7]).work_s == 3.0


def test_work_grows_with_the_files():
    figures = [Figure(1.0, 100, 1e6), Figure(2.0, 200, 2e6)]
    prediction = from_past(figures, table_bytes=4e6)
    assert prediction.work_s == pytest.approx(4.0)
    assert prediction.memory_bytes == pytest.approx(1.3 * 400)
    # Without sizes there is nothing to go by.
    assert from_past(figures).work_s == 2.0


def test_memory_is_the_largest_of_the_recent_peaks_with_some_room():
    figures = [Figure(1.0, 9_000), *[Figure(1.0, 1_000)] * 8]
    assert from_past(figures).memory_bytes == 1_300
    assert from_past([Figure(1.0), Figure(1.0, None)]).memory_bytes is None


def test_templates_that_vary_have_a_wide_spread():
    steady = from_past([Figure(work_s) for work_s in (1.0, 1.02, 0.99, 1.01) * 4])
    wild = from_past([Figure(work_s) for work_s in (0.1, 1.0, 10.0, 0.3, 3.0) * 4])
    assert steady.spread < 1.1 < 2.0 < wild.spread


def test_a_bias_is_learnt_from_several_queries_and_not_from_one():
    twice = math.log(2)
    assert bias_of([twice]) == 1.0
    assert bias_of([twice] * 8) == pytest.approx(2.0)
    # The median: a few that are far off do not count.
    assert bias_of([0.0, 0.1, -0.1, 0.0, 5.0, 0.1, -0.1]) == pytest.approx(1.0, abs=0.1)


def test_recent_misses_count_more():
    assert bias_of([0.0] * 20 + [math.log(3)] * 12) == pytest.approx(3.0)


def test_the_spread_starts_from_experience_and_follows_what_is_seen():
    assert spread_of([], "plan") == pytest.approx(1.5)
    assert spread_of([0.02, -0.01] * 10, "plan") < 1.05
    assert spread_of([1.5, -1.5] * 10, "plan") > 4


# --- lower bounds --------------------------------------------------------------------------------


def bounds(*works_s: float) -> list[Figure]:
    return [Figure(work_s, known="at least") for work_s in works_s]


def after(*figures: Figure) -> float:
    """What is expected after these figures, one by one."""
    kept: list[Figure] = []
    for figure in figures:
        kept = noted(kept, figure)
    return from_past(kept).work_s


def test_a_lower_bound_below_what_is_expected_says_nothing():
    usual = [Figure(2.0), Figure(2.2), Figure(1.8)]
    assert from_past([*usual, *bounds(0.1, 1.9)]) == from_past(usual)


def test_queries_that_are_stopped_later_than_others_end_raise_what_is_expected():
    assert after(Figure(1.0), *bounds(10.0)) > 10.0
    usual = [Figure(1.0)] * 40
    assert after(*usual, *bounds(10.0)) == 1.0  # one odd query
    assert after(*usual, *bounds(*[10.0] * 8)) > 10.0


def test_one_that_ends_corrects_what_many_that_were_stopped_have_raised():
    assert after(Figure(1.0), *bounds(*[10.0] * 45), Figure(12.0)) == 12.0
    assert after(*bounds(*[10.0] * 45), Figure(2.0)) == 2.0


@given(st.lists(st.tuples(st.floats(1e-3, 1e4), st.booleans()), min_size=1, max_size=80))
def test_whatever_is_stopped_those_that_ended_are_remembered_and_the_range_is_kept(seen):
    kept: list[Figure] = []
    for work_s, ended in seen:
        kept = noted(kept, Figure(work_s, known="exactly" if ended else "at least"))
    assert len(kept) <= FIGURES
    if any(ended for _, ended in seen):
        found = from_past(kept)
        ends = [figure.work_s for figure in kept if figure.known == "exactly"]
        assert max(min(ends), LEAST_S) <= found.work_s
        assert found.work_s <= 1.3 * max(*(figure.work_s for figure in kept), LEAST_S)


@given(works, st.floats(1e-3, 1e4), st.sampled_from(sorted(SPREADS)))
def test_a_prediction_is_raised_above_the_furthest_and_never_lowered(stopped, work_s, by):
    predicted = Prediction(work_s, None, by, SPREADS[by])
    found = raised(predicted, bounds(*stopped))
    assert found.work_s >= max(work_s, *stopped)
    assert (found.by, found.spread) == (by, SPREADS[by])


def test_memory_is_known_from_those_that_ended_only():
    stopped = Figure(9.0, 50_000, known="at least")
    assert from_past([Figure(1.0), stopped]).memory_bytes is None
    assert from_past([Figure(1.0, 100), stopped]).memory_bytes == 65_000

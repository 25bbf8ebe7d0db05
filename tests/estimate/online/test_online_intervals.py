"""Intervals over files: what they are for sums, and where none is given."""

from __future__ import annotations

import math
import statistics
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.estimate.online import (
    Changes,
    Estimate,
    FileQuantiles,
    Sample,
    changes_of,
    estimate,
    files_for,
    half_width,
    quantile_estimate,
    rows_hidden,
    shares_around,
    student_t,
    tail_of,
)

TOTALS = st.lists(st.floats(min_value=-1e3, max_value=1e3), min_size=5, max_size=30)


@given(totals=TOTALS, more=st.integers(min_value=1, max_value=100))
def test_for_sums_it_is_the_t_interval_over_totals_of_files(totals: list[float], more: int):
    count, every = len(totals), len(totals) + more
    value = every / count * sum(totals)
    without = [every / (count - 1) * (sum(totals) - each) for each in totals]
    sample = Sample(count, every, float(count), float(every))
    found = half_width(changes_of(value, without), sample, 0.95)
    t = student_t(0.95, count - 1)
    spread = statistics.stdev(totals) * math.sqrt((1 - count / every) / count)
    assert found == pytest.approx(t * every * spread, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("confidence", "freedom", "wanted"),
    [(0.95, 1, 12.7062), (0.95, 30, 2.0423), (0.99, 4, 4.6041), (0.9, 10, 1.8125)],
)
def test_students_t(confidence: float, freedom: int, wanted: float):
    assert student_t(confidence, freedom) == pytest.approx(wanted, abs=1e-4)


def test_wrong_confidence_is_refused():
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1, got 95"):
        student_t(95, 4)


SOME = Changes(total=0.0, squares=8.0, largest=2.0)
TEN = Sample(10, 100, 1000.0, 10_000.0)


@pytest.mark.parametrize(
    ("rows", "files", "changes", "note"),
    [
        (29, 10, SOME, "few rows"),
        (30, 10, SOME, ""),
        (300, 4, SOME, "few files"),
        (300, 10, None, "no interval"),
        (300, 10, Changes(0.0, 8.0, 7.9), "heavy tail"),
        (300, 10, Changes(0.0, 8.0, 2.0, row=2.0), "heavy tail"),
        (300, 10, Changes(6.0, 8.0, 2.0), "few files"),
        (300, 10, Changes(0.0, 8.0, 2.0, tail=1.1), "heavy tail"),
    ],
)
def test_no_interval_is_given_where_it_would_be_wrong(
    rows: int, files: int, changes: Changes | None, note: str
):
    found = estimate(50.0, changes, rows, files, TEN)
    assert found.note == note
    assert (found.low is None) == bool(note)
    assert found.value == pytest.approx(50.0, abs=10)


@pytest.mark.parametrize(("index", "heavy"), [(1.5, True), (8.0, False)])
def test_largest_values_of_files_show_whether_values_have_a_variance(index: float, heavy: bool):
    rng = Random(5)
    files = [max(rng.paretovariate(index) for _ in range(200)) for _ in range(10)]
    deviation = statistics.stdev(math.log(value) for value in files)
    assert (tail_of(deviation, 10, 2) > 1) == heavy
    assert tail_of(deviation, 4, 2) == 0  # of four files nothing is known


def test_a_number_that_does_not_exist_is_none():
    assert estimate(math.nan, SOME, 300, 10, TEN) == Estimate(None, note="no interval")


def test_all_files_read_is_exact():
    found = estimate(50.0, SOME, 3, 1, Sample(100, 100, 10.0, 10.0))
    assert (found.low, found.high, found.error) == (50.0, 50.0, 0.0)


def test_files_that_agree_may_still_have_missed_something():
    found = estimate(200.0, Changes(0.0, 0.0, 0.0), 1000, 10, TEN)
    assert found.error == pytest.approx(0.0027, abs=1e-4)
    blocks = Sample(10, 100, 1000.0, 10_000.0, "blocks")
    assert (estimate(200.0, Changes(0.0, 0.0, 0.0), 1000, 10, blocks).error or 0) > 0.2
    assert estimate(0.0, Changes(0.0, 0.0, 0.0), 1000, 10, TEN).note == "all zero"


@given(
    files=st.integers(min_value=5, max_value=90),
    error=st.floats(min_value=1e-4, max_value=1.0),
    wanted=st.floats(min_value=1e-5, max_value=0.5),
)
def test_after_as_many_files_as_are_forecast_the_error_is_as_wanted(
    files: int, error: float, wanted: float
):
    def width(count: int) -> float:
        """Half the interval if files differ as much as they do now."""
        sample = Sample(count, 100, float(count), 100.0)
        changes = Changes(0.0, 1 / (count - 1), 0.0)
        return half_width(changes, sample, 0.95)

    found = files_for(error, Sample(files, 100, float(files), 100.0), wanted)
    assert files <= found <= 100
    if error > wanted:
        assert error * width(found) / width(files) <= wanted * (1 + 1e-9)
        assert found == files or error * width(found - 1) / width(files) > wanted * (1 - 1e-9)


def test_more_rows_may_hide_in_blocks_than_among_shuffled_rows():
    shuffled, blocks = (Sample(10, 100, 1e4, 1e5, kind) for kind in ("shuffled", "blocks"))
    assert rows_hidden(shuffled) == pytest.approx(27, abs=1)
    assert rows_hidden(blocks) == pytest.approx(27_000, rel=0.01)
    assert rows_hidden(Sample(100, 100, 1e5, 1e5)) == 0


# ---------------------------------------------------------------------- quantiles


def _told(values: list[float], share: float) -> FileQuantiles:
    """What a file tells, as DuckDB's quantile_disc does."""
    ordered = sorted(values)
    places = [max(math.ceil(s * len(ordered) - 1e-9), 1) - 1 for s in shares_around(share)]
    return FileQuantiles(len(ordered), [ordered[place] for place in places])


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_quantile_of_all_files_is_that_of_all_rows(share: float):
    rng = Random(7)
    files = [[rng.lognormvariate(0, 1) for _ in range(300 + 20 * i)] for i in range(12)]
    found = quantile_estimate(share, [_told(f, share) for f in files], Sample(12, 12, 1.0, 1.0))
    ordered = sorted(value for file in files for value in file)
    true = ordered[int(share * len(ordered))]
    assert found.value == pytest.approx(true, rel=0.02)
    assert found.low == found.high == found.value


def test_a_quantile_of_whole_numbers_is_one_of_them():
    rng = Random(3)
    files = [[float(rng.randrange(5)) for _ in range(200)] for _ in range(8)]
    found = quantile_estimate(0.5, [_told(f, 0.5) for f in files], Sample(8, 100, 8.0, 100.0))
    assert (found.low, found.value, found.high) == (2.0, 2.0, 2.0)


def test_quantiles_of_few_rows_or_files_have_no_interval():
    two = [_told([1.0, 2.0, 3.0], 0.5), _told([2.0, 3.0, 4.0], 0.5)]
    assert quantile_estimate(0.5, two, TEN).note == "few rows"
    large = [_told([float(i) for i in range(100)], 0.5)] * 3
    assert quantile_estimate(0.5, large, TEN).note == "few files"
    assert quantile_estimate(0.5, [], TEN).value is None

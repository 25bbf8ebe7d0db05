"""When sharing a scan pays, and what is learnt of its costs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.core.errors import QueryardError
from queryard.estimate.sharing import (
    PRIORS,
    FurtherRiders,
    Prices,
    SharingCosts,
    saving_s,
    sharing_pays,
)

# The experiment behind the priors: lineitem of TPC-H at scale 1 as CSV, ten aggregations that read
# 11 columns together, 3 each; processor seconds of one thread.
SIZE, ROWS = 773e6, 6_001_215
COLUMNS = [f"c{number}" for number in range(11)]

SECONDS = st.floats(0.001, 100.0)


def test_the_priors_give_the_costs_that_were_measured():
    costs = SharingCosts.of("csv")
    assert costs.scan_s(SIZE, ROWS, COLUMNS[:3]) == pytest.approx(3.3, rel=0.1)
    assert costs.scan_s(SIZE, ROWS, COLUMNS) == pytest.approx(5.1, rel=0.1)
    assert costs.cut_s(SIZE) == pytest.approx(0.6, rel=0.1)
    assert costs.make_s(SIZE, ROWS, COLUMNS) == pytest.approx(5.0, rel=0.1)
    assert costs.ride_s(ROWS, 23) == pytest.approx(0.2, rel=0.1)
    odd = SharingCosts.of("odd csv")  # parsed by DuckDB
    assert odd.make_s(SIZE, ROWS, COLUMNS) == pytest.approx(8.1, rel=0.1)


@pytest.mark.parametrize(
    ("kind", "size", "riders"),
    [
        ("csv", SIZE, 2),
        ("csv.gz", SIZE, 2),
        ("odd csv", SIZE, 3),
        ("json", 3 * SIZE, 4),
        ("json.gz", 3 * SIZE, 3),
    ],
)
def test_text_is_shared_from_a_few_riders_on(kind, size, riders):
    costs = SharingCosts.of(kind)

    def pays(count):
        scan, ride = costs.scan_s(size, ROWS, COLUMNS[:3]), costs.ride_s(ROWS, 1)
        return sharing_pays([scan] * count, costs.make_s(size, ROWS, COLUMNS), [ride] * count)

    assert not pays(1)
    assert pays(riders)


def test_narrow_parquet_is_never_shared():
    costs = SharingCosts.of("parquet")
    for count in (2, 20, 200):
        scan, ride = costs.scan_s(SIZE, ROWS, ["a"]), costs.ride_s(ROWS, 8)
        assert not sharing_pays([scan] * count, costs.make_s(SIZE, ROWS, ["a"]), [ride] * count)


@given(st.lists(SECONDS, min_size=1, max_size=8), SECONDS, st.floats(0.0, 1.0), SECONDS)
def test_another_rider_never_makes_sharing_worse_if_riding_is_cheaper(scans, make, part, further):
    rides = [scan * part for scan in scans]
    saved = saving_s(scans, make, rides)
    assert saving_s([*scans, scans[0]], make, [*rides, rides[0]]) >= saved
    assert saving_s(scans, make, rides, further) >= saved


def test_nothing_is_saved_without_riders():
    assert not sharing_pays([], 0.0, [])


def test_scans_and_rides_come_in_pairs():
    with pytest.raises(QueryardError, match="2 scans and 1 rides"):
        sharing_pays([1.0, 2.0], 1.0, [0.1])


@given(st.floats(0.1, 10.0), st.floats(0.1, 10.0))
def test_what_is_seen_often_is_believed(make_factor, ride_factor):
    costs, prior = SharingCosts.of("csv"), SharingCosts.of("csv")
    make, ride = prior.make_s(SIZE, ROWS, COLUMNS), prior.ride_s(ROWS, 4)
    for _ in range(60):
        costs.saw_make(SIZE, ROWS, COLUMNS, make * make_factor)
        costs.saw_ride(ROWS, 4, ride * ride_factor)
    assert costs.make_s(SIZE, ROWS, COLUMNS) == pytest.approx(make * make_factor, rel=0.1)
    assert costs.ride_s(ROWS, 4) == pytest.approx(ride * ride_factor, rel=0.1)


def test_a_column_that_takes_long_is_told_from_the_others():
    costs = SharingCosts(Prices(3.4e-9, 38e-9, 21e-9))
    truth = {"short": 1.0, "long": 6.0}

    def taken(columns):
        value = (costs.prices.value_s + costs.prices.copy_s) * ROWS
        return costs.prices.byte_s * SIZE + value * sum(truth[name] for name in columns)

    for _ in range(40):
        for columns in (["short"], ["long"], ["short", "long"]):
            costs.saw_make(SIZE, ROWS, columns, taken(columns))
    for columns in (["short"], ["long"], ["short", "long"]):
        assert costs.make_s(SIZE, ROWS, columns) == pytest.approx(taken(columns), rel=0.35)
    assert costs.scan_s(SIZE, ROWS, ["long"]) > costs.scan_s(SIZE, ROWS, ["short"])


def test_a_query_that_runs_by_itself_teaches_what_a_scan_takes():
    costs = SharingCosts.of("csv")
    usual = costs.scan_s(SIZE, ROWS, ["a"])
    for _ in range(40):
        costs.saw_scan(SIZE, ROWS, ["a"], 3 * usual)
    assert costs.scan_s(SIZE, ROWS, ["a"]) == pytest.approx(3 * usual, rel=0.1)
    # No segment was made yet: on a slow machine that is slow, too.
    prior = SharingCosts.of("csv").make_s(SIZE, ROWS, ["a"])
    assert costs.make_s(SIZE, ROWS, ["a"]) == pytest.approx(3 * prior, rel=0.3)
    for _ in range(40):
        costs.saw_make(SIZE, ROWS, ["a"], prior)
        costs.saw_scan(SIZE, ROWS, ["a"], 3 * usual)
    assert costs.make_s(SIZE, ROWS, ["a"]) == pytest.approx(prior, rel=0.2)
    assert costs.scan_s(SIZE, ROWS, ["a"]) == pytest.approx(3 * usual, rel=0.2)


def test_a_query_that_does_much_more_than_its_scan_is_half_believed():
    costs = SharingCosts.of("csv")
    usual = costs.scan_s(SIZE, ROWS, ["a"])
    costs.saw_scan(SIZE, ROWS, ["a"], 1000 * usual)
    assert costs.scan_s(SIZE, ROWS, ["a"]) < 2 * usual


def test_rows_are_those_that_were_counted():
    costs = SharingCosts.of("csv")
    assert costs.rows_in(1e6) == 1e4
    costs.saw_make(8e6, 4e5, ["a"], 1.0)
    assert costs.rows_in(1e6) == pytest.approx(5e4)


@pytest.mark.parametrize(
    "state",
    [None, {}, {"prices": [1.0]}, "text"],
)
def test_what_was_learnt_at_other_prices_is_ignored(state):
    costs = SharingCosts.of("json")
    costs.take_state(state)
    assert costs == SharingCosts.of("json")
    other = SharingCosts.of("csv")
    other.saw_make(1e6, 1e4, ["a"], 1.0)
    costs.take_state(other.to_state())
    assert costs == SharingCosts.of("json")


def test_what_is_no_pace_is_ignored():
    costs = SharingCosts.of("csv")
    state = costs.to_state() | {
        "make": [1e9, 3],
        "scan": "fast",
        "ride": [0.5],
        "columns": {"a": None},
        "bytes": -1,
    }
    costs.take_state(state)
    assert costs.scan_s(SIZE, ROWS, ["a"]) == SharingCosts.of("csv").scan_s(SIZE, ROWS, ["a"])
    assert costs.makes == costs.scans == costs.rides == 0


def test_what_took_no_time_teaches_nothing():
    costs = SharingCosts.of("csv")
    costs.saw_make(SIZE, ROWS, COLUMNS, 0.0)
    costs.saw_ride(ROWS, 1, 0.0)
    assert (costs.makes, costs.rides) == (0, 0)


@given(st.lists(st.integers(0, 20), max_size=30))
def test_the_expected_riders_lie_between_the_prior_and_what_was_seen(passes):
    riders = FurtherRiders()
    for joined in passes:
        riders.saw_pass(joined)
    assert min([0.5, *passes]) <= riders.expected <= max([0.5, *passes])


def test_unknown_kinds_are_named():
    with pytest.raises(QueryardError, match="xml"):
        SharingCosts.of("xml")
    with pytest.raises(QueryardError, match="-1"):
        FurtherRiders().saw_pass(-1)
    kinds = {"csv", "csv.gz", "odd csv", "odd csv.gz", "json", "json.gz", "parquet"}
    assert set(PRIORS) == kinds

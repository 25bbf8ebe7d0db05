"""Curves of progress, the time of batches, and how far a query gets (ReLAQS §4.4 and §4.5)."""

from __future__ import annotations

import doctest
import math
from itertools import pairwise
from random import Random

import pytest

from queryard.estimate import progress
from queryard.estimate.progress import BatchTime, Curve, OnlineForecast, fit_batch_time, fit_curves


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize(("a", "b"), [(0.25, 0.0), (0.1, 0.6), (0.5, 0.5), (1.0, 0.0)])
def test_a_curve_is_recovered_from_its_points(power: int, a: float, b: float):
    points = [(batch, Curve(power, a, b)(batch)) for batch in range(2, 12)]
    best, other = fit_curves(points)
    assert (best.power, other.power) == (power, 3 - power)
    assert (best.a, best.b) == pytest.approx((a, b), abs=1e-6)
    assert best.residual < 1e-6 < other.residual


def test_the_published_curve_by_hand():
    # P = 1, 4/9, 1/4 at batches 2, 3, 4 is 4 / i².
    best, _ = fit_curves([(2, 1.0), (3, 4 / 9), (4, 0.25)])
    assert (best.power, best.a, best.b) == pytest.approx((2, 0.25, 0.0))
    assert best(8) == pytest.approx(1 / 16)


def test_one_point_is_enough_and_the_published_curve_is_then_preferred():
    best, other = fit_curves([(1, 1.0)])
    assert (best, other) == (Curve(2, 1.0, 0.0), Curve(1, 1.0, 0.0))
    assert fit_curves([(2, 1.0)])[0] == Curve(2, 0.25, 0.0)


@pytest.mark.parametrize(
    "points",
    [
        [(2, 0.0), (3, 0.0)],
        [(2, 0.5), (3, 1.0), (4, 0.9)],
        [(2, 1.0), (3, 1.0), (4, 1.0)],
        [(2, 1.0), (3, 0.0), (4, 0.3), (5, 0.0)],
        [(2, 1e-9), (3, 1.0)],
    ],
)
def test_whatever_was_seen_a_curve_falls(points: list[tuple[int, float]]):
    for curve in fit_curves(points):
        values = [curve(batch) for batch in (5, 6, 10, 100)]
        assert all(math.isfinite(value) for value in values)
        assert values == sorted(values, reverse=True)
        assert values[0] > values[-1] >= 0


def test_noisy_batches_are_better_met_by_the_slower_curve():
    """Of real independent batches |ΔX| falls as 1 / i: E|ΔX| = sqrt(2 / (π i (i - 1))) σ."""
    better = 0
    for seed in range(20):
        draw = Random(seed)
        total, answers = 0.0, []
        for batch in range(1, 41):
            total += draw.gauss(0.0, 1.0)
            answers.append(total / batch)
        changes = [abs(now - then) for then, now in pairwise(answers)]
        largest = max(changes)
        points = [(i, change / largest) for i, change in enumerate(changes, start=2)]
        curves = {curve.power: curve for curve in fit_curves(points)}
        expected = {i: math.sqrt(2 / (math.pi * i * (i - 1))) / largest for i in range(41, 46)}
        missed = {
            power: sum(abs(curve(i) - p) for i, p in expected.items())
            for power, curve in curves.items()
        }
        better += missed[1] < missed[2]
    assert better >= 15


def test_no_point_at_all_is_an_error():
    with pytest.raises(ValueError, match="at least one point"):
        fit_curves([])
    with pytest.raises(ValueError, match="at least one"):
        fit_batch_time([], nested=False)


def test_plain_batches_take_the_mean_and_nested_ones_grow():
    work = [(1, 3.0), (2, 5.0), (3, 7.0)]
    assert fit_batch_time(work, nested=True) == BatchTime(2.0, 1.0)
    assert fit_batch_time(work, nested=False) == BatchTime(0.0, 5.0)
    # Never less work than none.
    assert fit_batch_time([(1, 9.0), (2, 5.0)], nested=True) == BatchTime(0.0, 7.0)
    assert fit_batch_time([(1, 1.0), (3, 9.0)], nested=True) == BatchTime(2.8, 0.0)


def test_wall_time_is_divided_by_the_slots_but_for_the_overhead():
    # Printed, A·(i·S/N) + B, a plain query would not profit from slots at all.
    plain = BatchTime(0.0, 8.0, 1.0)
    assert [plain.wall_s(1, slots) for slots in (1, 2, 4)] == [9.0, 5.0, 3.0]
    nested = BatchTime(2.0, 4.0, 1.0)
    assert [nested.wall_s(batch, 2) for batch in (1, 2, 10)] == [4.0, 5.0, 13.0]
    # Half a slot is one slot for half of the time.
    assert plain.wall_s(1, 0.5) == 18.0


@pytest.mark.parametrize("slots", [0.4, 1, 3, 16])
@pytest.mark.parametrize("time", [BatchTime(0.3, 2.0, 0.1), BatchTime(0.0, 2.0), BatchTime(1, 0)])
@pytest.mark.parametrize("done", [0.0, 1.0, 2.3])
@pytest.mark.parametrize("seconds", [0.0, 0.1, 5.0, 40.0])
def test_the_batch_reached_is_that_of_going_batch_by_batch(
    slots: float, time: BatchTime, done: float, seconds: float
):
    at, left = done, seconds
    while True:
        batch = math.floor(at) + 1
        need = (batch - at) * time.wall_s(batch, slots)
        if need > left:
            at += left / time.wall_s(batch, slots)
            break
        at, left = float(batch), left - need
    assert time.reached(done, slots, seconds) == pytest.approx(at, abs=1e-9)


def test_without_slots_nothing_is_reached():
    assert BatchTime(0.0, 2.0).reached(3.0, 0, 100.0) == 3.0


def test_the_forecast_ends_with_the_last_batch():
    forecast = OnlineForecast(Curve(2, 1.0, 0.0), BatchTime(0.0, 1.0), done=2.0, batches=4)
    assert forecast.error_at(1, 1.0) == pytest.approx(1 / 9)
    assert forecast.error_at(1, 2.0) == forecast.error_at(8, 100.0) == pytest.approx(1 / 16)


def test_documented_examples():
    assert doctest.testmod(progress).failed == 0

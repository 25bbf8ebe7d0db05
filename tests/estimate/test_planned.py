"""Work from plans: prices, factors that are learnt, intervals, memory, useful slots."""

from __future__ import annotations

import doctest
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.estimate import factors as factors_module
from queryard.estimate import prices
from queryard.estimate.factors import Factors
from queryard.estimate.planned import planned, predicted
from queryard.estimate.prices import (
    LONG_S,
    PARTS,
    PRICES,
    REFERENCE,
    Features,
    OperatorFeatures,
    Rates,
    bounded,
    by_part,
    doubt_of,
)

amounts = st.dictionaries(st.sampled_from(sorted(PRICES)), st.floats(0, 1e12), max_size=8)
shares = st.dictionaries(st.sampled_from(PARTS), st.floats(0.01, 10.0), min_size=1)


def work_of(found: Features, rates: Rates = REFERENCE) -> float:
    return bounded(sum(by_part(found, rates).values()))


def test_the_examples_in_the_docstrings():
    for module in (prices, factors_module):
        assert doctest.testmod(module).failed == 0


@given(amounts, st.sampled_from(sorted(PRICES)), st.floats(0, 1e9))
def test_more_to_do_never_takes_less(found, name, more):
    grown = {**found, name: found.get(name, 0.0) + more}
    assert work_of(Features(grown)) >= work_of(Features(found))


@given(amounts, st.floats(1.0, 50.0))
def test_a_slower_machine_takes_longer_and_one_slower_in_all_in_proportion(found, factor):
    usual = work_of(Features(found))
    slow = work_of(Features(found), Rates(factor, factor, factor))
    assert slow >= usual
    if slow <= LONG_S:  # beyond, only the order is kept
        assert slow == pytest.approx(factor * usual)


@given(st.floats(1e10, 1e300), st.floats(1.01, 1e6))
def test_however_many_rows_a_plan_gives_the_order_stays_and_numbers_are_finite(rows, times):
    less, more = (work_of(Features({"made_rows": n})) for n in (rows, rows * min(times, 1e8)))
    assert less < more < 1e7


@given(amounts)
def test_parts_are_the_whole(found):
    features = Features(found)
    total = sum(by_part(features).values())
    assert total <= LONG_S * 1.0001 or work_of(features) > LONG_S
    if total <= LONG_S:
        assert work_of(features) == pytest.approx(total)


@given(shares, st.lists(st.tuples(shares, st.floats(1e-3, 1e3)), max_size=30))
def test_whatever_is_learnt_predictions_are_positive_and_bounded(asked, seen):
    learnt = Factors(PARTS)
    for priced, work_s in seen:
        learnt.learn(priced, work_s)
    work_s = learnt.work(asked)
    assert 0.09 * sum(asked.values()) <= work_s <= 10.1 * sum(asked.values())
    assert learnt.variance(asked) >= 0


def test_a_kind_of_work_that_is_dearer_here_is_learnt_apart_from_others():
    learnt = Factors(PARTS)
    for _ in range(40):
        learnt.learn({"read": 1.0, "join": 1.0}, 4.0)
        learnt.learn({"read": 1.0}, 1.0)
    assert learnt.work({"join": 1.0}) == pytest.approx(3.0, rel=0.15)
    assert learnt.work({"read": 1.0}) == pytest.approx(1.0, rel=0.15)
    assert learnt.variance({"read": 1.0}) < Factors(PARTS).variance({"read": 1.0})


def test_one_odd_query_moves_little_and_one_of_little_weight_less():
    once, rarely = Factors(PARTS), Factors(PARTS)
    once.learn({"read": 1.0}, 1_000.0)
    rarely.learn({"read": 1.0}, 1_000.0, weight=0.1)
    assert 1.0 < rarely.work({"read": 1.0}) < once.work({"read": 1.0}) < 3.0


def test_rows_that_are_guessed_widen_the_interval():
    def plan(doubt: float) -> Features:
        operator = OperatorFeatures({"scan_values": 1e8}, 1e6, 8e6, doubt)
        return Features(operator.amounts, operators=(operator,))

    sure, guessed = (
        predicted(planned([plan(doubt)], REFERENCE), Factors(PARTS)) for doubt in (0.0, 2.0)
    )
    assert doubt_of(plan(2.0)) == pytest.approx(2.0)
    assert sure.work_s == guessed.work_s
    assert sure.spread < guessed.spread
    low, high = guessed.interval()
    assert low < sure.interval()[0] < sure.work_s < sure.interval()[1] < high
    assert math.isclose(low * high, guessed.work_s**2)


def test_operators_over_few_row_groups_are_serial_and_more_memory_is_held_by_larger_ones():
    def plan(lanes: float, held: float) -> Features:
        operator = OperatorFeatures({"scan_values": 1e9}, 1e6, 8e6, 0.0, held, lanes)
        return Features(operator.amounts, operators=(operator,))

    one, many = (planned([plan(lanes, 1e8)], REFERENCE) for lanes in (1.0, 64.0))
    assert one.speedup.serial > 0.9
    assert many.speedup.serial < 0.1
    assert many.speedup.most == pytest.approx(64.0)
    assert planned([plan(64.0, 1e9)], REFERENCE).memory_bytes > many.memory_bytes

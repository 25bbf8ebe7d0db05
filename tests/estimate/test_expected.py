"""Intervals of what is expected: laws that hold for every plan."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from queryard.estimate.expected import (
    Expected,
    around,
    expected_memory,
    expected_operators,
    expected_work,
)
from queryard.estimate.factors import Factors
from queryard.estimate.planned import planned, predicted
from queryard.estimate.prices import PARTS, REFERENCE, Features, OperatorFeatures
from queryard.estimate.work import SAFETY, Figure, Prediction, from_past

OPERATORS = st.lists(
    st.builds(
        OperatorFeatures,
        amounts=st.dictionaries(
            st.sampled_from(["scan_values", "probe_misses", "groups", "sorted_rows"]),
            st.floats(0, 1e7),
        ),
        rows=st.floats(1, 1e9),
        bytes=st.floats(1, 1e12),
        doubt=st.floats(0, 3),
        held_bytes=st.floats(0, 1e9),
    ),
    min_size=1,
    max_size=6,
)


def plan_of(operators: list[OperatorFeatures]) -> Features:
    sums: dict[str, float] = {}
    for operator in operators:
        for name, amount in operator.amounts.items():
            sums[name] = sums.get(name, 0.0) + amount
    return Features(sums, (), operators[0].rows, tuple(operators))


@given(st.floats(0, 1e12), st.floats(0, 50), st.floats(0, 50))
def test_more_doubt_is_a_wider_interval(value: float, doubt: float, more: float) -> None:
    one, other = around(value, doubt), around(value, doubt + more)
    assert other.low <= one.low <= one.value <= one.high <= other.high
    assert math.isfinite(other.high)


@given(OPERATORS, st.floats(0.01, 100.0))
def test_operators_share_the_work_of_their_query(
    operators: list[OperatorFeatures], work_s: float
) -> None:
    found = expected_operators(plan_of(operators), REFERENCE, Factors(PARTS), work_s)
    assert len(found) == len(operators)
    assert sum(one.seconds.value for one in found) < work_s * (1 + 1e-9)
    for one, operator in zip(found, operators, strict=True):
        assert one.rows.value == operator.rows
        for figure in one:
            assert figure.low <= figure.value <= figure.high


@given(OPERATORS)
def test_a_query_needs_the_memory_of_all_its_operators(operators: list[OperatorFeatures]) -> None:
    features = plan_of(operators)
    prediction = predicted(planned([features], REFERENCE), Factors(PARTS))
    memory = expected_memory(prediction, [features])
    assert memory is not None
    assert math.ceil(memory.value) == prediction.memory_bytes
    assert expected_work(prediction).holds(prediction.work_s)
    assert prediction.part in PARTS


def test_the_memory_of_a_template_is_what_was_seen() -> None:
    prediction = from_past([Figure(1.0, 1_000), Figure(1.1, 1_300)])
    found = expected_memory(prediction, ())
    assert found is not None
    assert round(found.value) == 1_300
    assert found.high >= 1_300 * SAFETY
    assert expected_memory(Prediction(1.0, None, "bytes", 2.0), ()) is None


def test_how_far_off_something_was() -> None:
    expected = Expected(100.0, 50.0, 200.0)
    assert (expected.off_by(400.0), expected.off_by(25.0)) == (4.0, 4.0)
    assert expected.holds(60.0)
    assert not expected.holds(300.0)
    assert expected.times(2.0) == Expected(200.0, 100.0, 400.0)

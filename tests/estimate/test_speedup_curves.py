"""The speed-up curve of a query, from its work and from slots that idled."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from queryard.core.speedup import Speedup
from queryard.estimate.widths import LOOKS, Idling, corrected, expected_speedup, remembered

works = st.floats(0, 1e6)


@given(works, works)
def test_longer_queries_are_expected_to_have_a_smaller_serial_share(one: float, other: float):
    short, long = sorted((one, other))
    assert 0 < expected_speedup(long).serial <= expected_speedup(short).serial <= 1


@given(st.floats(0.0, 0.9), st.integers(2, 64))
def test_many_looks_find_the_curve_that_made_them(serial: float, slots: int):
    true = Speedup(serial)
    # A share of the time is serial: one slot works, the others sleep.
    share = serial * true.speed(slots)
    looks = 100_000.0
    seen = Idling(looks, looks * (slots - 1), looks * share * (slots - 1))
    assert abs(corrected(Speedup(0.02), seen).serial - serial) < 1e-3


def test_no_look_changes_nothing():
    assert corrected(Speedup(0.1, 8.0), Idling()) == Speedup(0.1, 8.0)


def test_a_template_that_changes_is_believed_in_time():
    past = Idling()
    for _ in range(200):
        past = remembered(past, Idling(10, 10, 10))
    for _ in range(200):
        past = remembered(past, Idling(10, 10, 0))
    assert past.looks <= LOOKS + 10
    assert corrected(Speedup(0.1), past).serial < 0.05

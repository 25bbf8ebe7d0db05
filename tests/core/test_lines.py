"""Lines: the largest first at any time, whatever was put, dropped and looked at before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from queryard.core.lines import Line, Lines

SLOPES = st.sampled_from([0.0, 0.1, 0.5, 1.0, 1.0 + 2**-52, 3.0, 1000.0])
PUT = st.tuples(st.integers(0, 12), SLOPES, st.floats(-10, 100, allow_nan=False))
STEP = st.one_of(PUT, st.integers(0, 12), st.floats(0, 50, allow_nan=False))


@given(st.lists(STEP, max_size=60), st.booleans())
def test_the_order_is_that_of_the_values_now(steps: list[object], looks: bool):
    lines, now = Lines(), 0.0
    for step in steps:
        if isinstance(step, tuple):
            lines.put(step[0], Line(*step[1:]))
        elif isinstance(step, float):
            now += step
        elif step in lines.lines:
            lines.drop(step)
        assert lines.is_sound
        if looks:
            check(lines.fork(), now)
            list(lines.turns(now))
    check(lines, now)


def check(lines: Lines, now: float) -> None:
    found = list(lines.turns(now))
    assert {uid for _, uid in found} == lines.lines.keys()
    values = [-value for value, _ in found]
    assert values == [lines.lines[uid].at(now) for _, uid in found]
    assert values == sorted(values, reverse=True)
    assert lines.first(now) == (values[0] if values else float("-inf"))


@given(st.lists(st.tuples(SLOPES, st.floats(-10, 100)), min_size=1, max_size=20), st.data())
def test_earlier_looks_make_no_difference(made: list[tuple[float, float]], data: st.DataObject):
    looked, fresh = Lines(), Lines()
    for uid, line in enumerate(made):
        looked.put(uid, Line(*line))
        fresh.put(uid, Line(*line))
    times = data.draw(st.lists(st.floats(0, 1000), min_size=1, max_size=10))
    for now in sorted(times):
        found = list(looked.turns(now))
    assert found == list(fresh.turns(now))


def test_a_line_that_crosses_is_compared_again_and_others_are_not(monkeypatch):
    settled: list[int] = []
    settle = Lines._settle
    monkeypatch.setattr(
        Lines, "_settle", lambda self, node, now: settled.append(node) or settle(self, node, now)
    )
    lines = Lines()
    for uid in range(64):
        lines.put(uid, Line(1.0, float(uid)))
    lines.put(63, Line(2.0, 63.0))  # as large as the first at 126
    assert next(lines.turns(100.0))[1] == 0
    settled.clear()
    assert next(lines.turns(120.0))[1] == 0
    assert len(settled) <= 6, "one path, as line 63 has passed its neighbours"
    settled.clear()
    assert next(lines.turns(127.0))[1] == 63
    assert next(lines.turns(1e6))[1] == 63
    assert len(settled) <= 6

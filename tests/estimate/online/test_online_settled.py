"""Which rows are surely among the first, compared with trying all that may be."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from queryard.estimate.online import Estimate, Ranked, all_hold, holds, in_top

SPANS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 3), st.sampled_from([True, None, False])),
    min_size=1,
    max_size=5,
)


@given(spans=SPANS, limit=st.integers(1, 4), offset=st.integers(0, 2))
def test_a_settled_row_is_where_it_is_said_to_be_whatever_the_numbers_are(
    spans: list[tuple[int, int, bool | None]], limit: int, offset: int
):
    # Ends of all intervals differ, so that there are no ties.
    rows = [
        Ranked(Estimate(low + 0.0, low + i / 100, low + width + 0.5 + i / 100), kept)
        for i, (low, width, kept) in enumerate(spans)
    ]
    settled = in_top(rows, limit, offset)
    choices = []
    for row in rows:
        ends = [row.number.low, row.number.high]
        kept = [True, False] if row.kept is None else [row.kept]
        choices.append(list(product(ends, kept)))
    for world in product(*choices):
        there = [i for i, (_, kept) in enumerate(world) if kept]
        there.sort(key=lambda i: -(world[i][0] or 0.0))
        shown = set(there[offset : offset + limit])
        for i, sure in enumerate(settled):
            assert sure is None or sure == (i in shown)


def test_rows_without_an_interval_may_be_anywhere():
    sure, unknown = Ranked(Estimate(9.0, 8.0, 10.0)), Ranked(Estimate(1.0, note="few rows"))
    assert in_top([sure, unknown], 1) == [None, None]
    assert in_top([sure, unknown], 2) == [True, True]


def test_ascending_order_is_the_other_way_round():
    rows = [Ranked(Estimate(float(n), n - 0.4, n + 0.4)) for n in range(4)]
    assert in_top(rows, 2, descending=False) == [True, True, False, False]
    assert in_top(rows, None, 1, descending=False) == [False, True, True, True]


def test_conditions_hold_if_the_whole_interval_is_on_one_side():
    assert holds(Estimate(5.0, 1.0, 9.0), "above") is True
    assert holds(Estimate(5.0, 1.0, 9.0), "below") is False
    assert holds(Estimate(5.0, -1.0, 9.0), "below") is None
    assert holds(Estimate(5.0, note="few rows"), "above") is None
    assert all_hold([True, None, False]) is False

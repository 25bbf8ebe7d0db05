"""The figure of predictions: where its dots and lines lie."""

from __future__ import annotations

import pytest

from queryard.core.errors import QueryardError
from queryard.figures.accuracy import (
    PredictedQuery,
    against_panel,
    over_time_panel,
    save_accuracy_figure,
)
from queryard.figures.palette import PREDICTED_BY

QUERIES = [
    PredictedQuery(1.0, 1.0, "template"),
    PredictedQuery(2.0, 1.0, "plan"),
    PredictedQuery(0.5, 2.0, "plan"),
    PredictedQuery(3.0, 1.0, "oracle"),
]


def test_every_query_is_a_dot_in_the_colour_of_its_source() -> None:
    panel = against_panel(QUERIES)
    assert [dots.name for dots in panel.dots] == ["by template", "by plan", "by oracle"]
    plan = panel.dots[1]
    assert (plan.x, plan.y, plan.colour) == ((1.0, 2.0), (2.0, 0.5), PREDICTED_BY["plan"])
    assert panel.x.low < 0.5 < 3.0 < panel.x.high
    middle, over, under = panel.lines
    assert middle.x == middle.y
    assert [high / low for high, low in zip(over.y, under.y, strict=True)] == pytest.approx([4, 4])


def test_errors_in_the_order_of_queries() -> None:
    panel = over_time_panel(QUERIES)
    found = sorted((x, y) for dots in panel.dots for x, y in zip(dots.x, dots.y, strict=True))
    assert found == [(1.0, 1.0), (2.0, 2.0), (3.0, 4.0), (4.0, 3.0)]
    median, tail = panel.lines
    assert tail.y == (1.0, 2.0, 4.0, 4.0)
    assert all(low <= high for low, high in zip(median.y, tail.y, strict=True))


def test_nothing_to_draw() -> None:
    with pytest.raises(QueryardError, match="no prediction"):
        save_accuracy_figure("a.png", [])

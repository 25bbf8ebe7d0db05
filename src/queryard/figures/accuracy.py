"""A figure of predictions: predicted against actual work, and the error over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from queryard.core.errors import QueryardError

from .chart import save_chart
from .palette import FAINT, INK, PREDICTED_BY, WASTED
from .panels import Axis, Dots, Line, Panel

BAND = 2.0
WINDOW = 50
"""Of so many queries up to each, the median and the 90th percentile are drawn."""


class PredictedQuery(NamedTuple):
    """What was predicted of a query, from what, and what it took."""

    predicted_s: float
    actual_s: float
    by: str

    @property
    def factor(self) -> float:
        """The factor between the two, 1 at best."""
        return max(self.predicted_s / self.actual_s, self.actual_s / self.predicted_s)


def save_accuracy_figure(path: str, queries: Sequence[PredictedQuery], title: str = "") -> None:
    """Draw queries in the order they ended: .png, .svg or .pdf."""
    if not queries:
        raise QueryardError("there is no prediction to draw")
    save_chart(path, title or "Predictions", [against_panel(queries), over_time_panel(queries)])


def against_panel(queries: Sequence[PredictedQuery]) -> Panel:
    """Predicted against actual work, with the band of a factor of two."""
    values = [value for query in queries for value in (query.predicted_s, query.actual_s)]
    low, high = min(values) / 1.5, max(values) * 1.5
    dots = [
        Dots(
            f"by {kind}",
            tuple(query.actual_s for query in queries if query.by == kind),
            tuple(query.predicted_s for query in queries if query.by == kind),
            _colour(kind),
        )
        for kind in _kinds(queries)
    ]
    ends = (low, high)
    lines = (
        Line("as predicted", ends, ends, INK, weight=0.6, straight=True),
        Line(f"off by {BAND:g}", ends, _scaled(ends, BAND), FAINT, "dash", 0.8, True),
        Line("", ends, _scaled(ends, 1 / BAND), FAINT, "dash", 0.8, True),
    )
    return Panel(
        "Predicted against actual work",
        Axis("actual [core-seconds]", low, high, "log"),
        Axis("predicted [core-seconds]", low, high, "log"),
        lines=lines,
        dots=tuple(dots),
    )


def over_time_panel(queries: Sequence[PredictedQuery]) -> Panel:
    """The factor of error of each query, in the order they ended, and how that goes on."""
    factors = [query.factor for query in queries]
    places = tuple(float(place) for place in range(1, len(queries) + 1))
    windows = [sorted(factors[max(0, end - WINDOW) : end]) for end in range(1, len(factors) + 1)]
    medians = tuple(window[len(window) // 2] for window in windows)
    tails = tuple(window[math.ceil(0.9 * len(window)) - 1] for window in windows)
    top = max(factors) * 1.2
    return Panel(
        "Factor of error, query by query",
        Axis("queries, in the order they ended", 0.0, len(queries) + 1.0),
        Axis("factor", 1.0, max(top, BAND * 1.5), "log", _factor_ticks(top)),
        lines=(
            Line(f"median of the last {WINDOW}", places, medians, INK),
            Line(f"90th percentile of the last {WINDOW}", places, tails, INK, "dash"),
        ),
        dots=tuple(
            Dots(
                "",  # the panel beside it has the names
                tuple(place for place, q in zip(places, queries, strict=True) if q.by == kind),
                tuple(query.factor for query in queries if query.by == kind),
                _colour(kind),
            )
            for kind in _kinds(queries)
        ),
    )


def _kinds(queries: Sequence[PredictedQuery]) -> list[str]:
    """From what there are predictions, known ways first."""
    found = {query.by for query in queries}
    return [*(kind for kind in PREDICTED_BY if kind in found), *sorted(found - set(PREDICTED_BY))]


def _colour(kind: str) -> str:
    return PREDICTED_BY.get(kind, WASTED)


def _scaled(ends: tuple[float, ...], factor: float) -> tuple[float, ...]:
    return tuple(end * factor for end in ends)


def _factor_ticks(top: float) -> tuple[tuple[float, str], ...]:
    marks: Mapping[float, str] = {
        1.0: "1", 1.5: "1.5", 2.0: "2", 3.0: "3", 5.0: "5", 10.0: "10", 30.0: "30", 100.0: "100",
        1_000.0: "1,000", 10_000.0: "10,000", 100_000.0: "100,000",
    }  # fmt: skip
    return tuple((value, name) for value, name in marks.items() if value <= max(top, 3.0))

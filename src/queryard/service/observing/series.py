"""Figures over time as a document: of the last day from memory, of before from the history."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from ..own_cpu import PARTS
from .ring import Cell, gathered
from .sampling import FIGURES, GAUGES, Sampler

# How often the history notes what a session costs.
NOTED_S = 10.0
_PLACE = {name: place for place, name in enumerate(FIGURES)}


def cells_of(rows: Iterable[Mapping[str, Any]], since: float, step_s: float) -> list[Cell]:
    """Sums of the history (`Overviews.costs_by_step`) as cells; what it does not know is NaN."""
    return [
        Cell(
            since + row["step"] * step_s,
            row["seconds"],
            tuple(math.nan if row.get(name) is None else float(row[name]) for name in FIGURES),
        )
        for row in rows
    ]


class Stretch:
    """Some steps of time, of equal length."""

    def __init__(self, since: float, until: float, points: int, least_s: float = 1.0) -> None:
        """As many steps as wanted, unless they would be shorter than `least_s`.

        >>> stretch = Stretch(0.0, 100.0, 50, least_s=10.0)
        >>> stretch.step_s, stretch.steps, stretch.times()[:3]
        (10.0, 10, [0.0, 10.0, 20.0])
        """
        self.since = since
        self.step_s = max(least_s, (until - since) / points)
        self.steps = max(1, math.ceil((until - since) / self.step_s - 1e-9))

    def times(self) -> list[float]:
        """When each step begins."""
        return [round(self.since + step * self.step_s, 3) for step in range(self.steps)]


def planned(sampler: Sampler, since: float, until: float, points: int) -> Stretch:
    """Steps that are no shorter than what is known of the time."""
    _, cell_s = sampler.cells(since)
    if since < sampler.began_at:
        cell_s = max(cell_s, NOTED_S)
    return Stretch(since, until, points, cell_s)


def series_document(
    sampler: Sampler, stretch: Stretch, before: Iterable[Cell], shows_own: bool
) -> dict[str, Any]:
    """Means by step; `before` are cells of the time before the sampler began."""
    cells, _ = sampler.cells(stretch.since)
    found = gathered([*before, *cells], stretch.since, stretch.step_s, stretch.steps)

    def means(name: str, per: str = "", times: float = 1.0) -> list[float | None]:
        return [None if cell is None else _mean(cell, name, per, times) for cell in found]

    return {
        "at": stretch.times(),
        "step_s": round(stretch.step_s, 3),
        **{name: means(name) for name in GAUGES},
        "process_cpu": means("process_cpu"),
        "own_cpu": {part: means(part) for part in PARTS} if shows_own else {},
        "decide_ms": means("decide_s", per="decisions", times=1e3),
    }


def _mean(cell: Cell, name: str, per: str, times: float) -> float | None:
    """A figure per second, or per another figure; None if it is not known, or per nothing."""
    divisor = cell.sums[_PLACE[per]] if per else cell.seconds
    amount = cell.sums[_PLACE[name]]
    if not divisor or math.isnan(amount) or math.isnan(divisor):
        return None
    return float(f"{amount / divisor * times:.6g}")

"""What a figure shows, whichever library draws it: panels of bars, stacked areas, lines and dots.

The renderers (`html`, `image`) know nothing of runs; the makers of panels (`gantt`, `curves`)
know nothing of plotly or matplotlib.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from queryard.core.journal import Journal

Dash = Literal["solid", "dash", "dot", "dashdot"]
Scale = Literal["linear", "log"]


class FigureRun(NamedTuple):
    """A run to draw, by the name of its policy."""

    name: str
    journal: Journal


References = Mapping[str, Mapping[str, float]]
"""What to compare with: name -> query -> response in seconds."""


class Bar(NamedTuple):
    """A rectangle; `text` is shown when the reader points at it."""

    start: float
    end: float
    bottom: float
    top: float
    colour: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line that keeps each value until the next point, unless it is `straight` from one to the
    next; `weight` makes it thicker.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    colour: str
    dash: Dash = "solid"
    weight: float = 1.0
    straight: bool = False


@dataclass(frozen=True, slots=True)
class Dots:
    """Single points, of one kind."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    colour: str


@dataclass(frozen=True, slots=True)
class Area:
    """One layer of a stack; all layers of a panel have the same `x`."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    colour: str


class Key(NamedTuple):
    """An entry of a legend that explains colours."""

    name: str
    colour: str


@dataclass(frozen=True, slots=True)
class Axis:
    label: str
    low: float
    high: float
    scale: Scale = "linear"
    ticks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot. An axis with its `low` above its `high` runs downwards."""

    title: str
    x: Axis
    y: Axis
    bars: tuple[Bar, ...] = ()
    areas: tuple[Area, ...] = ()
    lines: tuple[Line, ...] = ()
    dots: tuple[Dots, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A figure: one wide panel, then for every run a Gantt chart beside its slots over time.

    The keys explain the colours of all Gantt charts.
    """

    title: str
    top: Panel
    rows: tuple[tuple[Panel, Panel], ...]
    keys: tuple[Key, ...]


def explained(sheet: Sheet) -> frozenset[str]:
    """Names that the keys explain; a second legend need not repeat them."""
    return frozenset(key.name for key in sheet.keys)

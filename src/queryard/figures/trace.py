"""A recorded workload in a figure: when queries came, how long things took, what was busy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from queryard.core.model import Kind
from queryard.metrics.series import StepSeries

from .curves import MOST_POINTS, averaged, share_panel
from .palette import SLOT_COLOURS, policy_colour
from .panels import Area, Axis, Key, Line, Panel, Sheet
from .save import draw_sheet
from .timescale import Timescale


@dataclass(frozen=True, slots=True)
class RecordedTimes:
    """What there is to draw of a trace; all in seconds.

    `busy` has (start, end) of tasks by kind, where they were written down; `spreads` what took how
    long, by name.
    """

    submits_s: Sequence[float]
    busy: Mapping[Kind, Sequence[tuple[float, float]]]
    spreads: Mapping[str, Sequence[float]]


def save_trace_figure(path: str, title: str, times: RecordedTimes) -> None:
    """Draw a trace: .html is a page, others are images."""
    draw_sheet(path, build_trace_sheet(title, times))


def build_trace_sheet(title: str, times: RecordedTimes) -> Sheet:
    ends_s = [end for spans in times.busy.values() for _, end in spans]
    time = Timescale.up_to([*times.submits_s, *ends_s])
    return Sheet(
        title=title,
        top=_submitted(times.submits_s, time),
        rows=((_busy(times, time), share_panel("How long things took", times.spreads)),),
        keys=tuple(Key(f"{kind}s", SLOT_COLOURS[kind]) for kind in times.busy),
    )


def _submitted(submits_s: Sequence[float], time: Timescale) -> Panel:
    """How many queries had been submitted by when."""
    ordered = sorted(submits_s)
    every = len(ordered) // MOST_POINTS + 1
    places = sorted({*range(0, len(ordered), every), len(ordered) - 1})
    line = Line(
        "queries",
        (0.0, *(time.scaled(ordered[place]) for place in places)),
        (0.0, *(float(place + 1) for place in places)),
        policy_colour(0),
    )
    y = Axis("queries submitted", 0.0, len(ordered) * 1.03)
    return Panel("Queries submitted", time.axis, y, lines=(line,))


def _busy(times: RecordedTimes, time: Timescale) -> Panel:
    """Tasks that ran at the same time, kinds stacked."""
    cell_s = time.end_s / MOST_POINTS
    grid_s = [place * cell_s for place in range(MOST_POINTS + 1)]
    areas = []
    heights = [0.0] * len(grid_s)
    for kind, spans in times.busy.items():
        changes = [(at, step) for low, high in spans for at, step in ((low, 1), (high, -1))]
        series = averaged(StepSeries.of_changes(changes), grid_s)
        values = tuple(series.at(t) for t in grid_s)
        heights = [a + b for a, b in zip(heights, values, strict=True)]
        areas.append(Area(kind, tuple(map(time.scaled, grid_s)), values, SLOT_COLOURS[kind]))
    return Panel(
        "Tasks that ran at the same time, as recorded",
        time.axis,
        Axis("slots", 0.0, max(*heights, 1.0) * 1.05),
        areas=tuple(areas),
        note="" if areas else "when tasks ran is not recorded",
    )

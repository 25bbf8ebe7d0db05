"""Response times as a cumulative share of the queries, and slots in use over time."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from queryard.metrics.response import mean
from queryard.metrics.rows import RunRows
from queryard.metrics.series import StepSeries
from queryard.metrics.utilisation import (
    SLOT_KINDS,
    SlotKind,
    mean_utilisation,
    slots_in_use,
    slots_present,
)

from .palette import FAINT, INK, SLOT_COLOURS, policy_colour, policy_colours
from .panels import Area, Axis, Dash, Line, Panel, References
from .timescale import Timescale, Unit, readable, rounded, unit_for

MOST_POINTS = 1000
# How much thicker a portfolio's line is.
HEAVY = 1.6
LOG_FROM = 50.0
_RESPONSE_TITLE = "Share of the queries answered within a time: a line further left is better"
_REFERENCE_TITLE = " (broken lines: ideal schedules)"
_KIND_NAMES = {"map": "map tasks", "reduce": "reduce tasks", "lease": "leased slots"}
REFERENCE_STYLES: tuple[tuple[str, Dash], ...] = ((INK, "dash"), (FAINT, "dot"), (INK, "dashdot"))


def response_panel(
    runs: Mapping[str, RunRows], references: References, portfolios: Collection[str] = ()
) -> Panel:
    """Which share of the queries had its result after how long, one line per policy.

    The share is of all submitted queries: a line that ends below 100 % belongs to a run in
    which some failed, were cancelled or did not finish.
    """
    policies = [
        (name, [s for s in (row.response_s for row in run.queries.values()) if s is not None])
        for name, run in runs.items()
    ]
    ideals = [(name, list(found.values())) for name, found in references.items()]
    every_s = [value for _, values in policies + ideals for value in values]
    axis, unit, least_s = _response_axis(every_s)
    colours = policy_colours(runs, portfolios)
    styles: list[tuple[str, Dash]] = [
        *((colours[name], "solid") for name in runs),
        *(REFERENCE_STYLES[place % len(REFERENCE_STYLES)] for place in range(len(ideals))),
    ]
    queries = [len(run.queries) for run in runs.values()] + [len(found) for _, found in ideals]
    lines = [
        _line(name, [max(value, least_s) for value in values], total, unit, colour, dash)
        for (name, values), total, (colour, dash) in zip(
            policies + ideals, queries, styles, strict=True
        )
    ]
    return Panel(
        title=_RESPONSE_TITLE + (_REFERENCE_TITLE if references else ""),
        x=axis,
        y=Axis("queries answered (%)", 0.0, 102.0),
        lines=tuple(
            replace(line, weight=HEAVY) if name in portfolios else line
            for line, (name, _) in zip(lines, policies + ideals, strict=True)
        ),
        note="" if every_s else "no query has finished",
    )


def _response_axis(values_s: Sequence[float]) -> tuple[Axis, Unit, float]:
    """The axis, its unit, and the least response it can show.

    Where responses differ much the axis is logarithmic, as the quick ones count as much as the
    slow ones; its unit then suits the middle.
    """
    most_s = max(values_s, default=0.0) or 1.0
    least_s = min((value for value in values_s if value > 0), default=most_s)
    if most_s / least_s <= LOG_FROM:
        unit = unit_for(most_s)
        return Axis(f"response time ({unit.name})", 0.0, most_s / unit.s * 1.02), unit, 0.0
    unit = unit_for(math.sqrt(most_s) * math.sqrt(least_s))
    label = f"response time ({unit.name}, logarithmic)"
    return Axis(label, least_s / unit.s / 1.1, most_s / unit.s * 1.1, "log"), unit, least_s


def _line(
    name: str, values_s: Sequence[float], queries: int, unit: Unit, colour: str, dash: Dash
) -> Line:
    """The cumulative share; of many values, as many as can be told apart, the last included."""
    ordered = sorted(values_s)
    if not ordered:
        return Line(f"{name} (no result)", (), (), colour, dash)
    every = len(ordered) // MOST_POINTS + 1
    places = sorted({*range(0, len(ordered), every), len(ordered) - 1})
    x = (ordered[0], *(ordered[place] for place in places))
    y = (0.0, *(100 * (place + 1) / queries for place in places))
    label = f"{name} (mean {rounded(mean(ordered) / unit.s)} {unit.name})"
    return Line(label, tuple(value / unit.s for value in x), y, colour, dash)


def share_panel(title: str, spreads: Mapping[str, Sequence[float]]) -> Panel:
    """Which share of each set of times lies below what, one line per set."""
    axis, unit, least_s = _response_axis([value for values in spreads.values() for value in values])
    lines = [
        _line(name, [max(value, least_s) for value in values], len(values), unit, colour, "solid")
        for (name, values), colour in zip(
            spreads.items(), map(policy_colour, range(len(spreads))), strict=True
        )
    ]
    x = replace(axis, label=axis.label.replace("response time", "time"))
    return Panel(title, x, Axis("share (%)", 0.0, 102.0), lines=tuple(lines))


def kinds_in_use(runs: Iterable[RunRows]) -> tuple[SlotKind, ...]:
    """The kinds of slots that any of the runs has used."""
    used: set[SlotKind] = set()
    for run in runs:
        used.update(launch.kind for launch in run.launches)
        used.update("lease" for _ in run.leases[:1])
    return tuple(kind for kind in SLOT_KINDS if kind in used)


def slots_panel(
    name: str, run: RunRows, kinds: Sequence[SlotKind], most_slots: float, time: Timescale
) -> Panel:
    """Slots in use, kinds stacked, below the number of slots present."""
    start_s = run.first_submit_s or 0.0
    end_s = start_s + time.end_s
    used = slots_in_use(run)
    present = slots_present(run)
    grid_s = sorted(
        {
            start_s,
            *(t for kind in kinds for t in used[kind].times_s if start_s < t < end_s),
            end_s,
        }
    )
    busy = mean_utilisation(run).all
    title = f"{name}: slots in use" + ("" if busy is None else f", {busy:.0%} on average")
    if len(grid_s) > MOST_POINTS:
        cell_s = time.end_s / MOST_POINTS
        grid_s = [start_s + place * cell_s for place in range(MOST_POINTS + 1)]
        used = {kind: averaged(series, grid_s) for kind, series in used.items()}
        title += f" (means of {readable(cell_s, 2)})"
    x = tuple(time.scaled(t - start_s) for t in grid_s)
    areas = tuple(
        Area(_KIND_NAMES[kind], x, tuple(used[kind].at(t) for t in grid_s), SLOT_COLOURS[kind])
        for kind in kinds
    )
    return Panel(
        title=title,
        x=time.axis,
        y=Axis("slots", 0.0, most_slots * 1.05 or 1.0),
        areas=areas,
        # After its own end a run has no cluster, though others may still be under way.
        lines=(_present(present, start_s, min(end_s, run.closed_s), time),),
        note="" if kinds else "nothing ran",
    )


def _present(present: StepSeries, start_s: float, end_s: float, time: Timescale) -> Line:
    times_s = [start_s, *(t for t in present.times_s if start_s < t < end_s), end_s]
    x = tuple(time.scaled(t - start_s) for t in times_s)
    return Line("slots present", x, tuple(present.at(t) for t in times_s), INK, "dash")


def averaged(series: StepSeries, grid_s: Sequence[float]) -> StepSeries:
    """The mean of the series from each point of the grid to the next."""
    spans = zip(grid_s, (*grid_s[1:], grid_s[-1]), strict=True)
    return StepSeries.of_points((low_s, series.mean(low_s, high_s)) for low_s, high_s in spans)

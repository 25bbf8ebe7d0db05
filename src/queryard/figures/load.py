"""Figures of loads: how long answers took, and for every policy who waited, ran and was late.

A load has no slots in its rows, but every query has: when it came, when it began, when its last row
was there. So its chart has a line for every query, by tenant in the order in which they came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from queryard.core.errors import QueryardError
from queryard.metrics import QueryRow, RunRows
from queryard.metrics.deadlines import deadlines
from queryard.metrics.series import StepSeries

from .curves import MOST_POINTS, response_panel
from .palette import DISTINCT
from .panels import Area, Axis, Bar, Key, Panel, References, Sheet
from .save import draw_sheet, renderer_of
from .timescale import Timescale

LATE = "#D62728"
FADED = 0.65
GAP = 0.05


def save_load_figure(
    path: str, runs: Mapping[str, RunRows], references: References | None = None, title: str = ""
) -> None:
    """Draw runs of a load by the names of their policies: .html is a page, others are images."""
    renderer_of(path)  # complains before anything is computed
    draw_sheet(path, build_load_sheet(runs, references or {}, title))


def build_load_sheet(runs: Mapping[str, RunRows], references: References, title: str = "") -> Sheet:
    """All panels, with the same colours and axes for every run."""
    if not runs:
        raise QueryardError("there is no run to draw; give at least one")
    rows = [row for run in runs.values() for row in run.queries.values()]
    tenants = sorted({row.query.tenant for row in rows})
    colours = {name: DISTINCT[i % len(DISTINCT)] for i, name in enumerate(tenants)}
    time = Timescale.up_to(run.makespan_s or 0.0 for run in runs.values())
    most = max((_most_under_way(run) for run in runs.values()), default=1.0)
    return Sheet(
        title=title or "A load under " + ", ".join(runs),
        top=response_panel(runs, references),
        rows=tuple(
            (_chart(name, run, colours, time), _under_way(name, run, colours, most, time))
            for name, run in runs.items()
        ),
        keys=_keys(colours, rows),
    )


def _keys(colours: Mapping[str, str], rows: Sequence[QueryRow]) -> tuple[Key, ...]:
    found = [Key(name, colour) for name, colour in colours.items()]
    if colours:
        found.append(Key("paler: waiting", faded(next(iter(colours.values())))))
    if any(row.query.deadline_s is not None for row in rows):
        found.append(Key("after its deadline", LATE))
    return tuple(found)


def _chart(name: str, run: RunRows, colours: Mapping[str, str], time: Timescale) -> Panel:
    """A line for every query: pale while it waits, then its tenant's colour, red once late."""
    start_s = run.first_submit_s or 0.0
    ordered = sorted(run.queries.values(), key=lambda row: (row.query.tenant, row.submit_s))
    bars: list[Bar] = []
    for place, row in enumerate(ordered):
        bars.extend(_bars(place, row, run.closed_s, colours[row.query.tenant], start_s, time))
    judged = deadlines(ordered, run.closed_s)
    title = f"{name}: every query"
    if judged.queries:
        title += f" ({judged.missed} of {judged.queries} deadlines missed)"
    return Panel(
        title=title,
        x=time.axis,
        y=_places([row.query.tenant for row in ordered]),
        bars=tuple(bars),
        note="" if bars else "nothing ran",
    )


def _places(tenants: Sequence[str]) -> Axis:
    """Tenants by name in the middle of their queries."""
    ticks, row = [], 0
    for tenant, members in groupby(tenants):
        count = len(list(members))
        ticks.append((row + count / 2, tenant))
        row += count
    return Axis("", low=row or 1, high=0, ticks=tuple(ticks) or ((0.5, ""),))


def _bars(
    place: int, row: QueryRow, closed_s: float, colour: str, start_s: float, time: Timescale
) -> list[Bar]:
    end_s = closed_s if row.end_s is None else row.end_s
    began_s = end_s if row.start_s is None else min(row.start_s, end_s)
    due_s = end_s if row.query.deadline_s is None else row.query.deadline_s
    spans = (
        (row.submit_s, min(began_s, due_s), faded(colour)),
        (began_s, min(end_s, due_s), colour),
        (max(row.submit_s, due_s), min(began_s, end_s), faded(LATE)),
        (max(began_s, due_s), end_s, LATE),
    )
    text = (
        f"{row.query.class_name or row.query.id} of {row.query.tenant}, {row.outcome}: "
        f"{row.submit_s - start_s:.4g} to {end_s - start_s:.4g} s"
    )
    return [
        Bar(
            time.scaled(low_s - start_s),
            time.scaled(high_s - start_s),
            place + GAP,
            place + 1 - GAP,
            shade,
            text,
        )
        for low_s, high_s, shade in spans
        if high_s > low_s
    ]


def _under_way(
    name: str, run: RunRows, colours: Mapping[str, str], most: float, time: Timescale
) -> Panel:
    """How many queries of each tenant wait or run, one on top of the other."""
    start_s = run.first_submit_s or 0.0
    series = {tenant: StepSeries.of_changes(_changes(run, tenant)) for tenant in colours}
    grid_s = sorted({start_s, *(t for found in series.values() for t in found.times_s)})
    every = len(grid_s) // MOST_POINTS + 1
    grid_s = [*grid_s[::every], start_s + time.end_s]
    x = tuple(time.scaled(t - start_s) for t in grid_s)
    areas = tuple(
        Area(tenant, x, tuple(found.at(t) for t in grid_s), colours[tenant])
        for tenant, found in series.items()
    )
    axis = Axis("queries", 0.0, most * 1.05)
    return Panel(f"{name}: queries under way", time.axis, axis, areas=areas)


def _changes(run: RunRows, tenant: str | None = None) -> list[tuple[float, int]]:
    found: list[tuple[float, int]] = []
    for row in run.queries.values():
        if tenant in (None, row.query.tenant):
            found.append((row.submit_s, 1))
            if row.end_s is not None:
                found.append((row.end_s, -1))
    return found


def _most_under_way(run: RunRows) -> float:
    return max(StepSeries.of_changes(_changes(run)).values, default=1.0)


def faded(colour: str) -> str:
    """A colour mixed with white.

    >>> faded("#000000")
    '#A6A6A6'
    """
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(part + (255 - part) * FADED):02X}" for part in parts)

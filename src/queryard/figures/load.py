"""Figures of loads: how long answers took, and for every policy which queries waited and were late.

A load does not record which slot did what, but for every query when it came, when it began and when
its last row was there. So its chart has a bar for every query, in a band per tenant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from queryard.core.errors import QueryardError
from queryard.core.readable import several
from queryard.metrics import QueryRow, RunRows
from queryard.metrics.deadlines import deadlines
from queryard.metrics.series import StepSeries

from .curves import MOST_POINTS, response_panel
from .palette import LATE, faded, tenant_colours
from .panels import Area, Axis, Bar, Key, Panel, References, Sheet
from .save import draw_sheet, renderer_of
from .timescale import Timescale

GAP = 0.08
BETWEEN = 1  # lanes left free between two tenants


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
    colours = tenant_colours(tenants)
    bands = _bands(tenants, [_laid_out(run) for run in runs.values()])
    time = Timescale.up_to(run.makespan_s or 0.0 for run in runs.values())
    most = max((_most_under_way(run) for run in runs.values()), default=1.0)
    return Sheet(
        title=title or "A load under " + ", ".join(runs),
        top=response_panel(runs, references),
        rows=tuple(
            (_chart(name, run, colours, bands, time), _under_way(name, run, colours, most, time))
            for name, run in runs.items()
        ),
        keys=_keys(colours, rows),
    )


def _keys(colours: Mapping[str, str], rows: Sequence[QueryRow]) -> tuple[Key, ...]:
    found = [Key(name, colour) for name, colour in colours.items()]
    if colours:
        found.append(Key("pale: waiting", faded(next(iter(colours.values())))))
    if any(row.query.deadline_s is not None for row in rows):
        found.append(Key("late (past the deadline)", LATE))
    return tuple(found)


class _Band(NamedTuple):
    """Where the queries of a tenant are drawn: from lane `first` on, in so many lanes."""

    first: int
    lanes: int


def _laid_out(run: RunRows) -> list[tuple[QueryRow, int]]:
    """Every query in the lowest lane of its tenant that is free from its submission to its end."""
    free: dict[str, list[int]] = {}
    busy: dict[str, list[tuple[float, int]]] = {}
    lanes: dict[str, int] = {}
    found = []
    for row in sorted(run.queries.values(), key=lambda row: (row.query.tenant, row.submit_s)):
        tenant = row.query.tenant
        waiting, taken = free.setdefault(tenant, []), busy.setdefault(tenant, [])
        while taken and taken[0][0] <= row.submit_s:
            heappush(waiting, heappop(taken)[1])
        lane = heappop(waiting) if waiting else lanes.get(tenant, 0)
        lanes[tenant] = max(lanes.get(tenant, 0), lane + 1)
        heappush(taken, (run.closed_s if row.end_s is None else row.end_s, lane))
        found.append((row, lane))
    return found


def _bands(
    tenants: Sequence[str], charts: Sequence[Sequence[tuple[QueryRow, int]]]
) -> dict[str, _Band]:
    """The same band for a tenant in every chart, as high as the fullest of them needs."""
    most = dict.fromkeys(tenants, 1)
    for row, lane in (placed for chart in charts for placed in chart):
        most[row.query.tenant] = max(most[row.query.tenant], lane + 1)
    bands, first = {}, 0
    for tenant, lanes in most.items():
        bands[tenant] = _Band(first, lanes)
        first += lanes + BETWEEN
    return bands


def _chart(
    name: str,
    run: RunRows,
    colours: Mapping[str, str],
    bands: Mapping[str, _Band],
    time: Timescale,
) -> Panel:
    """A bar for every query: pale while it waits, then its tenant's colour, red once late."""
    start_s = run.first_submit_s or 0.0
    bars: list[Bar] = []
    for row, lane in _laid_out(run):
        tenant = row.query.tenant
        place = bands[tenant].first + lane
        bars.extend(_bars(place, row, run.closed_s, colours[tenant], start_s, time))
    judged = deadlines(list(run.queries.values()), run.closed_s)
    title = f"{name}: each query from submission to end"
    if judged.queries:
        title += f" ({judged.missed} of {several(judged.queries, 'deadline')} missed)"
    return Panel(
        title=title,
        x=time.axis,
        y=_axis(bands),
        bars=tuple(bars),
        note="" if bars else "nothing ran",
    )


def _axis(bands: Mapping[str, _Band]) -> Axis:
    """Tenants by name in the middle of their bands."""
    ticks = tuple((band.first + band.lanes / 2, tenant) for tenant, band in bands.items())
    end = max((band.first + band.lanes for band in bands.values()), default=1)
    return Axis("", low=end, high=0, ticks=ticks or ((0.5, ""),))


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
    """How many queries of each tenant wait or run, tenants stacked."""
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
    return Panel(f"{name}: queries that wait or run", time.axis, axis, areas=areas)


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

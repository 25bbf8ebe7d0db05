"""From journals to the panels of a figure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from queryard.core.errors import QueryardError
from queryard.core.readable import several
from queryard.metrics import RunRows, read_run
from queryard.metrics.utilisation import slots_in_use, slots_present

from .curves import kinds_in_use, response_panel, slots_panel
from .gantt import gantt
from .palette import WASTED, colouring, policy_colours
from .panels import FigureRun, Key, Panel, References, Sheet
from .portfolio import Choice, portfolio_panels
from .timescale import Timescale

MOST_BARS = 3000
MOST_BARS_IN_ALL = 12_000
LEAST_BARS = 600


def build_sheet(
    runs: Sequence[FigureRun],
    references: References,
    title: str = "",
    choices: Mapping[str, Sequence[Choice]] | None = None,
) -> Sheet:
    """All panels, with the same colours, time axis and slot axis for every run.

    `choices` has the decisions of those runs that are portfolios.
    """
    if not runs:
        raise QueryardError("there is no run to draw; give at least one")
    read: dict[str, RunRows] = {}
    for name, journal in runs:
        if name in read:
            raise QueryardError(f"two of the runs are called {name!r}; give each its own name")
        read[name] = read_run(journal)
    tenants = {
        query: row.query.tenant for run in read.values() for query, row in run.queries.items()
    }
    colours = colouring(tenants)
    time = Timescale.up_to(run.makespan_s or 0.0 for run in read.values())
    kinds = kinds_in_use(read.values())
    most_slots = max(_most_slots(run) for run in read.values())
    most_bars = max(LEAST_BARS, min(MOST_BARS, MOST_BARS_IN_ALL // len(runs)))
    charts = [gantt(name, run, colours, time, most_bars) for name, run in read.items()]
    choices = choices or {}
    by_policy = policy_colours(read, choices)
    chosen = [portfolio_panels(name, made, read[name], by_policy) for name, made in choices.items()]
    slots = [slots_panel(name, run, kinds, most_slots, time) for name, run in read.items()]
    return Sheet(
        title=title or _title(read, len(tenants)),
        top=response_panel(read, references, choices),
        rows=(*chosen, *zip(charts, slots, strict=True)),
        keys=colours.keys + _wasted_key(charts),
    )


def _title(runs: dict[str, RunRows], queries: int) -> str:
    if len(runs) == 1:
        return f"{several(queries, 'query')} under {next(iter(runs))}"
    return f"{several(queries, 'query')} under {len(runs)} policies"


def _most_slots(run: RunRows) -> float:
    """The height of the slot axis: what there was, or more if more was used."""
    used = (max(series.values, default=0.0) for series in slots_in_use(run).values())
    return max(*used, *slots_present(run).values, 1.0)


def _wasted_key(charts: Iterable[Panel]) -> tuple[Key, ...]:
    if any(bar.colour == WASTED for chart in charts for bar in chart.bars):
        return (Key("failed, killed or lost", WASTED),)
    return ()

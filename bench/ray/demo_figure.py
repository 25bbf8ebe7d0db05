"""A figure of a cluster over time: which tenant had the slots of which node, and what happened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from queryard.core.model import JobId
from queryard.figures.palette import INK, WASTED, tenant_colours
from queryard.metrics import RunRows
from queryard.metrics.series import StepSeries

CELLS = 120  # of the panel below: averages over short stretches
ABSENT = "#F1F1F1"
DPI = 130
TITLE: Mapping[str, Any] = {"loc": "left", "fontsize": 9.5}


class Mark(NamedTuple):
    """Something that happened, in seconds on the clock of the session."""

    what: str
    at_s: float


class Held(NamedTuple):
    """A slot that a tenant had; `lost` if its node died under it."""

    node: str
    tenant: str
    start_s: float
    end_s: float
    slots: int
    lost: bool


def save_nodes_figure(path: Path, run: RunRows, marks: Sequence[Mark]) -> None:
    """Above a lane per node, in the colours of tenants; below the slots in use by tenant.

    The key beside them is that of both.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    start_s = run.first_submit_s or 0.0
    end_s = run.closed_s
    held = list(_held(run))
    colours = tenant_colours(sorted({row.query.tenant for row in run.queries.values()}))
    lanes = {row.node.id: place for place, row in enumerate(run.nodes)}
    figure, (upper, lower) = pyplot.subplots(
        2,
        1,
        sharex=True,
        figsize=(10, 3.0 + 0.55 * len(lanes)),
        height_ratios=(0.55 * len(lanes) + 0.4, 1.7),
        layout="constrained",
    )
    _lanes(upper, run, held, lanes, colours, start_s, end_s)
    _in_use(lower, run, held, colours, start_s, end_s)
    for axes in (upper, lower):
        axes.spines[["top", "right"]].set_visible(False)
        for mark in marks:
            axes.axvline(mark.at_s - start_s, color=INK, linestyle="--", linewidth=1.3)
    for mark in marks:
        upper.annotate(
            mark.what,
            (mark.at_s - start_s, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(3, 3),
            textcoords="offset points",
            color=INK,
            fontsize=9,
        )
    _key(figure, colours)
    figure.suptitle("Two tenants on a Ray cluster, one node of which is killed", fontsize=12)
    figure.savefig(path, dpi=DPI)
    pyplot.close(figure)


def _held(run: RunRows) -> Iterator[Held]:
    """All that had a slot, from the journal."""
    for launch in run.launches:
        tenant = _tenant(run, launch.tasks[0].job)
        end_s = run.last_step_s if launch.end_s is None else launch.end_s
        yield Held(launch.node, tenant, launch.start_s, end_s, 1, launch.outcome == "lost")
    for lease in run.leases:
        end_s = run.last_step_s if lease.end_s is None else lease.end_s
        tenant = _tenant(run, lease.job)
        yield Held(lease.node, tenant, lease.start_s, end_s, lease.slots, lease.outcome == "lost")


def _tenant(run: RunRows, job: str) -> str:
    return run.queries[JobId.of(job).query].query.tenant


def _lanes(
    axes: Any,
    run: RunRows,
    held: Sequence[Held],
    lanes: Mapping[str, int],
    colours: Mapping[str, str],
    start_s: float,
    end_s: float,
) -> None:
    for row in run.nodes:
        lane = lanes[row.node.id]
        for low_s, high_s in (
            (start_s, max(row.joined_s, start_s)),
            (end_s if row.lost_s is None else row.lost_s, end_s),
        ):
            if high_s > low_s:
                axes.broken_barh(
                    [(low_s - start_s, high_s - low_s)], (lane - 0.4, 0.8), color=ABSENT
                )
    for tenant, colour in {**colours, "": WASTED}.items():
        for lane in lanes.values():
            spans = [
                (one.start_s - start_s, one.end_s - one.start_s)
                for one in held
                if lanes[one.node] == lane and ("" if one.lost else one.tenant) == tenant
            ]
            axes.broken_barh(spans, (lane - 0.4, 0.8), facecolors=colour, linewidth=0)
    axes.set_ylim(len(lanes) - 0.45, -0.55)
    axes.set_xlim(0, end_s - start_s)
    axes.set_yticks(range(len(lanes)), [f"node {place + 1}" for place in range(len(lanes))])
    axes.set_title("Which tenant had the slot of each node", pad=18, **TITLE)


def _in_use(
    axes: Any,
    run: RunRows,
    held: Sequence[Held],
    colours: Mapping[str, str],
    start_s: float,
    end_s: float,
) -> None:
    cell_s = (end_s - start_s) / CELLS
    grid_s = [start_s + place * cell_s for place in range(CELLS)]
    layers = []
    for tenant in colours:
        changes = [
            (at_s, step)
            for one in held
            if one.tenant == tenant
            for at_s, step in ((one.start_s, one.slots), (one.end_s, -one.slots))
        ]
        series = StepSeries.of_changes(changes)
        layers.append([series.mean(low_s, low_s + cell_s) for low_s in grid_s])
    shown_s = [low_s - start_s for low_s in grid_s]
    axes.stackplot(shown_s, *layers, colors=list(colours.values()), step="post", linewidth=0)
    there = StepSeries.of_changes(
        [(row.joined_s, row.node.slots) for row in run.nodes]
        + [(row.lost_s, -row.node.slots) for row in run.nodes if row.lost_s is not None]
    )
    points_s = sorted({start_s, end_s, *(t for t in there.times_s if start_s < t < end_s)})
    axes.plot(
        [at_s - start_s for at_s in points_s],
        [there.at(at_s) for at_s in points_s],
        drawstyle="steps-post",
        color=INK,
        linewidth=1.2,
    )
    axes.set_ylim(0, max(there.values, default=1) + 0.4)
    axes.set_xlabel("seconds since the first query")
    axes.set_ylabel("slots")
    axes.set_title("How many slots each tenant had, of those that were there", **TITLE)


def _key(figure: Any, colours: Mapping[str, str]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    keys: list[Any] = [Patch(color=colour, label=tenant) for tenant, colour in colours.items()]
    keys += [
        Patch(facecolor="white", edgecolor=INK, linewidth=0.6, label="free slot"),
        Patch(color=WASTED, label="work lost with its node"),
        Patch(color=ABSENT, label="node not in the cluster"),
        Line2D([], [], color=INK, linewidth=1.2, label="slots of all nodes"),
    ]
    figure.legend(handles=keys, loc="outside right center", frameon=False, fontsize=9)

"""Figures as images (png, svg, pdf), by matplotlib without a display."""

from __future__ import annotations

import math
from itertools import pairwise
from textwrap import fill
from typing import Any

from .palette import INK
from .panels import Axis, Panel, Sheet, explained

WIDTH_IN = 11.0
TOP_IN = 3.2
ROW_IN = 2.2
EDGE_IN = 1.3
DPI = 150
# In one line of the legend; half of it where there is a second legend beside.
MOST_KEYS, KEY_LETTERS = 6, 144
MOST_NAMES = 16  # in one column of the legend
NAME_LETTERS = 34
TITLE_LETTERS, TOP_TITLE_LETTERS = 76, 115  # in one line above a panel
# Of the axes; a bar that is wider and taller has room for a white edge.
WIDE_BAR, TALL_BAR = 0.005, 0.01
DASHES: dict[str, Any] = {"solid": "-", "dash": (0, (5, 2)), "dot": (0, (1, 1.5)), "dashdot": "-."}


def draw(sheet: Sheet, path: str) -> None:
    """Write the sheet as an image; the ending of the path says which kind."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    style: dict[Any, Any] = {"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "queryard"}
    with rc_context(style):
        rows = len(sheet.rows)
        height_in = TOP_IN + ROW_IN * rows + EDGE_IN
        figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
        FigureCanvasAgg(figure)
        figure.suptitle(_plain(sheet.title), fontsize=14, fontweight="bold")
        # Each with margins of its own: the legend of the upper part takes no room from the lower.
        parts: Any = figure.subfigures(2, 1, height_ratios=(TOP_IN, height_in - TOP_IN))
        upper, lower = parts
        top = upper.subplots()
        plot(top, sheet.top, TOP_TITLE_LETTERS)
        if len(sheet.top.lines) > 1:
            lines, names = top.get_legend_handles_labels()
            names = [fill(name, NAME_LETTERS) for name in names]
            columns = math.ceil(len(names) / MOST_NAMES)
            upper.legend(lines, names, loc="outside right upper", ncols=columns, frameon=False)
        plots = lower.subplots(rows, 2, squeeze=False, width_ratios=(3, 2))
        for (left, right), panels in zip(plots, sheet.rows, strict=True):
            plot(left, panels[0])
            plot(right, panels[1])
        _label_once(plots, sheet)
        handles = [Patch(color=key.colour, label=_plain(key.name)) for key in sheet.keys]
        beside = dict(zip(*reversed(right.get_legend_handles_labels()), strict=True))
        known = {_plain(name) for name in explained(sheet)}
        beside = {name: drawn for name, drawn in beside.items() if name not in known}
        longest = max((len(key.name) for key in sheet.keys), default=1)
        letters = KEY_LETTERS // 2 if beside else KEY_LETTERS
        most = max(1, min(MOST_KEYS, letters // (longest + 4)))
        columns = math.ceil(len(handles) / math.ceil(len(handles) / most)) if handles else 1
        lower.legend(handles=handles, loc="outside lower left", ncols=columns, frameon=False)
        if beside:
            lower.legend(
                beside.values(),
                beside.keys(),
                loc="outside lower right",
                ncols=len(beside),
                frameon=False,
            )
        figure.savefig(path, dpi=DPI)


def _label_once(plots: Any, sheet: Sheet) -> None:
    """Panels above others with the same axis leave its label to the lowest."""
    for column in (0, 1):
        for place, (upper, lower) in enumerate(pairwise(row[column].x for row in sheet.rows)):
            if upper == lower:
                plots[place][column].set_xlabel("")


def plot(axes: Any, panel: Panel, letters: int = TITLE_LETTERS) -> None:
    """One panel on one set of axes."""
    from matplotlib.collections import PolyCollection

    axes.set_title(fill(_plain(panel.title), letters), loc="left", fontsize=9.5)
    _scale(axes.xaxis, axes.set_xlim, axes.set_xscale, panel.x)
    _scale(axes.yaxis, axes.set_ylim, axes.set_yscale, panel.y)
    axes.spines[["top", "right"]].set_visible(False)
    if not panel.bars:
        axes.grid(color="#DDDDDD", linewidth=0.6)
    axes.set_axisbelow(True)
    if panel.bars:
        corners = [
            ((b.start, b.bottom), (b.end, b.bottom), (b.end, b.top), (b.start, b.top))
            for b in panel.bars
        ]
        colours = [bar.colour for bar in panel.bars]
        wide = WIDE_BAR * (panel.x.high - panel.x.low)
        tall = TALL_BAR * abs(panel.y.high - panel.y.low)
        edges = [
            0.4 if bar.end - bar.start > wide and bar.top - bar.bottom > tall else 0.0
            for bar in panel.bars
        ]
        axes.add_collection(
            PolyCollection(corners, facecolors=colours, edgecolors="white", linewidths=edges)
        )
    if panel.areas:
        layers = [area.y for area in panel.areas]
        axes.stackplot(
            panel.areas[0].x,
            *layers,
            labels=[_plain(area.name) for area in panel.areas],
            colors=[area.colour for area in panel.areas],
            step="post",
            linewidth=0,
        )
    for dots in panel.dots:
        size = max(4.0, min(20.0, 4_000.0 / max(1, len(dots.x))))
        axes.scatter(
            dots.x,
            dots.y,
            s=size,
            color=dots.colour,
            label=_plain(dots.name),
            alpha=0.6,
            linewidths=0,
        )
    for line in panel.lines:
        axes.plot(
            line.x,
            line.y,
            drawstyle="default" if line.straight else "steps-post",
            label=_plain(line.name),
            color=line.colour,
            linestyle=DASHES[line.dash],
            linewidth=(1.8 if line.dash == "solid" else 1.4) * line.weight,
        )
    if panel.note:
        axes.text(0.5, 0.5, _plain(panel.note), transform=axes.transAxes, ha="center", color=INK)


def _scale(ticks: Any, set_limits: Any, set_scale: Any, axis: Axis) -> None:
    ticks.set_label_text(_plain(axis.label))
    set_scale(axis.scale)
    set_limits(axis.low, axis.high)
    if axis.scale == "log":
        ticks.set_major_formatter("{x:g}")
    if axis.ticks:
        ticks.set_ticks(
            [place for place, _ in axis.ticks], [_plain(name) for _, name in axis.ticks]
        )


def _plain(text: str) -> str:
    """A text as it is written: what stands between two dollars is no formula.

    >>> _plain("5 $ or 6 $")
    '5 \\\\$ or 6 \\\\$'
    """
    return text.replace("$", r"\$")

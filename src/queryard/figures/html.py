"""Figures as pages, by plotly: one file that opens without a network."""

from __future__ import annotations

import math
from collections.abc import Collection
from textwrap import wrap
from typing import Any

from .palette import INK
from .panels import Axis, Panel, Sheet, explained

TOP_PX = 330
ROW_PX = 210
GAP_PX = 85
TITLE_PX = 90
LEGEND_PX = 110
TITLE_LETTERS = 95
NAME_LETTERS = 40
# Of the width, for the upper panel; the rest is for its legend.
TOP_WIDTH = 0.74
GRID = "#DDDDDD"


def draw(sheet: Sheet, path: str) -> None:
    """Write the sheet as a page that holds everything it needs."""
    # The fixed id makes the same runs the same file.
    options = {"config": {"displaylogo": False}, "div_id": "queryard"}
    page = figure_of(sheet).to_html(include_plotlyjs=True, **options)
    with open(path, "w", encoding="utf-8") as file:
        file.write(page)


def figure_of(sheet: Sheet) -> Any:
    """The plotly figure: the same layout as the image, with one legend per kind of panel."""
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    rows = len(sheet.rows)
    plots_px = TOP_PX + rows * (ROW_PX + GAP_PX)
    figure = make_subplots(
        rows=rows + 1,
        cols=2,
        specs=[[{"colspan": 2}, None], *([{}, {}] for _ in sheet.rows)],
        column_widths=[0.6, 0.4],
        row_heights=[TOP_PX, *[ROW_PX] * rows],
        subplot_titles=[_lines_of(p.title) for p in (sheet.top, *sum(sheet.rows, ()))],
        vertical_spacing=GAP_PX / plots_px,
        horizontal_spacing=0.06,
    )
    for title, axis in zip(figure.layout.annotations, figure.select_xaxes(), strict=True):
        title.update(x=axis.domain[0], xanchor="left", align="left", font={"size": 13})
    _plot(figure, sheet.top, 1, 1, "legend")
    figure.update_xaxes(domain=[0.0, TOP_WIDTH], row=1, col=1)
    for row, (gantt, slots) in enumerate(sheet.rows, 2):
        _plot(figure, gantt, row, 1, "")
        _plot(figure, slots, row, 2, "legend3" if row == rows + 1 else "", explained(sheet))
    for key in sheet.keys:
        square = {"symbol": "square", "size": 11, "color": key.colour}
        named = Scatter(x=[None], y=[None], mode="markers", marker=square, name=key.name)
        figure.add_trace(named.update(legend="legend2"), row=2, col=1)
    below = {"orientation": "h", "traceorder": "normal", "yanchor": "top", "y": -60 / plots_px}
    figure.update_layout(
        title={"text": f"<b>{sheet.title}</b>", "x": 0.01, "font": {"size": 20}},
        height=plots_px + TITLE_PX + LEGEND_PX,
        margin={"t": TITLE_PX, "b": LEGEND_PX, "l": 70, "r": 20},
        template="plotly_white",
        font={"color": INK, "size": 12},
        barmode="overlay",
        hovermode="closest",
        legend={
            "traceorder": "normal",
            "x": TOP_WIDTH + 0.01,
            "xanchor": "left",
            "y": 1.0,
            "yanchor": "top",
        },
        legend2={**below, "x": 0.0, "xanchor": "left", "itemclick": False},
        legend3={**below, "x": 1.0, "xanchor": "right", "itemclick": False},
    )
    return figure


def _plot(
    figure: Any,
    panel: Panel,
    row: int,
    col: int,
    legend: str,
    elsewhere: Collection[str] = (),
) -> None:
    """The traces and axes of one panel; without a legend its traces are not named in any."""
    from plotly.graph_objects import Bar, Scatter

    def shown(name: str) -> dict[str, Any]:
        if not legend or name in elsewhere:
            return {"showlegend": False}
        return {"legend": legend, "showlegend": True}

    if panel.bars:
        bars = panel.bars
        figure.add_trace(
            Bar(
                orientation="h",
                base=[bar.start for bar in bars],
                x=[bar.end - bar.start for bar in bars],
                y=[(bar.bottom + bar.top) / 2 for bar in bars],
                width=[bar.top - bar.bottom for bar in bars],
                marker={"color": [bar.colour for bar in bars], "line": {"width": 0}},
                hovertext=[bar.text for bar in bars],
                hoverinfo="text",
                showlegend=False,
            ),
            row=row,
            col=col,
        )
    for area in panel.areas:
        figure.add_trace(
            Scatter(
                x=area.x,
                y=area.y,
                name=area.name,
                stackgroup="slots",
                line={"shape": "hv", "width": 0},
                fillcolor=area.colour,
                **shown(area.name),
            ),
            row=row,
            col=col,
        )
    for line in panel.lines:
        style = {
            "color": line.colour,
            "dash": line.dash,
            "shape": "linear" if line.straight else "hv",
        }
        width = (2.4 if line.dash == "solid" else 1.8) * line.weight
        figure.add_trace(
            Scatter(
                x=line.x or [None],  # without a point it would not be in the legend
                y=line.y or [None],
                name=_lines_of(line.name, NAME_LETTERS),
                mode="lines",
                line={**style, "width": width},
                **shown(line.name),
            ),
            row=row,
            col=col,
        )
    figure.update_xaxes(_axis(panel.x), row=row, col=col)
    figure.update_yaxes(_axis(panel.y), row=row, col=col)
    if panel.note:
        middle = {"x": [_middle(panel.x)], "y": [_middle(panel.y)]}
        note = Scatter(**middle, mode="text", text=[panel.note], showlegend=False)
        figure.add_trace(note.update(hoverinfo="skip"), row=row, col=col)


def _middle(axis: Axis) -> float:
    if axis.scale == "log":
        return math.sqrt(axis.low * axis.high)
    return (axis.low + axis.high) / 2


def _axis(axis: Axis) -> dict[str, Any]:
    limits = [axis.low, axis.high]
    if axis.scale == "log":
        limits = [math.log10(limit) for limit in limits]
    found: dict[str, Any] = {
        "title": {"text": axis.label, "standoff": 6},
        "type": axis.scale,
        "range": limits,
        "gridcolor": GRID,
        "zeroline": False,
    }
    if axis.ticks:
        found["tickvals"] = [place for place, _ in axis.ticks]
        found["ticktext"] = [name for _, name in axis.ticks]
        found["showgrid"] = False
    return found


def _lines_of(text: str, letters: int = TITLE_LETTERS) -> str:
    return "<br>".join(wrap(text, letters))

"""A picture of a plan: boxes in layers, with arrows from each box to the boxes that read it.

An arrow that passes a layer has a lane of its own there, so that it never runs through a box.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from queryard.core.errors import QueryardError

from .palette import FAINT, INK
from .save import check_figure_path

KIND_COLOURS = {"join": "#A04FB5", "groupby": "#3B87DB", "extract": "#12857A"}
BOX_WIDTH = 3.0
BOX_HEIGHT = 1.0
GAP_X = 0.5
GAP_Y = 0.7
INCHES = 0.75  # of one unit
PIXELS = 75
LETTERS = 34  # in a line of a box
SWEEPS = 4
LANE_WIDTH = 0.2  # what an arrow needs that passes a layer of boxes

Point = tuple[float, float]
_Lane = tuple[str, str, int]  # an arrow from one box to another, on its way through a layer


@dataclass(frozen=True, slots=True)
class DagNode:
    """A box: its name, what it reads from, and a few lines about it; `text` is said on pointing."""

    name: str
    kind: str
    inputs: tuple[str, ...]
    lines: tuple[str, ...]
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    x: float
    y: float


def save_dag(path: str, nodes: Sequence[DagNode], title: str = "") -> None:
    """Draw the plan; .html is a page, others are images."""
    check_figure_path(path)
    drawing = _layout(nodes)
    draw = _draw_page if path.lower().endswith(".html") else _draw_image
    try:
        draw(path, nodes, drawing, title)
    except OSError as error:
        raise QueryardError(f"cannot write the figure {path!r}: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class _Drawing:
    """Where everything stands: boxes by their names, and the points of each arrow."""

    places: dict[str, _Place]
    arrows: list[list[Point]]


def _layout(nodes: Sequence[DagNode]) -> _Drawing:
    """Sources below, the answer on top; boxes of a layer in an order with few crossings."""
    boxes = _layers(nodes)
    layer_of = {name: number for number, layer in enumerate(boxes) for name in layer}
    layers: list[list[str | _Lane]] = [list(layer) for layer in boxes]
    below: dict[str | _Lane, list[str | _Lane]] = {node.name: [] for node in nodes}
    above: dict[str | _Lane, list[str | _Lane]] = {node.name: [] for node in nodes}
    for node in nodes:
        for name in dict.fromkeys(node.inputs):
            way: list[str | _Lane] = [name]
            for number in range(layer_of[name] + 1, layer_of[node.name]):
                way.append((name, node.name, number))
                layers[number].append(way[-1])
            for lower, upper in itertools.pairwise([*way, node.name]):
                below.setdefault(upper, []).append(lower)
                above.setdefault(lower, []).append(upper)
    _untangle(layers, below, above)
    widths = [sum(map(_width, layer)) + GAP_X * (len(layer) - 1) for layer in layers]
    places: dict[str | _Lane, _Place] = {}
    for number, layer in enumerate(layers):
        x = (max(widths) - widths[number]) / 2
        for thing in layer:
            places[thing] = _Place(x, number * (BOX_HEIGHT + GAP_Y))
            x += _width(thing) + GAP_X
    drawn = {node.name: places[node.name] for node in nodes}
    return _Drawing(drawn, _arrows(nodes, places, layer_of))


def _untangle(
    layers: list[list[str | _Lane]],
    below: dict[str | _Lane, list[str | _Lane]],
    above: dict[str | _Lane, list[str | _Lane]],
) -> None:
    """Sort each layer by where its neighbours stand, upwards and downwards in turn."""
    order = {thing: float(i) for layer in layers for i, thing in enumerate(layer)}
    for sweep in range(SWEEPS):
        near = above if sweep % 2 else below
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            means = {t: _mean([order[n] for n in near.get(t, [])], order[t]) for t in layer}
            layer.sort(key=means.__getitem__)
            order |= {thing: float(i) for i, thing in enumerate(layer)}


def _width(thing: str | _Lane) -> float:
    return BOX_WIDTH if isinstance(thing, str) else LANE_WIDTH


def _layers(nodes: Sequence[DagNode]) -> list[list[str]]:
    """A box stands as high as the longest way up to it, and as near to its reader as that allows.

    >>> _layers([DagNode("a", "", (), ()), DagNode("b", "", ("a",), ()), DagNode("c", "", (), ()),
    ...          DagNode("d", "", ("b", "c"), ())])
    [['a'], ['b', 'c'], ['d']]
    """
    height: dict[str, int] = {}
    for node in nodes:  # which stand behind what they read
        height[node.name] = max((height[name] + 1 for name in node.inputs), default=0)
    for node in reversed(nodes):
        above = [height[reader.name] for reader in nodes if node.name in reader.inputs]
        if above:
            height[node.name] = min(above) - 1
    layers: list[list[str]] = [[] for _ in range(max(height.values(), default=0) + 1)]
    for node in nodes:
        layers[height[node.name]].append(node.name)
    return layers


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _size(drawing: _Drawing) -> tuple[float, float]:
    places = drawing.places.values()
    bends = [x for points in drawing.arrows for x, _ in points]
    width = max([BOX_WIDTH, *(place.x + BOX_WIDTH for place in places), *bends])
    height = max((place.y for place in places), default=0.0) + BOX_HEIGHT
    return width, height


def _arrows(
    nodes: Sequence[DagNode],
    places: Mapping[str | _Lane, _Place],
    layer_of: Mapping[str, int],
) -> list[list[Point]]:
    """From the top of what is read, straight up through lanes, to the bottom of the reader."""
    found = []
    for node in nodes:
        to = places[node.name]
        ways = []
        for name in node.inputs:
            source = places[name]
            points = [(source.x + BOX_WIDTH / 2, source.y + BOX_HEIGHT)]
            for number in range(layer_of[name] + 1, layer_of[node.name]):
                lane = places[name, node.name, number]
                x = lane.x + LANE_WIDTH / 2
                points += [(x, lane.y), (x, lane.y + BOX_HEIGHT)]
            ways.append(points)
        ways.sort(key=lambda points: points[-1][0])  # so that they do not cross at the end
        for place, points in enumerate(ways):
            x = to.x + BOX_WIDTH * (place + 1) / (len(ways) + 1)
            found.append([*points, (x, to.y)])
    return found


def _short(line: str) -> str:
    return line if len(line) <= LETTERS else line[: LETTERS - 1] + "…"


def _draw_image(path: str, nodes: Sequence[DagNode], drawing: _Drawing, title: str) -> None:
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch, Patch

    width, height = _size(drawing)
    places = drawing.places
    style: dict[Any, Any] = {"font.size": 8, "svg.fonttype": "none", "svg.hashsalt": "queryard"}
    with rc_context(style):
        figure = Figure(figsize=((width + 1) * INCHES, (height + 1.6) * INCHES))
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        axes.set_xlim(-0.5, width + 0.5)
        axes.set_ylim(-0.6, height + 1.0)
        axes.text(0, height + 0.6, title, fontsize=11, fontweight="bold", color=INK, va="center")
        arrow = {"arrowstyle": "-|>", "color": FAINT, "linewidth": 1.0, "shrinkA": 0.0}
        for points in drawing.arrows:
            axes.plot(*zip(*points[:-1], strict=True), color=FAINT, linewidth=1.0)
            axes.annotate("", xy=points[-1], xytext=points[-2], arrowprops=arrow)
        for node in nodes:
            place = places[node.name]
            colour = KIND_COLOURS.get(node.kind, FAINT)
            axes.add_patch(
                FancyBboxPatch(
                    (place.x, place.y),
                    BOX_WIDTH,
                    BOX_HEIGHT,
                    boxstyle="round,pad=0,rounding_size=0.08",
                    facecolor=f"{colour}22",
                    edgecolor=colour,
                )
            )
            axes.text(
                place.x + BOX_WIDTH / 2,
                place.y + BOX_HEIGHT / 2,
                # A dollar sign would begin mathematics.
                "\n".join(_short(line).replace("$", r"\$") for line in node.lines),
                ha="center",
                va="center",
                color=INK,
                fontsize=6.5,
                linespacing=1.35,
            )
        kinds = {node.kind for node in nodes}
        handles = [Patch(color=c, label=kind) for kind, c in KIND_COLOURS.items() if kind in kinds]
        axes.legend(handles=handles, loc="lower right", ncols=3, frameon=False, fontsize=7)
        figure.savefig(path, dpi=130)


def _draw_page(path: str, nodes: Sequence[DagNode], drawing: _Drawing, title: str) -> None:
    from html import escape

    from plotly.graph_objects import Figure, Scatter

    width, height = _size(drawing)
    places = drawing.places
    figure = Figure()
    for points in drawing.arrows:
        (x0, y0), (x1, y1) = points[-2:]
        figure.add_annotation(
            x=x1, y=y1, ax=x0, ay=y0, xref="x", yref="y", axref="x", ayref="y",
            showarrow=True, arrowhead=2, arrowsize=1, arrowwidth=1.2, arrowcolor=FAINT, text="",
        )  # fmt: skip
        before = " L ".join(f"{x},{y}" for x, y in points[:-1])
        if len(points) > 2:
            figure.add_shape(type="path", path=f"M {before}", line={"color": FAINT, "width": 1.2})
    for node in nodes:
        place = places[node.name]
        colour = KIND_COLOURS.get(node.kind, FAINT)
        corners = {"x0": place.x, "x1": place.x + BOX_WIDTH, "y0": place.y}
        figure.add_shape(
            type="rect", **corners, y1=place.y + BOX_HEIGHT,
            line={"color": colour}, fillcolor=colour, opacity=0.18,
        )  # fmt: skip
    for kind in dict.fromkeys(node.kind for node in nodes):
        mine = [node for node in nodes if node.kind == kind]
        figure.add_trace(
            Scatter(
                x=[places[node.name].x + BOX_WIDTH / 2 for node in mine],
                y=[places[node.name].y + BOX_HEIGHT / 2 for node in mine],
                mode="text+markers",
                marker={"color": KIND_COLOURS.get(kind, FAINT), "size": 1},
                text=["<br>".join(escape(_short(line)) for line in node.lines) for node in mine],
                textfont={"size": 10, "color": INK},
                hovertext=[escape(node.text).replace("\n", "<br>") for node in mine],
                hoverinfo="text",
                name=kind,
            )
        )
    figure.update_layout(
        title={"text": f"<b>{escape(title)}</b>", "x": 0.01},
        width=max(700, (width + 1) * PIXELS),
        height=max(400, (height + 2) * PIXELS),
        template="plotly_white",
        showlegend=False,
        margin={"t": 60, "b": 20, "l": 20, "r": 20},
        hovermode="closest",
    )
    figure.update_xaxes(visible=False, range=[-0.5, width + 0.5])
    figure.update_yaxes(visible=False, range=[-0.4, height + 0.4])
    page = figure.to_html(include_plotlyjs=True, config={"displaylogo": False}, div_id="queryard")
    with open(path, "w", encoding="utf-8") as file:
        file.write(page)

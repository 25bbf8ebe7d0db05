"""A picture of a plan: boxes in layers, with arrows from what is read to who reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from queryard.core.errors import QueryardError

from .palette import FAINT, INK
from .save import check_figure_path

KIND_COLOURS = {"join": "#CC6677", "groupby": "#0072B2", "extract": "#117733"}
BOX_WIDTH = 3.0
BOX_HEIGHT = 1.0
GAP_X = 0.5
GAP_Y = 0.7
INCHES = 0.75  # of one unit
PIXELS = 75
LETTERS = 34  # in a line of a box
SWEEPS = 4


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
    places = _layout(nodes)
    draw = _draw_page if path.lower().endswith(".html") else _draw_image
    try:
        draw(path, nodes, places, title)
    except OSError as error:
        raise QueryardError(f"cannot write the figure {path!r}: {error.strerror}") from error


def _layout(nodes: Sequence[DagNode]) -> dict[str, _Place]:
    """Sources below, the answer on top; boxes of a layer in an order with few crossings."""
    layers = _layers(nodes)
    readers: dict[str, list[str]] = {node.name: [] for node in nodes}
    for node in nodes:
        for name in node.inputs:
            readers[name].append(node.name)
    inputs = {node.name: list(node.inputs) for node in nodes}
    order = {name: float(i) for layer in layers for i, name in enumerate(layer)}
    for sweep in range(SWEEPS):
        near = readers if sweep % 2 else inputs
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            layer.sort(key=lambda name: _mean([order[n] for n in near[name]], order[name]))
            order |= {name: float(i) for i, name in enumerate(layer)}
    widest = max((len(layer) for layer in layers), default=1)
    places = {}
    for height, layer in enumerate(layers):
        left = (widest - len(layer)) * (BOX_WIDTH + GAP_X) / 2
        for i, name in enumerate(layer):
            x = left + i * (BOX_WIDTH + GAP_X)
            places[name] = _Place(x, height * (BOX_HEIGHT + GAP_Y))
    return places


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


def _size(places: dict[str, _Place]) -> tuple[float, float]:
    width = max((place.x for place in places.values()), default=0.0) + BOX_WIDTH
    height = max((place.y for place in places.values()), default=0.0) + BOX_HEIGHT
    return width, height


def _arrows(
    nodes: Sequence[DagNode], places: dict[str, _Place]
) -> list[tuple[float, float, float, float]]:
    """From the top of what is read to the bottom of who reads it."""
    found = []
    for node in nodes:
        to = places[node.name]
        for i, name in enumerate(node.inputs):
            source = places[name]
            x = to.x + BOX_WIDTH * (i + 1) / (len(node.inputs) + 1)
            found.append((source.x + BOX_WIDTH / 2, source.y + BOX_HEIGHT, x, to.y))
    return found


def _short(line: str) -> str:
    return line if len(line) <= LETTERS else line[: LETTERS - 1] + "…"


def _draw_image(path: str, nodes: Sequence[DagNode], places: dict[str, _Place], title: str) -> None:
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch, Patch

    width, height = _size(places)
    style: dict[Any, Any] = {"font.size": 8, "svg.fonttype": "none", "svg.hashsalt": "queryard"}
    with rc_context(style):
        figure = Figure(figsize=((width + 1) * INCHES, (height + 1.6) * INCHES))
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        axes.set_xlim(-0.5, width + 0.5)
        axes.set_ylim(-0.6, height + 1.0)
        axes.text(0, height + 0.6, title, fontsize=11, fontweight="bold", color=INK, va="center")
        for x0, y0, x1, y1 in _arrows(nodes, places):
            arrow = {"arrowstyle": "-|>", "color": FAINT, "linewidth": 1.0}
            axes.annotate("", xy=(x1, y1), xytext=(x0, y0), arrowprops=arrow)
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


def _draw_page(path: str, nodes: Sequence[DagNode], places: dict[str, _Place], title: str) -> None:
    from html import escape

    from plotly.graph_objects import Figure, Scatter

    width, height = _size(places)
    figure = Figure()
    for x0, y0, x1, y1 in _arrows(nodes, places):
        figure.add_annotation(
            x=x1, y=y1, ax=x0, ay=y0, xref="x", yref="y", axref="x", ayref="y",
            showarrow=True, arrowhead=2, arrowsize=1, arrowwidth=1.2, arrowcolor=FAINT, text="",
        )  # fmt: skip
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

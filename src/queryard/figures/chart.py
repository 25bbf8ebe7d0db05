"""Panels side by side in one image, for reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from queryard.core.errors import QueryardError

from .image import DPI, plot
from .palette import policy_colour
from .panels import Axis, Bar, Key, Panel
from .save import renderer_of

PANEL_IN = (5.4, 3.4)
GAP = 0.12


def save_chart(path: str, title: str, panels: Sequence[Panel], keys: Sequence[Key] = ()) -> None:
    """Draw panels in a row: .png, .svg or .pdf; keys explain the colours of bars."""
    renderer_of(path)
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    style: dict[Any, Any] = {"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "queryard"}
    with rc_context(style):
        width_in, height_in = PANEL_IN
        figure = Figure(figsize=(width_in * len(panels), height_in), layout="constrained")
        FigureCanvasAgg(figure)
        figure.suptitle(title, fontsize=12, fontweight="bold")
        for axes, panel in zip(
            figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
        ):
            plot(axes, panel)
            if panel.lines:
                axes.legend(framealpha=0.85, edgecolor="none", fontsize=8)
        handles = [Patch(color=key.colour, label=key.name) for key in keys]
        if handles:
            columns = min(len(handles), 6)
            figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)
        try:
            figure.savefig(path, dpi=DPI)
        except OSError as error:
            raise QueryardError(f"cannot write the figure {path!r}: {error.strerror}") from error


def bar_panel(
    title: str, label: str, groups: Sequence[str], series: Sequence[tuple[str, Sequence[float]]]
) -> Panel:
    """Groups of bars, one of each series in a group; a series has a value for each group."""
    width = (1 - 2 * GAP) / max(1, len(series))
    bars = [
        Bar(
            place + GAP + width * number,
            place + GAP + width * (number + 1),
            min(0.0, value),
            max(0.0, value),
            policy_colour(number),
            f"{name}, {groups[place]}: {value:.4g}",
        )
        for number, (name, values) in enumerate(series)
        for place, value in enumerate(values)
    ]
    values = [value for _, found in series for value in found] or [1.0]
    low, high = min(0.0, *values), max(0.0, *values)
    edge = 0.05 * (high - low or 1.0)
    ticks = tuple((place + 0.5, name) for place, name in enumerate(groups))
    return Panel(
        title,
        Axis("", 0.0, float(len(groups)), ticks=ticks),
        Axis(label, low - (edge if low < 0 else 0.0), high + edge),
        bars=tuple(bars),
    )


def series_keys(names: Sequence[str]) -> tuple[Key, ...]:
    """The colours of the series of a `bar_panel`."""
    return tuple(Key(name, policy_colour(place)) for place, name in enumerate(names))

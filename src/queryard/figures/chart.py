"""Panels side by side in one image, for reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from queryard.core.errors import QueryardError

from .image import DPI, plot
from .panels import Key, Panel
from .save import renderer_of

PANEL_IN = (5.4, 3.4)


def save_chart(path: str, title: str, panels: Sequence[Panel], keys: Sequence[Key] = ()) -> None:
    """Draw panels in a row: .png, .svg or .pdf; keys explain the colours of bars."""
    if renderer_of(path).library != "matplotlib":
        raise QueryardError(f"figure {path!r}: drawn as an image only (valid: .png, .svg, .pdf)")
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
            if panel.lines or panel.dots:
                axes.legend(framealpha=0.85, edgecolor="none", fontsize=8)
        handles = [Patch(color=key.colour, label=key.name) for key in keys]
        if handles:
            columns = min(len(handles), 6)
            figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)
        try:
            figure.savefig(path, dpi=DPI)
        except OSError as error:
            raise QueryardError(f"cannot write the figure {path!r}: {error.strerror}") from error

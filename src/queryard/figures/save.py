"""Saving a figure: the ending of the path chooses the renderer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import PurePath
from typing import NamedTuple

from queryard.core.errors import QueryardError

from . import html, image
from .panels import FigureRun, References, Sheet
from .portfolio import Choice
from .sheet import build_sheet


class _Renderer(NamedTuple):
    draw: Callable[[Sheet, str], None]
    library: str


_HTML = _Renderer(html.draw, "plotly")
_IMAGE = _Renderer(image.draw, "matplotlib")
RENDERERS = {".html": _HTML, ".png": _IMAGE, ".svg": _IMAGE, ".pdf": _IMAGE}


def check_figure_path(path: str) -> None:
    """Raise what `save_figure` would raise for the path, before anything has been computed."""
    renderer_of(path)


def save_figure(
    path: str,
    runs: Sequence[FigureRun],
    references: References | None = None,
    title: str = "",
    choices: Mapping[str, Sequence[Choice]] | None = None,
) -> None:
    """Draw the runs side by side and write the figure: .html is a page, others are images.

    `references` adds dashed lines of responses to compare with, by name (the fluid references
    of `queryard.sim`, say); `choices` has the decisions of runs that are portfolios.
    """
    renderer_of(path)  # complains before anything is computed
    draw_sheet(path, build_sheet(runs, references or {}, title, choices))


def draw_sheet(path: str, sheet: Sheet) -> None:
    """Write a figure with the renderer for its ending."""
    try:
        renderer_of(path).draw(sheet, path)
    except OSError as error:
        raise QueryardError(f"cannot write the figure {path!r}: {error.strerror}") from error


def renderer_of(path: str) -> _Renderer:
    """The renderer of figures with this ending; an error if there is none."""
    ending = PurePath(path).suffix
    renderer = RENDERERS.get(ending.lower())
    if renderer is None:
        valid = ", ".join(RENDERERS)
        raise QueryardError(f"figure {path!r}: unknown ending {ending!r} (valid: {valid})")
    if find_spec(renderer.library) is None:
        raise QueryardError(
            f"figure {path!r} needs {renderer.library}; install it with "
            f"pip install {renderer.library}"
        )
    return renderer

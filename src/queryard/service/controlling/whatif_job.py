"""What if other policies had been followed: the table and figures of `compare` on a window.

A worker process computes it (`whatif_worker`); it needs neither DuckDB nor the rest of the server.
"""

from __future__ import annotations

import tempfile
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from queryard.comparison import Comparison, Progress, Scores, compare
from queryard.comparison.settings import knowledge
from queryard.core.errors import QueryardError
from queryard.core.model import Tenant
from queryard.history import HistoryReader
from queryard.replay import window

# A figure of many thousand bars is an image inside the SVG, which browsers show faster.
MOST_SVG_BYTES = 2_000_000
NO_MATPLOTLIB = 'the server has no matplotlib; install it there: pip install "queryard[figures]"'


@dataclass(frozen=True, slots=True)
class Job:
    """A window of a history, and the policies to compare on it. Plain data, for a process."""

    history: str
    since: float
    until: float
    policies: tuple[str, ...]
    profiles: Mapping[str, Mapping[str, Any]]
    tenants: tuple[tuple[str, float, float, float], ...] = ()
    slots: int | None = None


def computed(job: Job, on_progress: Callable[[float], None]) -> dict[str, Any]:
    """The table and figures of `compare`, as plain data."""
    with HistoryReader(job.history) as reader:
        tenants = tuple(Tenant(*each) for each in job.tenants)
        found = window(reader, job.since, job.until, slots=job.slots, tenants=tenants)

    def hear(progress: Progress) -> None:
        on_progress(0.95 * progress.ended / max(1, progress.queries))

    compared = compare(
        found.trace,
        policies=job.policies,
        profiles=job.profiles,
        estimates=found.estimates,
        by_tenant=bool(job.tenants),
        on_progress=hear,
    )
    figures, problem = _figures(compared)
    return {
        "title": compared.title,
        "rows": [
            *(_row(scores, "policy") for scores in compared.scores.values()),
            *(_row(scores, "reference") for scores in compared.references.values()),
        ],
        "table": compared.table(),
        "verdict": compared.verdict,
        "notes": [*compared.notes, *([problem] if problem else [])],
        "estimates": knowledge(found.estimates),
        "figures": figures,
    }


def _row(scores: Scores, kind: str) -> dict[str, Any]:
    return {"kind": kind, **scores.to_json()}


def _figures(compared: Comparison) -> tuple[list[dict[str, str]], str]:
    """The figure as SVG, or why there is none."""
    if find_spec("matplotlib") is None:
        return [], f"there is no figure: {NO_MATPLOTLIB}"
    with tempfile.TemporaryDirectory(prefix="queryard-whatif-") as folder:
        drawn = Path(folder) / "figure.svg"
        try:
            compared.figure(drawn)
            svg = drawn.read_text("utf-8")
            if len(svg) > MOST_SVG_BYTES:
                image = drawn.with_suffix(".png")
                compared.figure(image)
                svg = _with_image(image.read_bytes())
        except QueryardError as error:
            return [], f"there is no figure: {error}"
    return [{"title": compared.title, "svg": svg}], ""


def _with_image(png: bytes) -> str:
    """An SVG that is one image; its size stands in the head of a PNG."""
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    data = b64encode(png).decode("ascii")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="100%"><image width="{width}" height="{height}" '
        f'href="data:image/png;base64,{data}"/></svg>'
    )

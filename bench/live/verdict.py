"""Figures with their targets: printed as a table, and kept as JSON."""

from __future__ import annotations

import json
import math
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console
from rich.table import Table

from .setting import Setting

# Where the output is no terminal.
WIDTH = 112


@dataclass(frozen=True)
class Figure:
    """One figure per seed (or one of all seeds), and what their median may be at most."""

    what: str
    values: Sequence[float]
    most: float | None = None
    unit: str = ""

    @property
    def value(self) -> float:
        return statistics.median(self.values)

    @property
    def reached(self) -> bool | None:
        """Whether it is at most the target; None if there is none."""
        return None if self.most is None else self.value <= self.most

    def to_json(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "values": list(self.values),
            "median": self.value,
            "most": self.most,
            "reached": self.reached,
        }


def show(title: str, figures: Sequence[Figure], setting: Setting, **more: Any) -> None:
    """Print all, and keep them with `more` beside where the setting says."""
    table = Table(title=f"{title} (seeds: {setting.seeds}, slots: {setting.slots})")
    table.add_column("figure")
    for column in ("median", "least", "most", "target", ""):
        table.add_column(column, justify="right")
    for figure in figures:
        table.add_row(
            figure.what,
            _written(figure.value, figure.unit),
            _written(min(figure.values), figure.unit),
            _written(max(figure.values), figure.unit),
            "" if figure.most is None else f"≤ {_written(figure.most, figure.unit)}",
            _verdict(figure.reached),
        )
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    console.print(table)
    if setting.quick:
        print("(quick: this says that it runs, and nothing about the targets)")
    if setting.out is not None:
        keep(setting.out, title, figures, setting, more)


def keep(
    file: Path,
    title: str,
    figures: Sequence[Figure],
    setting: Setting,
    more: Mapping[str, Any],
) -> None:
    plain = {
        "title": title,
        "python": platform.python_version(),
        "duckdb": duckdb.__version__,
        "seeds": setting.seeds,
        "slots": setting.slots,
        "quick": setting.quick,
        "figures": [figure.to_json() for figure in figures],
        **more,
    }
    file.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")


def ratio(ours: float, theirs: float) -> float:
    """Ours over theirs; if theirs is nothing, ours must be, too."""
    if theirs:
        return ours / theirs
    return math.inf if ours else 0.0


def _written(value: float, unit: str) -> str:
    if unit == "%":
        return f"{value:.2%}"
    return f"{value:,.3g} {unit}".strip() if abs(value) < 1000 else f"{value:,.0f} {unit}".strip()


def _verdict(reached: bool | None) -> str:
    if reached is None:
        return ""
    return "[green]reached[/]" if reached else "[red]missed[/]"

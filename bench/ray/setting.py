"""Data, options and tables of the benches of Ray."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import queryard
from queryard.workload.tpch import TABLES, generate, query

Plan = Literal["native", "staged"]
STORE_BYTES = 512 << 20
QUERIES = (1, 3, 5, 6, 9, 13, 18, 21)
FEW = (1, 3, 18)
SESSION: dict[str, Any] = {"history": False, "statistics": "off"}


class Pair(NamedTuple):
    """Median seconds of a query at two places."""

    number: int
    here_s: float
    there_s: float

    @property
    def ratio(self) -> float:
        return self.there_s / self.here_s


def compared(
    numbers: Sequence[int],
    plan: Plan,
    here: queryard.Session,
    there: queryard.Session,
    times: int,
    progress: Progress,
) -> list[Pair]:
    """Queries one by one in two sessions, in turns; the first run of each is not counted."""
    found = []
    doing = progress.add_task(plan, total=len(numbers) * (times + 1))
    for number in numbers:
        seconds: tuple[list[float], list[float]] = [], []
        for _ in range(times + 1):
            for session, taken in zip((here, there), seconds, strict=True):
                began_s = time.perf_counter()
                session.sql(query(number), plan=plan).fetchall()
                taken.append(time.perf_counter() - began_s)
            progress.advance(doing)
        found.append(Pair(number, *(statistics.median(taken[1:]) for taken in seconds)))
    return found


def shown(title: str, pairs: Sequence[Pair], most: float, other: str) -> float:
    """Show a comparison with its target; the geometric mean of the ratios."""
    rows = [
        (f"Q{p.number}", f"{p.here_s:.3f}", f"{p.there_s:.3f}", f"{p.ratio:.2f}") for p in pairs
    ]
    mean = statistics.geometric_mean(pair.ratio for pair in pairs)
    rows.append(("mean", "", "", f"{mean:.2f}"))
    table(f"{title} (target: at most {most:.2f})", ("", "local, s", f"{other}, s", "ratio"), rows)
    return mean


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    made = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        made.add_column(column, justify="right" if number else "left")
    for row in rows:
        made.add_row(*map(str, row))
    Console().print(made)


def tpch(folder: Path, scale: float) -> Path:
    """TPC-H data, made on first use."""
    made = folder / f"sf{scale:g}"
    if not all((made / f"{name}.parquet").exists() for name in TABLES):
        made.mkdir(parents=True, exist_ok=True)
        generate(made, scale)
    return made


def options(description: str | None) -> argparse.ArgumentParser:
    usual = Path(tempfile.gettempdir()) / "queryard-bench-ray"
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0, help="of TPC-H")
    parser.add_argument("--times", type=int, default=7, help="runs of each query")
    parser.add_argument("--memory", default="4 GB")
    parser.add_argument("--data", type=Path, default=usual, help="where data is made")
    parser.add_argument("--quick", action="store_true", help="few queries and runs")
    return parser

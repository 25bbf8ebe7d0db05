"""Clusters within one machine, data and tables for the benches of Ray."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import queryard
from queryard.backends.ray.cluster import SYSTEM_CONFIG
from queryard.backends.ray.importing import import_on_loopback
from queryard.workload.tpch import TABLES, generate, query

Plan = Literal["native", "staged"]
ROOT = Path(__file__).parents[2]
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


@contextlib.contextmanager
def cluster(*slots: int) -> Iterator[str]:
    """The address of a cluster with a node for each number of slots."""
    with grown_cluster(*slots) as made:
        made.grow(len(slots))
        yield made.address


class GrownCluster:
    """A cluster to which nodes are added."""

    def __init__(self, made: Any, slots: Sequence[int]) -> None:
        self.address = made.address
        self._made = made
        self._slots = slots
        self._nodes = 0

    def grow(self, nodes: int) -> None:
        """Have so many nodes; the slots of each are as was said, in turns."""
        for number in range(self._nodes, nodes):
            slots = self._slots[number % len(self._slots)]
            self._made.add_node(num_cpus=slots, object_store_memory=STORE_BYTES)
        self._nodes = nodes


@contextlib.contextmanager
def grown_cluster(*slots: int) -> Iterator[GrownCluster]:
    """A cluster on loopback, without nodes that run anything at first."""
    with _python_path():
        ray = import_on_loopback()
        from ray.cluster_utils import Cluster

        folder = tempfile.mkdtemp(prefix="qyb-", dir="/tmp" if Path("/tmp").is_dir() else None)
        head = {
            "num_cpus": 0,
            "object_store_memory": STORE_BYTES,
            "include_dashboard": False,
            "temp_dir": folder,
            "_system_config": dict(SYSTEM_CONFIG),  # Ray adds to it
        }
        made = Cluster(initialize_head=True, head_node_args=head)
        try:
            yield GrownCluster(made, slots)
        finally:
            ray.shutdown()
            made.shutdown()
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _python_path() -> Iterator[None]:
    """Processes of nodes find the package and the benches."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


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

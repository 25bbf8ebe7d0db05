"""What queries take on plain DuckDB: CPU and wall seconds of each run, alone and warm."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from rich.progress import track

from queryard.engine.instances.budget import memory_budget
from queryard.engine.plain import PlainDuckDB
from queryard.sql.catalog import Catalog

from .families import FamilyError


class Runs(NamedTuple):
    """The runs of one query, without the first, which warms up."""

    cpu_s: list[float]
    wall_s: list[float]


def measured(
    catalog: Catalog, texts: Mapping[str, str], threads: int, repeats: int
) -> dict[str, Runs]:
    """Run each so often, one after another, on so many threads; a bar is shown."""
    found = {}
    with PlainDuckDB(catalog, threads, memory_budget(None)) as duck:
        for name in track(texts, f"alone, threads: {threads}", transient=True):
            runs = [_one(duck, texts[name]) for _ in range(repeats + 1)]
            cpu_s, wall_s = zip(*runs[1:], strict=True)
            found[name] = Runs(list(cpu_s), list(wall_s))
    return found


def real_work(
    catalog: Catalog, texts: Mapping[str, str], repeats: int, file: Path | None = None
) -> dict[str, float]:
    """Core-seconds of each with one thread: the median of runs, or as a file of foreseen has it."""
    if file is None:
        runs = measured(catalog, texts, 1, repeats)
        return {name: statistics.median(runs[name].cpu_s) for name in texts}
    kept = json.loads(file.read_text(encoding="utf-8"))["queries"]
    known = {
        row["name"]: float(row["work_s"]) for row in kept if texts.get(row["name"]) == row["sql"]
    }
    if lost := sorted(texts.keys() - known.keys()):
        raise FamilyError(f"{file}: does not say what {lost[0]} takes, as it is written now")
    return known


def _one(duck: PlainDuckDB, sql: str) -> tuple[float, float]:
    cursor = duck.cursor()
    began, began_cpu = time.perf_counter(), time.process_time()
    cursor.arrow(sql)
    took = time.process_time() - began_cpu, time.perf_counter() - began
    cursor.close()
    return took

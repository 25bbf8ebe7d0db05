"""What it costs to run a query in tasks on a cluster: the constants of `estimate/spreading.py`.

Two nodes of one slot each on this machine. A table of many tiny files is counted in one task and
in many, so that hardly anything is computed: what is left is opening, and what a task takes beside
its work, at the driver and at its slot. Then rows are sent from every map to every reduce, and what
that takes beyond the same query with few rows is the price of a byte.

python -m bench.ray.overheads [--times 7] [--quick]: a minute, or half of one with --quick.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

import queryard
from queryard.estimate import spreading
from queryard.sql.catalog import canonical
from queryard.sql.planner import physical

from .nodes import all_joined, nodes

NODES = 2
FILES = 64
ROWS = 2_000_000
FEW_ROWS = 20_000
# What a row of the sent table takes in Arrow: a key, a number, and a text of 32 characters.
ROW_BYTES = 8 + 8 + 36


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    options = parser.parse_args(given)
    times = 3 if options.quick else options.times
    # Small tables are cut as well.
    canonical.SMALL_S = physical.SMALL_S = 0.0
    canonical.SPLIT_S = 1e-9
    with tempfile.TemporaryDirectory(prefix="qyb-data-") as name, nodes(*[1] * NODES) as cluster:
        folder = Path(name)
        made(folder)
        shared: dict[str, Any] = {"memory": "1 GB", "history": False, "statistics": "off"}
        with queryard.connect(folder, backend="ray", address=cluster.address, **shared) as session:
            all_joined(session, NODES)
            one_s = taken(session, "SELECT count(n) FROM one", "staged", times)
            native_s = taken(session, "SELECT count(n) FROM one", "native", times)
            many_s = taken(session, "SELECT count(n) FROM many", "staged", times)
            sent = (
                "SELECT count(*), max(text) FROM (SELECT n, max(text) AS text FROM {} GROUP BY n)"
            )
            large_s = taken(session, sent.format("large"), "staged", times)
            small_s = taken(session, sent.format("small"), "staged", times)
            here_s = taken(session, sent.format("large"), "native", times)
    print(f"one task {one_s:.3f} s, natively {native_s:.3f} s; OPEN_S is {spreading.OPEN_S:g}")
    model_s = spreading.OPEN_S + FILES * spreading.TASK_S + FILES / NODES * spreading.WAVE_S
    print(f"{FILES} tasks {many_s:.3f} s; by OPEN_S, TASK_S and WAVE_S it is {model_s:.3f} s")
    # What is computed is about what the native query computes on one slot, shared by two.
    moved = max(0.0, large_s - small_s - here_s / 2)
    print(
        f"{ROWS * ROW_BYTES / 1e6:.0f} MB sent: {large_s:.3f} s, natively {here_s:.3f} s, few rows "
        f"{small_s:.3f} s: {moved / (ROWS * ROW_BYTES):.2g} s per byte; "
        f"BYTE_S is {spreading.BYTE_S:g}"
    )


def made(folder: Path) -> None:
    """The tables of this bench."""
    (folder / "many").mkdir()
    for number in range(FILES):
        duckdb.sql(f"COPY (SELECT {number} AS n) TO '{folder}/many/{number}.parquet'")
    duckdb.sql(f"COPY (SELECT 1 AS n) TO '{folder}/one.parquet'")
    for name, rows in (("large", ROWS), ("small", FEW_ROWS)):
        source = f"SELECT range AS n, md5(range::VARCHAR) AS text FROM range({rows})"
        duckdb.sql(f"COPY ({source}) TO '{folder}/{name}.parquet' (ROW_GROUP_SIZE {rows // 4})")


def taken(session: queryard.Session, sql: str, plan: Any, times: int) -> float:
    """The median of some runs; the first one is not counted."""
    seconds = []
    for _ in range(times + 1):
        began_s = time.perf_counter()
        session.sql(sql, plan=plan).fetchall()
        seconds.append(time.perf_counter() - began_s)
    return statistics.median(seconds[1:])


if __name__ == "__main__":
    main()

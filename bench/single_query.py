"""One query at a time: Queryard beside plain DuckDB with as many threads, on TPC-H Parquet.

Run by itself: `python -m bench.single_query --scale 5 [--busy] [--plan staged] [--memory 1GB]`.
Both run the same statement on the same files, in turn, and hand over an Arrow table. `--busy` adds
a Python thread that does nothing but hold the interpreter's lock as often as it can.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import duckdb

import queryard
from queryard.workload import tpch

# Of shorter queries the milliseconds that are added count, of longer ones the ratio.
SHORT_S = 0.05
TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")


class BusyThread:
    """A thread that computes in Python all the time."""

    def __enter__(self) -> None:
        self._stop = False
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self._thread.start()

    def _spin(self) -> None:
        total = 0
        while not self._stop:
            total += sum(range(100))

    def __exit__(self, *exception: object) -> None:
        self._stop = True
        self._thread.join()


def _timed(run: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    answer = run()
    return time.perf_counter() - began, answer


def _peer(folder: Path, threads: int) -> duckdb.DuckDBPyConnection:
    peer = duckdb.connect(config={"threads": threads})
    for table in TABLES:
        peer.execute(f"CREATE VIEW {table} AS FROM read_parquet('{folder / table}.parquet')")
    return peer


def compare(
    folder: Path, numbers: list[int], plan: str, repeats: int, slots: int, memory: str | None
) -> list[tuple[int, float, float]]:
    """(query, DuckDB's median seconds, Queryard's)."""
    peer = _peer(folder, slots)
    rows = []
    with queryard.connect(folder, slots=slots, memory=memory, plan=plan) as qy:
        for number in numbers:
            sql = tpch.query(number)
            theirs, ours = [], []
            for turn in range(repeats + 1):
                # The second system finds warmer caches: alternate the order.
                pairs = [
                    (theirs, lambda sql=sql: peer.sql(sql).to_arrow_table()),
                    (ours, lambda sql=sql: qy.sql(sql).arrow()),
                ]
                for times, run in pairs if turn % 2 else reversed(pairs):
                    times.append(_timed(run)[0])
            # The first round warms both up.
            row = (number, statistics.median(theirs[1:]), statistics.median(ours[1:]))
            rows.append(row)
            print(
                f"q{number:02} duckdb {row[1]:7.3f} s  queryard {row[2]:7.3f} s  "
                f"ratio {row[2] / row[1]:5.2f}",
                flush=True,
            )
        report = qy.report()
        print(
            f"begun again: {report.restarts} of {report.sprints} short queries, after "
            f"{report.restart_s:.2f} s in all"
        )
    return rows


def trivial(slots: int, repeats: int) -> tuple[float, float]:
    """Median seconds of `SELECT 42`: DuckDB's and Queryard's."""
    peer = duckdb.connect(config={"threads": slots})
    with queryard.connect(slots=slots) as qy:
        times: list[list[float]] = [[], []]
        for _ in range(repeats):
            times[0].append(_timed(lambda: peer.sql("SELECT 42").fetchall())[0])
            times[1].append(_timed(lambda: qy.sql("SELECT 42").fetchall())[0])
    return statistics.median(times[0]), statistics.median(times[1])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.single_query", description=__doc__)
    parser.add_argument("--data", type=Path, help="TPC-H Parquet, made if not given")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--queries", default="", help="such as 1,3,9; all by default")
    parser.add_argument("--plan", default="native", choices=("native", "staged"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--memory", help="the budget, such as 1GB")
    parser.add_argument("--busy", action="store_true", help="beside a busy Python thread")
    given = parser.parse_args(arguments)
    numbers = [int(n) for n in given.queries.split(",") if n] or list(range(1, 23))
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.data or Path(temporary)
        if given.data is None:
            tpch.generate(folder, given.scale)
        plain, ours = trivial(given.slots, 50)
        print(f"SELECT 42: duckdb {plain * 1e3:.2f} ms, queryard {ours * 1e3:.2f} ms")
        with BusyThread() if given.busy else nullcontext():
            rows = compare(folder, numbers, given.plan, given.repeats, given.slots, given.memory)
    added_ms = [(ours - theirs) * 1e3 for _, theirs, ours in rows if theirs < SHORT_S]
    if added_ms:
        print(f"below {SHORT_S * 1e3:g} ms: {statistics.median(added_ms):+.1f} ms (median)")
    long = [row for row in rows if row[1] >= SHORT_S] or rows
    ratios = [ours / theirs for _, theirs, ours in long]
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(
        f"{given.plan}: geometric mean {mean:.3f}, worst {max(ratios):.2f} of {len(ratios)} longer"
    )


if __name__ == "__main__":
    main()

"""One query at a time: Queryard beside plain DuckDB with as many threads, on TPC-H Parquet.

Run by itself: `python -m bench.single_query --scale 5 [--busy] [--plan staged] [--memory 1GB]`, or
with another family of queries as `--family ssb --data DIR`.
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
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import duckdb

import queryard
from queryard.core.errors import QueryardError, unknown_name
from queryard.workload import tpch

from .families import FamilyError, family

# A shorter query is judged by the milliseconds that are added to it.
SHORT_S = 0.05


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


def _peer(places: Mapping[str, str], threads: int) -> duckdb.DuckDBPyConnection:
    peer = duckdb.connect(config={"threads": threads})
    for table, file in places.items():
        peer.execute(f"CREATE VIEW {table} AS FROM read_parquet('{file}')")
    return peer


def compare(
    places: Mapping[str, str],
    texts: Mapping[str, str],
    plan: str,
    repeats: int,
    slots: int,
    memory: str | None,
) -> list[tuple[str, float, float]]:
    """(query, DuckDB's median seconds, Queryard's)."""
    peer = _peer(places, slots)
    rows = []
    with queryard.connect(tables=places, slots=slots, memory=memory, plan=plan) as qy:
        for name, sql in texts.items():
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
            row = (name, statistics.median(theirs[1:]), statistics.median(ours[1:]))
            rows.append(row)
            print(
                f"{name} duckdb {row[1]:7.3f} s  queryard {row[2]:7.3f} s  "
                f"ratio {row[2] / row[1]:5.2f}",
                flush=True,
            )
        report = qy.report()
        print(
            f"begun again: {report.restarts} of {report.sprints} short queries, after "
            f"{report.restart_s:.2f} s in all"
        )
    return rows


def told(rows: Sequence[tuple[str, float, float]]) -> str:
    """Ratios of the queries above 50 ms, and milliseconds added to the others.

    >>> told([("a", 1.0, 1.1), ("b", 0.01, 0.013)])
    'geometric mean 1.100, worst 1.10 of 1 above 50 ms; 3.0 ms added to 1 below (most 3.0)'
    """
    ratios = [ours / theirs for _, theirs, ours in rows if theirs >= SHORT_S]
    added_ms = [(ours - theirs) * 1e3 for _, theirs, ours in rows if theirs < SHORT_S]
    parts = []
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        parts.append(
            f"geometric mean {mean:.3f}, worst {max(ratios):.2f} of {len(ratios)} above 50 ms"
        )
    if added_ms:
        parts.append(
            f"{statistics.fmean(added_ms):.1f} ms added to {len(added_ms)} below "
            f"(most {max(added_ms):.1f})"
        )
    return "; ".join(parts)


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
    parser.add_argument("--data", type=Path, help="its Parquet files; TPC-H is made if not given")
    parser.add_argument("--family", help="ssb, db_benchmark, drawn:SEED, tpcds; default: TPC-H")
    parser.add_argument("--frozen", help="for a family for reporting: the model's commit")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--queries", default="", help="such as 1,3,9 or q1.1,q4.2; default: all")
    parser.add_argument("--plan", default="native", choices=("native", "staged"))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--memory", help="the budget, such as 1GB")
    parser.add_argument("--busy", action="store_true", help="beside a busy Python thread")
    given = parser.parse_args(arguments)
    if given.family and given.data is None:
        parser.error("--family needs --data")
    names = [name for name in given.queries.split(",") if name]
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.data or Path(temporary)
        try:
            if given.family:
                places, texts = _family(given.family, folder, names, given.frozen)
            else:
                if given.data is None:
                    tpch.generate(folder, given.scale)
                places = {table: str(folder / f"{table}.parquet") for table in tpch.TABLES}
                numbers = map(int, names or range(1, 23))
                texts = {f"q{number:02}": tpch.query(number) for number in numbers}
        except QueryardError as error:
            raise SystemExit(f"error: {error}") from error
        plain, ours = trivial(given.slots, 50)
        print(f"SELECT 42: duckdb {plain * 1e3:.2f} ms, queryard {ours * 1e3:.2f} ms")
        with BusyThread() if given.busy else nullcontext():
            rows = compare(places, texts, given.plan, given.repeats, given.slots, given.memory)
    print(f"{given.plan}: {told(rows)}")


def _family(
    name: str, folder: Path, names: Sequence[str], frozen: str | None
) -> tuple[dict[str, str], dict[str, str]]:
    """The tables of a family, and the texts of its queries that are asked for."""
    chosen = family(name)
    chosen.check_frozen(frozen)
    texts = {query.name: query.sql for query in chosen.queries(folder)}
    for one in names:
        if one not in texts:
            raise FamilyError(unknown_name("query", one, texts))
    return chosen.places(folder), {one: texts[one] for one in names or texts}


if __name__ == "__main__":
    main()

"""Ten different aggregations over one table, at once and one after another: shared or not.

    python -m bench.shared.ten_aggregations --quick

The table is TPC-H's lineitem, as text (CSV, gzip, JSON lines) and as Parquet. Plain DuckDB, in the
same process, answers the same queries at the same times, each on a connection of its own. Work is
the processor time of the process; all figures are ratios to plain DuckDB's. Every answer is
compared with DuckDB's. Statistics are not collected meanwhile: that is work for later queries.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

import queryard
from queryard.workload import tpch

from .aggregations import AGGREGATIONS, STRINGS

QUERIES = [sql.format("lineitem") for sql in AGGREGATIONS.values()]
STRING_QUERIES = [sql.format("lineitem") for sql in STRINGS.values()]
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Outcome:
    """Processor seconds, the mean time to an answer, and that of the last."""

    work_s: float
    mean_s: float
    last_s: float


def timed(asks: Sequence[Callable[[], Any]], gap_s: float) -> tuple[Outcome, list[Any]]:
    """Ask all, one every `gap_s`, each on a thread of its own; what it cost, and the answers."""
    answers: list[Any] = [None] * len(asks)
    took = [0.0] * len(asks)

    def ask(place: int) -> None:
        began = time.perf_counter()
        answers[place] = asks[place]()
        took[place] = time.perf_counter() - began

    threads = [threading.Thread(target=ask, args=[place]) for place in range(len(asks))]
    work_s, began = time.process_time(), time.perf_counter()
    for place, thread in enumerate(threads):
        time.sleep(max(0.0, began + place * gap_s - time.perf_counter()))
        thread.start()
    for thread in threads:
        thread.join()
    last_s = time.perf_counter() - began
    return Outcome(time.process_time() - work_s, sum(took) / len(took), last_s), answers


def plain(source: str, queries: Sequence[str], gap_s: float) -> tuple[Outcome, list[Any]]:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW lineitem AS SELECT * FROM '{source}'")

        def asking(sql: str) -> Callable[[], Any]:
            cursor = connection.cursor()
            return lambda: cursor.execute(sql).fetchall()

        return timed([asking(sql) for sql in queries], gap_s)


def shared(
    session: queryard.Session, queries: Sequence[str], gap_s: float, plan: Any
) -> tuple[Outcome, list[Any]]:
    def asking(sql: str) -> Callable[[], Any]:
        return lambda: session.submit(sql, plan=plan).result().fetchall()

    return timed([asking(sql) for sql in queries], gap_s)


def check(found: list[Any], wanted: list[Any]) -> None:
    """Raise unless the answers are equal, but for the order in which floats are added."""
    for mine, theirs in zip(found, wanted, strict=True):
        assert len(mine) == len(theirs), f"{len(mine)} rows instead of {len(theirs)}"
        for row, other in zip(mine, theirs, strict=True):
            for a, b in zip(row, other, strict=True):
                same = math.isclose(a, b, rel_tol=TOLERANCE) if isinstance(a, float) else a == b
                assert same, f"{row} instead of {other}"


def told(name: str, found: Outcome, base: Outcome, limit: str = "") -> None:
    work, mean = found.work_s / base.work_s, found.mean_s / base.mean_s
    print(
        f"  {name:34} work {work:5.2f}  mean {mean:5.2f}"
        f"  last {found.last_s / base.last_s:5.2f}   ({found.work_s:.1f} s, {found.mean_s:.2f} s)"
        f"  {limit}",
        flush=True,
    )


def scenario(name: str, source: Path, queries: Sequence[str], limits: tuple[str, str, str]) -> None:
    """One form of the table: at once, over half a scan, again, and without sharing."""
    print(f"{name}: {source.stat().st_size / 1e6:.0f} MB", flush=True)
    base, wanted = plain(str(source), queries, 0.0)
    began = time.perf_counter()
    plain(str(source), queries[:1], 0.0)
    gap_s = (time.perf_counter() - began) / 2 / len(queries)
    spread, _ = plain(str(source), queries, gap_s)
    tables = {"lineitem": str(source)}
    print(f"  plain DuckDB: {base.work_s:.1f} s of work, {base.mean_s:.2f} s to answer", flush=True)
    with queryard.connect(tables=tables, history=False, statistics="off") as session:
        found, answers = shared(session, queries, 0.0, "auto")
        check(answers, wanted)
        told("at once", found, base, limits[0])
        found, answers = shared(session, queries, 0.0, "auto")
        check(answers, wanted)
        told("again, segments kept", found, base, limits[2])
    with queryard.connect(tables=tables, history=False, statistics="off") as session:
        found, answers = shared(session, queries, gap_s, "auto")
        check(answers, wanted)
        told("over half a scan", found, spread, limits[1])
    with queryard.connect(tables=tables, history=False, statistics="off") as session:
        found, answers = shared(session, queries, gap_s, "native")
        check(answers, wanted)
        told("over half a scan, not shared", found, spread)


def made(folder: Path, scale: float) -> None:
    """The forms of the table, unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "lineitem.parquet"
    if not source.exists():
        tpch.generate(folder, scale)
    forms = {"csv": "", "csv.gz": "(FORMAT csv, COMPRESSION gzip)", "json": "(FORMAT json)"}
    for ending, options in forms.items():
        target = folder / f"lineitem.{ending}"
        if not target.exists():
            duckdb.sql(f"COPY (FROM '{source}') TO '{target}' {options}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="scale factor 0.1 instead of 1")
    parser.add_argument("--scale", type=float, default=1.0, help="TPC-H's scale factor")
    parser.add_argument("--data", type=Path, help="where the tables are kept")
    parser.add_argument("--only", help="csv, parquet, strings, json or csv.gz")
    given = parser.parse_args()
    scale = 0.1 if given.quick else given.scale
    # It is imported with the first query that needs it; half a second, once per process.
    import queryard.sql.planner  # noqa: F401

    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.data or Path(temporary)) / f"sf{scale:g}"
        made(folder, scale)
        text = ("≤ 0.30 work", "≤ 0.35 work, 0.30 mean", "≤ 0.10 work")
        parquet = ("≤ 1.05 work", "≤ 1.05 work", "≤ 1.05 work")
        scenarios = {
            "csv": ("CSV", "lineitem.csv", QUERIES, text),
            "parquet": ("Parquet, narrow columns", "lineitem.parquet", QUERIES, parquet),
            "strings": ("Parquet, long strings", "lineitem.parquet", STRING_QUERIES, ("", "", "")),
            "json": ("JSON lines", "lineitem.json", QUERIES, ("", "", "")),
            "csv.gz": ("gzip CSV", "lineitem.csv.gz", QUERIES, ("", "", "")),
        }
        for key, (name, file, asked, limits) in scenarios.items():
            if given.only in (None, key):
                scenario(name, folder / file, asked, limits)


if __name__ == "__main__":
    main()

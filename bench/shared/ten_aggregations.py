"""Ten different aggregations over one table, at once and one after another: shared or not.

    python -m bench.shared.ten_aggregations --quick

The table is TPC-H's lineitem, as text (CSV, gzip, JSON lines) and as Parquet. Plain DuckDB, in the
same process, answers the same queries at the same times, each on a connection of its own. Work is
the processor time of the process; all figures are ratios to plain DuckDB's. Every answer is
compared with DuckDB's. Statistics are not collected meanwhile: that is work for later queries.
Under each row stands what the mean response waited for, as `bench.shared.waits` divides it; the
same queries in MRShare's batches are the comparison.
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
from queryard.history import HistoryReader
from queryard.workload import tpch

from .aggregations import AGGREGATIONS, STRINGS
from .waits import Parsing, Span, Waits, mean_waits

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


class Shared:
    """A session over one form of the table, whose rounds of queries are timed and explained."""

    def __init__(self, source: Path, profile: str | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._history = Path(self._folder.name) / "history.sqlite"
        self._session = queryard.connect(
            tables={"lineitem": str(source)},
            history=self._history,
            statistics="off",
            profile=profile,
        )
        host = self._session.host
        self._parsing = Parsing(host.engine.segments, host.now)

    def __enter__(self) -> Shared:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()
        self._folder.cleanup()

    def round(
        self, queries: Sequence[str], gap_s: float, plan: Any = "auto"
    ) -> tuple[Outcome, list[Any], Waits | None]:
        """What it cost, the answers, and what the mean response waited for."""
        session, asked = self._session, dict[str, Span]()

        def asking(sql: str) -> Callable[[], Any]:
            def ask() -> Any:
                submitted_s = session.host.now()
                handle = session.submit(sql, plan=plan)
                rows = handle.result().fetchall()
                asked[handle.id] = submitted_s, session.host.now()
                return rows

            return ask

        outcome, answers = timed([asking(sql) for sql in queries], gap_s)
        session.host.flush_history()
        with HistoryReader(self._history) as reader:
            journal = reader.journal(session.host.session_name)
        return outcome, answers, mean_waits(journal, self._parsing.spans, asked)


def check(found: list[Any], wanted: list[Any]) -> None:
    """Raise unless the answers are equal, but for the order in which floats are added."""
    for mine, theirs in zip(found, wanted, strict=True):
        assert len(mine) == len(theirs), f"{len(mine)} rows instead of {len(theirs)}"
        for row, other in zip(mine, theirs, strict=True):
            for a, b in zip(row, other, strict=True):
                same = math.isclose(a, b, rel_tol=TOLERANCE) if isinstance(a, float) else a == b
                assert same, f"{row} instead of {other}"


def told(
    name: str, found: Outcome, base: Outcome, waits: Waits | None = None, limit: str = ""
) -> None:
    work, mean = found.work_s / base.work_s, found.mean_s / base.mean_s
    print(
        f"  {name:36} work {work:5.2f}  mean {mean:5.2f}"
        f"  last {found.last_s / base.last_s:5.2f}   ({found.work_s:.1f} s, {found.mean_s:.2f} s)"
        f"  {limit}",
        flush=True,
    )
    if waits is not None:
        print(f"      mean seconds: {waits}", flush=True)


def scenario(name: str, source: Path, queries: Sequence[str], limits: tuple[str, str, str]) -> None:
    """One form of the table: at once, over half a scan, again, in batches, and without sharing."""
    print(f"{name}: {source.stat().st_size / 1e6:.0f} MB", flush=True)
    base, wanted = plain(str(source), queries, 0.0)
    began = time.perf_counter()
    plain(str(source), queries[:1], 0.0)
    gap_s = (time.perf_counter() - began) / 2 / len(queries)
    spread, _ = plain(str(source), queries, gap_s)
    print(f"  plain DuckDB: {base.work_s:.1f} s of work, {base.mean_s:.2f} s to answer", flush=True)

    def row(what: str, on: Shared, gap_s: float, limit: str = "", plan: Any = "auto") -> None:
        found, answers, waits = on.round(queries, gap_s, plan)
        check(answers, wanted)
        told(what, found, spread if gap_s else base, waits, limit)

    with Shared(source) as session:
        row("at once", session, 0.0, limits[0])
        row("again, segments kept", session, 0.0, limits[2])
    with Shared(source) as session:
        row("over half a scan", session, gap_s, limits[1])
    with Shared(source, "mrshare") as session:
        row("at once, MRShare's batches", session, 0.0)
    with Shared(source, "mrshare") as session:
        row("over half a scan, MRShare's batches", session, gap_s)
    with Shared(source) as session:
        row("over half a scan, not shared", session, gap_s, plan="native")


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


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="scale factor 0.1 instead of 1")
    parser.add_argument("--scale", type=float, default=1.0, help="TPC-H's scale factor")
    parser.add_argument("--data", type=Path, help="where the tables are kept")
    parser.add_argument("--only", help="csv, parquet, strings, json or csv.gz")
    given = parser.parse_args(arguments)
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

"""What segments cost: ten aggregations over lineitem, scanned one by one or parsed once.

Run by itself: `python -m bench.shared.segments [--scale 1] [--quick] [--formats csv,json]`. All
figures are processor seconds of one thread; plain DuckDB runs the same statements on the same
files in the same run, on one thread, too. `cut` is what finding the segments takes, `make` parsing
all columns of the ten and writing them down, `ride` one aggregation over what was made.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from queryard.engine.segments import SegmentStore
from queryard.sql.catalog import Table, open_catalog
from queryard.sql.catalog.segments import Segments, segments_of
from queryard.workload import tpch

from .aggregations import AGGREGATIONS, STRINGS, columns_of

T = TypeVar("T")

ENDINGS: Mapping[str, tuple[str, str]] = {
    "csv": ("csv", "(FORMAT csv, HEADER)"),
    "quoted csv": ("quoted.csv", "(FORMAT csv, HEADER, FORCE_QUOTE *)"),
    "csv.gz": ("csv.gz", "(FORMAT csv, HEADER, COMPRESSION gzip)"),
    "json": ("jsonl", "(FORMAT json)"),
    "json.gz": ("jsonl.gz", "(FORMAT json, COMPRESSION gzip)"),
    "parquet": ("parquet", "(FORMAT parquet, COMPRESSION snappy)"),
    "parquet strings": ("parquet", "(FORMAT parquet, COMPRESSION snappy)"),
}


def timed(run: Callable[[], T]) -> tuple[float, T]:
    """Processor seconds of this thread, and what came of it."""
    began_s = time.thread_time()
    found = run()
    return time.thread_time() - began_s, found


def measure(table: Table, statements: Mapping[str, str], repeats: int) -> dict[str, float]:
    """Seconds of everything, for the statements over one table."""
    connection = duckdb.connect(config={"threads": 1})
    table.columns  # noqa: B018 - opened by both
    scans = []
    answers = {}
    for name, sql in statements.items():
        run = _running(connection, sql.format(table.relation))
        tries = [timed(run) for _ in range(repeats)]
        scans.append(min(seconds for seconds, _ in tries))
        answers[name] = tries[0][1]
    cut_s, segments = timed(lambda: segments_of(table))
    union = sorted({column for sql in statements.values() for column in columns_of(sql)})
    with tempfile.TemporaryDirectory() as folder:
        make_s, store = _made(table, segments, union, folder)
        for _ in range(repeats - 1):
            store.close()
            seconds, store = _made(table, segments, union, folder)
            make_s = min(make_s, seconds)
        rides, wholes = [], []
        for name, sql in statements.items():

            def ride(sql: str = sql) -> None:
                for segment in segments:
                    with store.reading(table, segment, columns_of(sql)) as relation:
                        connection.execute(sql.format(relation)).fetchall()

            rides.append(min(timed(ride)[0] for _ in range(repeats)))
            with store.complete(table, columns_of(sql)) as relation:
                assert relation is not None
                tries = [timed(_running(connection, sql.format(relation))) for _ in range(repeats)]
                wholes.append(min(seconds for seconds, _ in tries))
                assert same(tries[0][1], answers[name]), f"{name}: another answer than DuckDB's"
        kept = store.used_bytes[0]
        store.close()
    connection.close()
    plain_s, ride_s = sum(scans), sum(rides)
    return {
        "MB": table.bytes / 1e6,
        "segments": len(segments),
        "scan": plain_s / len(scans),
        "cut": cut_s,
        "make": make_s,
        "ride": ride_s / len(rides),
        "kept MB": kept / 1e6,
        "shared/plain": (cut_s + make_s + ride_s) / plain_s,
        "again/plain": ride_s / plain_s,
        "whole/plain": sum(wholes) / plain_s,
    }


def _made(
    table: Table, segments: Segments, columns: Sequence[str], folder: str
) -> tuple[float, SegmentStore]:
    store = SegmentStore(2**34, 0, folder)

    def make() -> None:
        for segment in segments:
            with store.reading(table, segment, columns):
                pass

    return timed(make)[0], store


def same(rows: Sequence[Sequence[Any]], others: Sequence[Sequence[Any]]) -> bool:
    """Whether rows are equal, up to the order in which numbers were added."""
    return len(rows) == len(others) and all(
        math.isclose(one, other, rel_tol=1e-9) if isinstance(one, float) else one == other
        for row, its in zip(rows, others, strict=True)
        for one, other in zip(row, its, strict=True)
    )


def _running(connection: duckdb.DuckDBPyConnection, sql: str) -> Callable[[], list[Any]]:
    return lambda: connection.execute(sql).fetchall()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="of TPC-H")
    parser.add_argument("--quick", action="store_true", help="scale 0.05, one repeat")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--formats", default=",".join(ENDINGS))
    given = parser.parse_args(arguments)
    scale, repeats = (0.05, 1) if given.quick else (given.scale, given.repeats)
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        tpch.generate(folder / "tpch", scale)
        head = ""
        for name in given.formats.split(","):
            ending, options = ENDINGS[name]
            path = folder / f"lineitem.{ending}"
            if not path.exists():
                source = folder / "tpch" / "lineitem.parquet"
                duckdb.sql(f"COPY (FROM '{source}') TO '{path}' {options}")
            table = open_catalog(tables={"lineitem": str(path)})["lineitem"]
            found = measure(table, STRINGS if "strings" in name else AGGREGATIONS, repeats)
            if not head:
                head = f"{'':16}" + "".join(f"{key:>13}" for key in found)
                print(head)
            print(f"{name:16}" + "".join(f"{value:13.3f}" for value in found.values()), flush=True)


if __name__ == "__main__":
    main()

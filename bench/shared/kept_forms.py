"""Would sharing pay for Parquet, and in which form kept: `python -m bench.shared.kept_forms`.

Ten aggregations over lineitem, once over long strings and once over narrow columns: what scanning
the file takes each of them, what it takes to make its columns once for all, and what a query takes
on what was made. Processor seconds, one thread; `pays from` is the number of queries from which
making is less than was saved, `ten` how many times less work sharing is for the ten.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import duckdb

from queryard.workload import tpch

from .aggregations import AGGREGATIONS, STRINGS, columns_of

FORMS = ("parquet, snappy", "parquet, uncompressed", "temporary table", "arrow")
CODECS = ("snappy", "zstd")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.25, help="of TPC-H; default: %(default)s")
    parser.add_argument("--repeats", type=int, default=2)
    given = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory() as where,
        duckdb.connect(config={"threads": 1}) as connection,
    ):
        # Files of the same name are made again and again.
        connection.execute("SET enable_external_file_cache = false")
        tpch.generate(Path(where) / "tpch", given.scale)
        source = Path(where) / "tpch" / "lineitem.parquet"
        print(f"{'':40}{'scan':>8}{'make':>8}{'ride':>8}{'pays from':>11}{'ten':>7}")
        for codec in CODECS:
            path = Path(where) / f"{codec}.parquet"
            options = f"(FORMAT parquet, COMPRESSION {codec})"
            connection.execute(f"COPY (FROM '{source}') TO '{path}' {options}")
            for name, statements in (("strings", STRINGS), ("narrow", AGGREGATIONS)):
                measure(connection, path, f"{codec}, {name}", statements, given.repeats)


def measure(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    name: str,
    statements: Mapping[str, str],
    repeats: int,
) -> None:
    """Print the figures of one file and some statements, in every form."""

    def each_s(relation: str) -> float:
        """What one of the statements takes, in the mean."""
        texts = [sql.format(relation) for sql in statements.values()]
        return sum(best_s(partial(_answered, connection, text), repeats) for text in texts) / len(
            texts
        )

    columns = sorted({column for sql in statements.values() for column in columns_of(sql)})
    select = f"SELECT {', '.join(columns)} FROM '{path}'"
    scan_s = each_s(f"'{path}'")
    for form in FORMS:
        kept = path.with_name("kept.parquet")
        if form.startswith("parquet"):
            options = f"(FORMAT parquet, COMPRESSION {form.partition(', ')[2]})"
            copy = f"COPY ({select}) TO '{kept}' {options}"
            make_s = best_s(partial(connection.execute, copy), repeats)
            ride_s = each_s(f"'{kept}'")
        elif form == "arrow":
            make_s = best_s(
                lambda: connection.register("kept", connection.sql(select).to_arrow_table()),
                repeats,
            )
            ride_s = each_s("kept")
            connection.unregister("kept")
        else:
            make = f"CREATE OR REPLACE TEMP TABLE kept AS {select}"
            make_s = best_s(partial(connection.execute, make), repeats)
            ride_s = each_s("kept")
            connection.execute("DROP TABLE kept")
        pays = make_s / (scan_s - ride_s) if scan_s > ride_s else math.inf
        ten = 10 * scan_s / (make_s + 10 * ride_s)
        print(
            f"{name + ', ' + form:40}{scan_s:8.3f}{make_s:8.3f}{ride_s:8.3f}{pays:11.1f}{ten:7.2f}",
            flush=True,
        )


def _answered(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    connection.execute(sql).fetchall()


def best_s(run: Callable[[], object], repeats: int) -> float:
    """Processor seconds, of the best of some tries."""
    tries = []
    for _ in range(repeats):
        began_s = time.process_time()
        run()
        tries.append(time.process_time() - began_s)
    return min(tries)


if __name__ == "__main__":
    main()

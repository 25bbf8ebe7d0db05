"""A million rows of four columns, over HTTP and over PostgreSQL, beside a real PostgreSQL server.

Columns are BIGINT, DOUBLE, DATE and VARCHAR. Targets: Arrow over HTTP at least half the speed of
an embedded session; PostgreSQL's protocol as text at least 0.7 and binary 0.9 of a real PostgreSQL
server, ADBC and connectorx 1.5. With psycopg the speed is that of libpq's result: no Python objects
are made of the rows. "From memory" is what a client reaches if a process sends it Queryard's bytes
without having to make them: no server that sends these bytes is faster.

python -m bench.service.rows [--times 7]: two minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import psycopg
from psycopg import pq

import queryard

from .from_memory import Recording, from_memory
from .real_postgres import postgres
from .setting import Served, options, server, table

COUNT = 1_000_000
COLUMNS = "id, x, day, name"
SQL = f"SELECT {COLUMNS} FROM rows"


def make(file: Path, count: int) -> None:
    """The rows as Parquet."""
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    duckdb.sql(
        f"COPY (SELECT i AS id, i * 0.37::DOUBLE AS x, DATE '1992-01-01' + (i % 2500)::INT AS day, "
        f"'customer ' || (i * 7919 % 100003) AS name FROM range({count}) r(i)) "
        f"TO '{file}' (FORMAT parquet)"
    )


def bench(given: argparse.Namespace) -> None:
    count = 50_000 if given.quick else COUNT
    times = 2 if given.quick else given.times
    file = given.data / f"rows-double-{count}.parquet"
    make(file, count)
    tables = {"rows": str(file)}
    with contextlib.ExitStack() as stack:
        embedded = stack.enter_context(queryard.connect(tables=tables, history=False))
        served = stack.enter_context(server(tables))
        remote = queryard.connect(served.http, token=served.secrets["bench"])
        stack.callback(remote.close)
        ours = served.dsn("bench")
        ways: dict[str, Callable[[], object]] = {
            "embedded, Arrow": lambda: embedded.sql(SQL).arrow(),
            "HTTP, Arrow": lambda: remote.sql(SQL).arrow(),
            **postgres_ways("Queryard", ours, served.url("bench"), stack),
            **_from_memory(served, stack),
        }
        theirs = stack.enter_context(postgres())
        if theirs is not None:
            _fill(theirs, file)
            ways |= postgres_ways("PostgreSQL", theirs, _as_url(theirs), stack)
        else:
            print("PostgreSQL is not installed here: no peer (apt-get install postgresql)")
        found: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(times + 1):
            for name, way in ways.items():
                began = time.perf_counter()
                way()
                if turn:  # the first is not counted
                    found[name].append(time.perf_counter() - began)
    speed = {name: count / statistics.median(each) / 1e6 for name, each in found.items()}
    rows = []
    for name, value in speed.items():
        peer, most = _peer(name)
        share = value / speed[peer] if peer in speed else None
        rows.append((name, value, peer, "" if share is None else share, most))
    title = f"{count:,} rows × 4 columns, million rows per second (median of {times})"
    table(title, ("way", "M rows/s", "peer", "of the peer", "target"), rows, given.out)


def postgres_ways(
    name: str, dsn: str, url: str, stack: contextlib.ExitStack
) -> dict[str, Callable[[], object]]:
    """How clients read the rows over PostgreSQL's protocol."""
    import adbc_driver_postgresql.dbapi as adbc
    import connectorx

    connection = stack.enter_context(psycopg.connect(dsn, autocommit=True))
    arrow = stack.enter_context(adbc.connect(url, autocommit=True))

    def libpq(form: int) -> None:
        result = connection.pgconn.exec_params(SQL.encode(), None, result_format=form)
        if result.status != pq.ExecStatus.TUPLES_OK:
            raise SystemExit(f"error: {name}: {result.error_message!r}")

    def by_adbc() -> None:
        with arrow.cursor() as cursor:
            cursor.execute(SQL)
            cursor.fetch_arrow_table()

    return {
        f"{name}, text": lambda: libpq(0),
        f"{name}, binary": lambda: libpq(1),
        f"{name}, ADBC": by_adbc,
        f"{name}, connectorx": lambda: connectorx.read_sql(url, SQL, return_type="arrow"),
    }


def _from_memory(served: Served, stack: contextlib.ExitStack) -> dict[str, Callable[[], object]]:
    """The same ways from a process that sends what Queryard has sent once."""
    with (
        contextlib.closing(Recording(served.postgres_port)) as recording,
        contextlib.ExitStack() as own,
    ):
        for way in _at_port("recorded", served, recording.port, own).values():
            way()
    port = stack.enter_context(from_memory(recording.answers))
    return _at_port("from memory", served, port, stack)


def _at_port(
    name: str, served: Served, port: int, stack: contextlib.ExitStack
) -> dict[str, Callable[[], object]]:
    there = replace(served, postgres_port=port)
    return postgres_ways(name, there.dsn("bench"), there.url("bench"), stack)


TARGETS = {"text": "≥ 0.7", "binary": "≥ 0.9", "ADBC": "≥ 1.5", "connectorx": "≥ 1.5"}


def _peer(name: str) -> tuple[str, str]:
    server_name, _, way = name.partition(", ")
    if name == "HTTP, Arrow":
        return "embedded, Arrow", "≥ 0.5"
    if server_name == "Queryard":
        return f"PostgreSQL, {way}", TARGETS[way]
    if server_name == "from memory":
        return f"PostgreSQL, {way}", ""
    return "", ""


def _fill(dsn: str, file: Path) -> None:
    """Copy the rows into a table of the real server."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "CREATE UNLOGGED TABLE rows (id bigint, x double precision, day date, name text)"
        )
        frame = duckdb.sql(f"SELECT {COLUMNS} FROM '{file}'").to_arrow_table()
        with connection.cursor().copy("COPY rows FROM STDIN") as copy:
            for batch in frame.to_batches(max_chunksize=10_000):
                rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                copy.write("".join("\t".join(map(str, row)) + "\n" for row in rows))
        connection.execute("VACUUM ANALYZE rows")


def _as_url(dsn: str) -> str:
    parts = dict(part.split("=", 1) for part in dsn.split())
    return f"postgresql://{parts['user']}@{parts['host']}:{parts['port']}/{parts['dbname']}"


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=7, help="default: %(default)s")


def main(arguments: Sequence[str] | None = None) -> None:
    bench(options("rows", __doc__, arguments, _more))


if __name__ == "__main__":
    main()

"""What a trivial query costs over a kept connection, beside an embedded session.

Each way asks `SELECT 42` some hundred times, in rounds that take turns; the median of each way, and
what it adds to the embedded one. Targets: at most 3 ms more over HTTP and over PostgreSQL. Before
that, a server is started five times on the data of the demo; median, target: under 3 s.

python -m bench.service.trivial [--times 300]: about a minute.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

import httpx
import psycopg

import queryard
from queryard.service.demo import SCALE
from queryard.workload import tpch

from .rows import make
from .setting import options, server, table

SQL = "SELECT 42"
ROUNDS = 10
# A server needs a table; nothing is read of it.
ROWS = 1_000
MOST_MS = 3.0
STARTS = 5
MOST_START_S = 3.0


def bench(given: argparse.Namespace) -> None:
    begin(given)
    times = 50 if given.quick else given.times
    file = given.data / f"rows-{ROWS}.parquet"
    make(file, ROWS)
    tables = {"rows": str(file)}
    with queryard.connect(tables=tables) as embedded, server(tables) as served:
        secret = served.secrets["bench"]
        with (
            queryard.connect(served.http, token=secret) as remote,
            psycopg.connect(served.dsn("bench"), autocommit=True) as connection,
            httpx.Client(base_url=served.http, headers=_token(secret)) as plain,
        ):
            ways: dict[str, Callable[[], object]] = {
                "embedded": lambda: embedded.sql(SQL).fetchall(),
                "HTTP, Python client": lambda: remote.sql(SQL).fetchall(),
                "HTTP, one request": lambda: _one_request(plain),
                "PostgreSQL, psycopg": lambda: connection.execute(SQL).fetchall(),
                "PostgreSQL, prepared": lambda: connection.execute(SQL, prepare=True).fetchall(),
                "HTTP, health only": lambda: plain.get("/healthz").status_code,
            }
            found = measured(ways, times)
    base = statistics.median(found["embedded"])
    rows = [
        (
            name,
            statistics.median(each) * 1e3,
            sorted(each)[int(len(each) * 0.95)] * 1e3,
            (statistics.median(each) - base) * 1e3,
        )
        for name, each in found.items()
    ]
    title = f"{SQL}, {times} times over a kept connection (target: {MOST_MS:g} ms more)"
    table(title, ("way", "median ms", "p95 ms", "more than embedded, ms"), rows, given.out)


def begin(given: argparse.Namespace) -> None:
    """How long a server takes from the start of its process until it is ready."""
    scale, starts = (0.01, 1) if given.quick else (SCALE, STARTS)
    files = tpch.generate(given.data / f"tpch-{scale:g}", scale)
    tables = {file.stem: str(file) for file in files}
    took = []
    for _ in range(starts):
        with server(tables) as served:
            took.append(served.start_s)
    title = f"a server starts on TPC-H data of scale {scale:g} (target: under {MOST_START_S:g} s)"
    figures = (statistics.median(took), min(took), max(took))
    table(title, ("starts", "median s", "least s", "most s"), [(str(starts), *figures)], None)


def measured(ways: dict[str, Callable[[], object]], times: int) -> dict[str, list[float]]:
    """Seconds per call of each way; ways take turns, so that a busy moment meets all."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        for _ in range(5):
            way()
    for _ in range(ROUNDS):
        for name, way in ways.items():
            for _ in range(times // ROUNDS):
                began = time.perf_counter()
                way()
                found[name].append(time.perf_counter() - began)
    return found


def _one_request(client: httpx.Client) -> object:
    answer = client.post("/v1/queries", params={"wait": 5}, json={"sql": SQL})
    answer.raise_for_status()
    return answer.json()


def _token(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=300, help="default: %(default)s")


def main(arguments: Sequence[str] | None = None) -> None:
    bench(options("trivial", __doc__, arguments, _more))


if __name__ == "__main__":
    main()

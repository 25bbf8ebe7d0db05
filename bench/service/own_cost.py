"""What a server takes for itself: the share of a core of its own threads.

First 1,000 queries wait over HTTP and PostgreSQL behind long ones. Then small queries arrive, 50
per second, half of them over each. The processor time of the server's threads (`own_cpu`) is
compared with the time that passes; of arrivals, with the time that so many take at this rate, since
a busy machine answers them later. Slots are not in it; nor is what runs in the background, which is
shown beside: it predicts queries that have not run before. Targets: 5 % and 25 % of a core.

python -m bench.service.own_cost [--seconds 20]: about a minute.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx
import psycopg

from .rows import make
from .setting import Served, options, server, table

COUNT = 1_000_000
WAITING, BY_POSTGRES = 1_000, 100
PER_S = 50
AT_ONCE = 16
SETTLE_S = 3.0
TARGETS = {"waiting": 0.05, "arrivals": 0.25}
BESIDE = ("background",)
LONG = "SELECT count(*) AS n FROM rows a JOIN rows b ON a.day = b.day WHERE a.x + b.x > {}"
SMALL = "SELECT name, count(*) AS n FROM rows WHERE id < {} GROUP BY ALL ORDER BY ALL LIMIT 5"
Costs = dict[str, float]


def bench(given: argparse.Namespace) -> None:
    seconds = 4.0 if given.quick else given.seconds
    file = given.data / f"rows-{COUNT}.parquet"
    make(file, COUNT)
    limits = {"connections": 2000, "connections_per_token": 2000, "open_results": 5000}
    found: dict[str, Costs] = {}
    notes: dict[str, str] = {}
    for name, load in (("waiting", waiting), ("arrivals", arrivals)):
        with server({"rows": str(file)}, limits=limits) as served:
            found[name], notes[name] = load(served, seconds)
    parts = list(found["waiting"])
    own = [part for part in parts if part not in BESIDE]
    rows: list[tuple[object, ...]] = [
        (part, *(f"{found[name][part]:.2%}" for name in TARGETS)) for part in parts
    ]
    sums = {name: sum(found[name][part] for part in own) for name in TARGETS}
    rows.append(("together, without the background", *(f"{sums[name]:.2%}" for name in TARGETS)))
    rows.append(("target", *(f"{share:.0%}" for share in TARGETS.values())))
    title = "shares of a core: " + "; ".join(notes.values())
    table(title, ("part", f"{WAITING:,} waiting", f"{PER_S} arrivals per s"), rows, given.out)


def waiting(served: Served, seconds: float) -> tuple[Costs, str]:
    """The cost while queries wait, once all of them are there."""
    with contextlib.ExitStack() as opened:
        client = opened.enter_context(_http(served, "bench"))
        for number in range(WAITING - BY_POSTGRES):
            client.post("/v1/queries", json={"sql": LONG.format(number)}).raise_for_status()
        for number in range(BY_POSTGRES):
            connection = psycopg.connect(served.dsn("bench"), autocommit=True)
            opened.callback(connection.close)
            connection.pgconn.send_query(LONG.format(-number - 1).encode())
            connection.pgconn.flush()
        time.sleep(SETTLE_S)
        with measured(served) as costs:
            time.sleep(seconds)
        counts = re.findall(r'queryard_queries{state="waiting",\S+} (\S+)', figures(served))
    waits = sum(map(float, counts))
    return costs, f"{waits:.0f} waited for {seconds:g} s"


def arrivals(served: Served, seconds: float) -> tuple[Costs, str]:
    """The cost while small queries come at a rate, whatever they take."""
    own = threading.local()
    opened: list[contextlib.AbstractContextManager[object]] = []

    def by_http(number: int) -> None:
        if not hasattr(own, "client"):
            own.client = _http(served, "bench")
            opened.append(own.client)
        asked = {"sql": SMALL.format(number)}
        answer = own.client.post("/v1/queries", params={"wait": 30}, json=asked)
        answer.raise_for_status()

    def by_postgres(number: int) -> None:
        if not hasattr(own, "connection"):
            own.connection = psycopg.connect(served.dsn("bench"), autocommit=True)
            opened.append(own.connection)
        own.connection.execute(SMALL.format(number)).fetchall()

    ways: tuple[Callable[[int], None], ...] = (by_http, by_postgres)
    with ThreadPoolExecutor(AT_ONCE) as clients:
        # Connections, instances and caches are there before it counts.
        list(clients.map(lambda n: ways[n % 2](n + 1), range(4 * AT_ONCE)))
        asked = []
        with measured(served) as costs:
            began = time.monotonic()
            for number in range(int(seconds * PER_S)):
                time.sleep(max(0.0, began + number / PER_S - time.monotonic()))
                asked.append(clients.submit(ways[number % 2], 1000 + 7 * number))
            for each in asked:
                each.result()
            passed_s = time.monotonic() - began
    for each in opened:
        each.__exit__(None, None, None)
    late = passed_s * PER_S / len(asked)
    costs = {part: share * late for part, share in costs.items()}
    return costs, f"{len(asked)} came and were answered within {passed_s:.1f} s"


@contextlib.contextmanager
def measured(served: Served) -> Iterator[Costs]:
    """The share of a core that each part takes within the context, once it is over."""
    costs: Costs = {}
    first, began = _own_cpu(served), time.monotonic()
    yield costs
    last, passed_s = _own_cpu(served), time.monotonic() - began
    costs |= {part: (last[part] - first[part]) / passed_s for part in last}


def _own_cpu(served: Served) -> Costs:
    found = re.findall(r'queryard_own_cpu_seconds_total{part="(\w+)"} (\S+)', figures(served))
    return {part: float(seconds) for part, seconds in found}


def figures(served: Served) -> str:
    with _http(served, "admin") as client:
        return client.get("/metrics").raise_for_status().text


def _http(served: Served, tenant: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {served.secrets[tenant]}"}
    return httpx.Client(base_url=served.http, headers=headers, timeout=60)


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=20, help="default: %(default)s")


def main(arguments: Sequence[str] | None = None) -> None:
    bench(options("own_cost", __doc__, arguments, _more))


if __name__ == "__main__":
    main()

"""What open pages of an operator cost a server on which a thousand queries wait.

Long queries of a few tenants fill the slots and the queue. The server tells the processor time of
its own threads, without what queries take: first without a page, then with ten of an admin that
read the stream of the present. Target: pages cost less than 5 % of a core in all, and the first
document is there within a second.

python -m bench.service.pages [--queries 1000] [--pages 10] [--seconds 30]: about two minutes.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

import httpx

from .rows import make
from .setting import Served, options, server, table

ROWS = 1_000
TENANTS = ("sales", "web", "science")
MOST_SHARE = 0.05
_READER = """
import sys, time, httpx
url, secret, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
began, events, size, first = time.monotonic(), 0, 0, False
headers = {"Authorization": "Bearer " + secret}
with httpx.Client(timeout=60) as client:
    with client.stream("GET", url + "/v1/now/stream", headers=headers) as answer:
        for part in answer.iter_raw():
            if not first and b"event: now" in part:
                first = True
                print(time.monotonic() - began, flush=True)
                began = time.monotonic()
            events += part.count(b"event: now")
            size += len(part)
            if time.monotonic() - began > seconds:
                break
print(events, size, flush=True)
"""


def bench(given: argparse.Namespace) -> None:
    queries, pages, seconds = given.queries, given.pages, given.seconds
    if given.quick:
        queries, pages, seconds = 100, 3, 3.0
    file = given.data / f"rows-{ROWS}.parquet"
    make(file, ROWS)
    limits = {"open_results": queries + 100, "connections": 1000}
    with server({"rows": str(file)}, TENANTS, limits=limits, admins=("ops",)) as served:
        fill(served, queries)
        without = own_cpu(served, seconds)
        readers = [read(served, seconds + 5) for _ in range(pages)]
        first_s = max(float(reader.stdout.readline()) for reader in readers if reader.stdout)
        beside = own_cpu(served, seconds)
        told = [reader.communicate()[0].split() for reader in readers]
    share = sum(beside.values()) - sum(without.values())
    rows = [(part, without[part], beside[part], beside[part] - without[part]) for part in beside]
    rows.append(("all", sum(without.values()), sum(beside.values()), share))
    table(
        f"Own processor time in cores, {queries} queries, {pages} pages",
        ("part", "without", "with pages", "pages"),
        rows,
        given.out,
    )
    events = statistics.mean(int(found[0]) for found in told)
    size = sum(int(found[1]) for found in told) / max(1.0, events * pages)
    print(
        f"{events:.0f} documents per page of {size / 1e3:.0f} kB; the first after {first_s:.2f} s"
    )
    verdict = "below" if share < MOST_SHARE else "ABOVE"
    print(f"pages cost {share:.1%} of a core, {verdict} the target of {MOST_SHARE:.0%}")


def fill(served: Served, queries: int) -> None:
    """Queries that are all different, and would run for hours."""
    with httpx.Client(base_url=served.http, timeout=60) as client:
        for number in range(queries):
            secret = served.secrets[TENANTS[number % len(TENANTS)]]
            sql = f"SELECT count(*) FROM range(1000000000000) r WHERE r.range % 1009 = {number}"
            headers = {"Authorization": f"Bearer {secret}"}
            client.post("/v1/queries", json={"sql": sql}, headers=headers).raise_for_status()


def read(served: Served, seconds: float) -> subprocess.Popen[str]:
    """A page: a process of its own, so that its cost is not the server's."""
    given = [served.http, served.secrets["ops"], str(seconds)]
    command = [sys.executable, "-c", _READER, *given]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def own_cpu(served: Served, seconds: float) -> dict[str, float]:
    """Cores that the server's own threads keep busy, by part."""
    before, began_s = _own_cpu(served), time.monotonic()
    time.sleep(seconds)
    after, took_s = _own_cpu(served), time.monotonic() - began_s
    return {part: (after[part] - before[part]) / took_s for part in after}


def _own_cpu(served: Served) -> dict[str, float]:
    headers = {"Authorization": f"Bearer {served.secrets['ops']}"}
    text = httpx.get(f"{served.http}/metrics", headers=headers, timeout=60).text
    found = re.findall(r'^queryard_own_cpu_seconds_total\{part="(\w+)"\} (\S+)', text, re.M)
    return {part: float(value) for part, value in found}


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--queries", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--pages", type=int, default=10, help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=30.0, help="default: %(default)s")


def main(arguments: Sequence[str] | None = None) -> None:
    bench(options("pages", __doc__, arguments, _more))


if __name__ == "__main__":
    main()

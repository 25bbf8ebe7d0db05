"""Clients that are killed at random for ten minutes: nothing is lost, and nothing stays behind.

Some processes at a time connect over HTTP or PostgreSQL, ask for small and large answers, and read
them fast, slowly or not at all; each is killed (SIGKILL) after a random time, and another begins.
Beside them a client asks the same query all the time and checks its answer. At the end no query is
active. Memory, open files and threads of the server in the second half of the time are beside those
of the first half, without its first fifth, in which caches and pools fill: the verdict is whether
they have grown. Some seconds after the end nothing is held for clients.

A query that was entered over HTTP runs on until a client has begun to read it: its client may come
back, as it knows the id. Clients that were killed in between have left such queries; the bench
cancels these at the end, and says how many there were.

python -m bench.service.killed [--seconds 600]
"""

from __future__ import annotations

import argparse
import multiprocessing
import multiprocessing.process
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import httpx

from .rows import make
from .setting import Served, options, server, table

CLIENTS = 12
LONGEST_S = 4.0
COUNT = 1_000_000
CHECK = "SELECT count(*) AS n, sum(id) AS s FROM rows"
SETTLE_S = 30.0
# By how much the medians of two halves may differ.
MOST_GROWTH = 1.1
MEASURED = (("memory, MB", 1e6), ("open files", 1), ("threads", 1))
LEFT = {
    "queryard_queries": "active queries",
    "queryard_connections": "connections",
    "queryard_open_results": "open results",
    "queryard_result_held_bytes": "bytes of rows",
}
ASKED = (
    "SELECT * FROM rows",
    "SELECT name, count(*) AS n, avg(x) AS x FROM rows GROUP BY ALL ORDER BY ALL",
    "SELECT count(*) AS n FROM rows a JOIN rows b ON a.day = b.day",
    "SELECT *, row_number() OVER (PARTITION BY day ORDER BY x) AS place FROM rows",
    "SELECT 1 AS one",
)


def bench(given: argparse.Namespace) -> None:
    seconds = 15.0 if given.quick else given.seconds
    file = given.data / f"rows-{COUNT}.parquet"
    make(file, COUNT)
    rng = Random(given.seed)
    # Rows of a query whose client was killed are kept for a while, so that it can come back.
    limits = {"connections": 1000, "result_ttl": "5 s"}
    with (
        tempfile.TemporaryDirectory(prefix="queryard-bench-killed-") as folder,
        server({"rows": str(file)}, ("bench", "check"), limits=limits) as served,
    ):
        place = Path(folder)
        samples: list[tuple[float, int, int, int]] = []
        checked = killed = 0
        clients: list[tuple[multiprocessing.process.BaseProcess, float]] = []
        spawn = multiprocessing.get_context("fork")
        refused = spawn.Value("i", 0)
        began = time.monotonic()
        with httpx.Client(base_url=served.http, timeout=60) as watching:
            while (now := time.monotonic() - began) < seconds:
                while len(clients) < CLIENTS:
                    told = rng.random(), rng.choice(ASKED), rng.random()
                    given_to = (refused, served, place, *told)
                    client = spawn.Process(target=live, args=given_to, daemon=True)
                    client.start()
                    clients.append((client, now + rng.uniform(0.05, LONGEST_S)))
                for client, until_s in list(clients):
                    if now >= until_s or not client.is_alive():
                        killed += client.is_alive()
                        client.kill()
                        client.join()
                        clients.remove((client, until_s))
                _check(watching, served.secrets["check"])
                checked += 1
                samples.append((now, served.memory_bytes(), served.open_files(), threads(served)))
                time.sleep(0.05)
            for client, _ in clients:
                client.kill()
                client.join()
            unread = cancel_unread(watching, served, place)
            left = settled(watching, served)
            if any(left.values()):
                print(active(watching, served))
            _check(watching, served.secrets["check"])
        last = (served.memory_bytes(), served.open_files(), threads(served))
    rows: list[tuple[object, ...]] = []
    grown = []
    for place, (name, scale) in enumerate(MEASURED, start=1):
        early = [s[place] for s in samples if seconds * 0.2 <= s[0] < seconds * 0.5]
        late = [s[place] for s in samples if s[0] >= seconds * 0.5]
        if not early or not late:
            raise SystemExit(f"error: {seconds:g} s were too few to look at the server twice")
        first, second = statistics.median(early) / scale, statistics.median(late) / scale
        is_flat = second <= first * MOST_GROWTH
        if not is_flat:
            grown.append(name)
        rows.append((name, first, second, last[place - 1] / scale, "flat" if is_flat else "grows"))
    rows += [(f"{name} at the end", "", "", count, "") for name, count in left.items()]
    title = (
        f"{killed} clients killed within {seconds:g} s, {refused.value} refused by limits; "
        f"{checked} answers checked; {unread} queries were never read"
    )
    columns = ("", "first half", "second half", "after the end", "verdict")
    table(title, columns, rows, given.out)
    if any(left.values()):
        raise SystemExit(f"error: {left} is left {SETTLE_S:g} s after the end")
    if grown and not given.quick:
        raise SystemExit(f"error: {', '.join(grown)} have grown by more than {MOST_GROWTH - 1:.0%}")


def live(refused: Any, *told: Any) -> None:
    """A client until it is killed. What the server refuses is counted."""
    try:
        ask(*told)
    except Exception:
        with refused.get_lock():
            refused.value += 1


def ask(served: Served, place: Path, way: float, sql: str, speed: float) -> None:
    """What a client does until it is killed. In a file it tells the id of what it has not read."""
    if way < 0.5:
        headers = {"Authorization": f"Bearer {served.secrets['bench']}"}
        with httpx.Client(base_url=served.http, headers=headers, timeout=None) as client:
            entered = client.post("/v1/queries", json={"sql": sql}).json()
            noted = place / entered["id"]
            noted.touch()
            rows = f"/v1/queries/{entered['id']}/rows"
            with client.stream("GET", rows, params={"format": "arrow"}) as answer:
                noted.unlink()
                for _ in answer.iter_raw():
                    time.sleep(0.0 if speed < 0.5 else speed)
    else:
        import psycopg

        with psycopg.connect(served.dsn("bench")) as connection, connection.cursor() as cursor:
            for _ in cursor.stream(sql.encode()):
                if speed > 0.5:
                    time.sleep(speed / 100)
    time.sleep(LONGEST_S)  # idle until it is killed


def _check(client: httpx.Client, secret: str) -> None:
    headers = {"Authorization": f"Bearer {secret}"}
    entered = client.post("/v1/queries", json={"sql": CHECK}, headers=headers)
    entered.raise_for_status()
    place = f"/v1/queries/{entered.json()['id']}/rows"
    found = client.get(place, params={"format": "csv"}, headers=headers)
    found.raise_for_status()
    expected = f"{COUNT},{COUNT * (COUNT - 1) // 2}"
    if found.text.split()[-1] != expected:
        raise SystemExit(f"error: {CHECK} gave {found.text!r}, and {expected} is right")


def cancel_unread(client: httpx.Client, served: Served, place: Path) -> int:
    """Cancel what clients have entered and not begun to read; how many of it were active."""
    headers = {"Authorization": f"Bearer {served.secrets['admin']}"}
    found = 0
    for noted in place.iterdir():
        state = client.get(f"/v1/queries/{noted.name}", headers=headers)
        if state.status_code == 200 and state.json()["state"] in ("waiting", "running"):
            found += 1
            client.delete(f"/v1/queries/{noted.name}", headers=headers).raise_for_status()
    return found


def active(client: httpx.Client, served: Served) -> str:
    """What is active, for a look at what went wrong."""
    headers = {"Authorization": f"Bearer {served.secrets['admin']}"}
    return client.get("/v1/queries", headers=headers).text[:4000]


def settled(client: httpx.Client, served: Served) -> dict[str, int]:
    """What is still there for clients some time after the last of them was killed."""
    headers = {"Authorization": f"Bearer {served.secrets['admin']}"}
    until = time.monotonic() + SETTLE_S
    while True:
        figures = client.get("/metrics", headers=headers).text
        found = {
            words: int(sum(map(float, re.findall(rf"(?m)^{name}(?:{{.*}})? (\S+)$", figures))))
            for name, words in LEFT.items()
        }
        # The request itself is one.
        found["connections"] -= 1
        if not any(found.values()) or time.monotonic() > until:
            return found
        time.sleep(0.2)


def threads(served: Served) -> int:
    return len(list(Path(f"/proc/{served.pid}/task").iterdir()))


def _more(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=600, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")


def main(arguments: Sequence[str] | None = None) -> None:
    bench(options("killed", __doc__, arguments, _more))


if __name__ == "__main__":
    main()

"""Clients that are killed leave nothing behind, without help of the garbage collector."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import re
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from queryard.engine.instances.instance import Instance
from queryard.engine.instances.pool import InstancePool
from queryard.engine.planning import Planner
from queryard.engine.syntax.classify import classify
from queryard.service.config import Address, ServiceConfig, ServiceLimits
from queryard.service.serving import Addresses, Listeners
from service.yard_ground import Ground, a_ground

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")

LARGE = "SELECT a.n, a.t, b.t AS u FROM numbers a, (FROM numbers LIMIT 12) b"
LONG = "SELECT count(*) AS c FROM numbers a, (FROM numbers LIMIT 200) b WHERE hash(a.n, b.n) = 3"
ASKED = (LARGE, "SELECT 1 AS one", LONG, "FROM numbers", "FROM nowhere")
TOGETHER = 4
# Threads that stay for the next request, at most so many as there were requests at once.
KEPT_THREADS = ("queryard-postgres", "queryard-http", "queryard-look", "queryard-slot")
# Arrow starts its own when it first needs them; beside them are one or two of allocators.
ARROW_THREADS = pa.cpu_count() + pa.io_thread_count() + 4
LIMITS = ServiceLimits(result_ttl_s=0.2, statements_per_s=1e6)


@contextmanager
def a_server(folder: Path) -> Iterator[tuple[Ground, Addresses]]:
    """Both listeners, on an event loop in a thread."""
    free = Address("127.0.0.1", 0)
    with a_ground(folder, limits=LIMITS) as ground:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="listeners")
        thread.start()
        listeners = Listeners(ground.yard)
        opening = listeners.open(ServiceConfig(http=free, postgres=free, limits=LIMITS))
        try:
            yield ground, asyncio.run_coroutine_threadsafe(opening, loop).result(30)
        finally:
            asyncio.run_coroutine_threadsafe(listeners.close(0.0), loop).result(30)
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


def kill(fileno: int) -> None:
    """End a connection as the system does for a process that was killed."""
    # It may have ended by itself.
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(fileno)) as end:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.shutdown(socket.SHUT_RDWR)


def killed_postgres(ground: Ground, where: Addresses, sql: str, reads: int) -> None:
    psycopg = pytest.importorskip("psycopg")
    assert where.postgres is not None
    connection = psycopg.connect(
        host=where.postgres.host,
        port=where.postgres.port,
        user="ann",
        password=ground.secrets["ann"],
        dbname="yard",
        autocommit=True,
    )
    # The simple protocol and the extended one, in turns.
    if reads % 2:
        connection.pgconn.send_query(sql.encode())
    else:
        connection.pgconn.send_query_params(sql.encode(), None)
    connection.pgconn.flush()
    for _ in range(reads):
        time.sleep(0.01)
        connection.pgconn.consume_input()
    kill(connection.fileno())
    connection.close()


def killed_http(ground: Ground, where: Addresses, sql: str, reads: int) -> None:
    httpx = pytest.importorskip("httpx")
    headers = {"Authorization": f"Bearer {ground.secrets['ann']}"}
    # Without `verify` certificates would be read for each client.
    with httpx.Client(base_url=where.url, headers=headers, timeout=30, verify=False) as client:
        entered = client.post("/v1/queries", json={"sql": sql})
        if reads == 0 or entered.is_error:
            return
        place = f"/v1/queries/{entered.json()['id']}/rows"
        with contextlib.suppress(httpx.HTTPError):
            read = {"read": 0.05 * reads}
            with client.stream("GET", place, timeout=httpx.Timeout(30, **read)) as answer:
                for _, _ in zip(range(reads), answer.iter_raw(), strict=False):
                    pass
                stream: Any = answer.extensions["network_stream"]
                kill(stream.get_extra_info("socket").fileno())


def some_killed(ground: Ground, where: Addresses, kind: Any) -> None:
    """A client per statement and patience, some at a time."""
    asked = [(sql, reads) for sql in ASKED for reads in range(4)]
    errors: list[BaseException] = []

    def run(mine: list[tuple[str, int]]) -> None:
        try:
            for sql, reads in mine:
                kind(ground, where, sql, reads)
        except BaseException as error:
            errors.append(error)

    threads = [
        threading.Thread(target=run, args=(asked[place::TOGETHER],)) for place in range(TOGETHER)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def held(ground: Ground) -> dict[str, int]:
    """What is held for clients: nothing of it may stay."""
    yard = ground.yard
    return {
        "connections": yard.usage.connections,
        "clients": len(yard.clients(ground.principal("root"))),
        "open results": yard.usage.open_results,
        "held bytes": yard.usage.held_bytes,
        "waiting bytes": yard.usage.waiting_bytes,
        "active": len(yard.active()),
        "queries": len(yard.session.queries()),
        "tickets": len(yard.session.host._tickets.names()),
        "bytes of own instances": yard.own_memory.used_bytes,
        "bytes of pooled instances": sum(pool._used_bytes for pool in all_of(InstancePool)),
        "files of rows": len(list(yard.session.host.temp.rglob("*.arrow"))),
    }


def all_of(kind: type) -> list[Any]:
    """All objects of a kind that are in use."""
    found: list[Any] = [one for one in gc.get_objects() if type(one) is kind]
    return [one for one in found if kind is not Instance or one.database.value is not None]


def open_files() -> dict[str, int]:
    """How many of each kind, such as sockets, or files of one name but for numbers."""
    found: Counter[str] = Counter()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # it is closed by now
            found[re.sub(r"\d+", "0", os.readlink(f"/proc/self/fd/{number}"))] += 1
    return {f"open: {kind}": count for kind, count in found.items()}


def there() -> dict[str, int]:
    """What there is beside: it may not grow."""
    names = [thread.name for thread in threading.enumerate()]
    # Threads of other names may be what tests before this one have left to libraries.
    ours = [name for name in names if name.startswith("queryard")]
    others = (re.sub(r"\d+", "0", name) for name in ours if not name.startswith(KEPT_THREADS))
    return {
        "threads of libraries": max(ARROW_THREADS, len(os.listdir("/proc/self/task")) - len(names)),
        **{f"thread: {name}": count for name, count in Counter(others).items()},
        **open_files(),
        "instances beside the pool": len(all_of(Instance))
        - sum(len(p._idle) for p in all_of(InstancePool)),
        "rows in memory, MB": pa.total_allocated_bytes() >> 20,
    }


def grown(before: Mapping[str, int]) -> dict[str, int]:
    """What there is more than before, with some patience: threads take a moment to end.

    What is still there then may be in a cycle, as errors and their frames are: it is no leak if
    the collector finds it.
    """
    until_s = time.monotonic() + 10
    while True:
        now = there()
        more = {name: now[name] - before.get(name, 0) for name in now}
        more = {name: count for name, count in more.items() if count > 0}
        if not more or time.monotonic() > until_s + 1:
            return more
        if time.monotonic() > until_s:
            gc.collect()
        time.sleep(0.05)


def planned_once() -> None:
    """Have every planner open its small instance, which it keeps.

    It does so when it is first needed: for a query that has company, which is chance.
    """
    for planner in all_of(Planner):
        for sql in ASKED[:-1]:
            planner.features(classify(sql)[0])


def settled(ground: Ground) -> dict[str, int]:
    """What is held once all has ended, with some patience."""
    until_s = time.monotonic() + 15
    while any((found := held(ground)).values()) and time.monotonic() < until_s:
        time.sleep(0.05)
    return found


@pytest.mark.parametrize("kind", [killed_http, killed_postgres], ids=["http", "postgres"])
def test_killed_clients_leave_nothing_behind(tmp_path, kind):
    with a_server(tmp_path) as (ground, where):
        some_killed(ground, where, kind)  # pools fill
        assert not any(settled(ground).values()), held(ground)
        planned_once()
        gc.collect()
        before = there()
        gc.disable()
        try:
            some_killed(ground, where, kind)
            some_killed(ground, where, kind)
            assert not any(settled(ground).values()), held(ground)
            more = grown(before)
        finally:
            gc.enable()
        assert more == {}
        # A server that has been left by all works as before.
        client = ground.yard.open(ground.principal("ann"))
        assert client.submit("SELECT count(*) FROM numbers").result().fetchall() == [(30_000,)]
        client.close()

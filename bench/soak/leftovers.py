"""What a process holds, and what must be gone: memory, threads, files, instances, objects."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from queryard.engine.instances.instance import Instance
from queryard.engine.syntax.classify import forget_statements
from queryard.engine.syntax.volatile import forget_volatile
from queryard.live import Session

# What allocators keep for themselves differs from time to time.
SLACK_BYTES, SLACK_SHARE = 96 << 20, 0.15
# Some objects are kept for good: caches of parsers, of statements.
SLACK_OBJECTS = 20
SETTLE_S = 10.0


@dataclass(frozen=True)
class Held:
    """What the process holds at one moment."""

    rss_bytes: int
    arrow_bytes: int
    threads: Counter[str]
    files: int
    instances: int
    objects: Counter[str]
    temporary: frozenset[str]
    switch_s: float


def held() -> Held:
    """After all garbage is gone, and what is remembered of earlier statements."""
    forget_statements()
    forget_volatile()
    for _ in range(3):
        gc.collect()
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
    objects = Counter(_name(thing) for thing in gc.get_objects())
    del objects[""]
    return Held(
        rss_bytes=rss_bytes(),
        arrow_bytes=pa.total_allocated_bytes(),
        threads=Counter(thread.name.rstrip("0123456789") for thread in threading.enumerate()),
        files=len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0,
        instances=sum(
            isinstance(thing, Instance) and thing.database.value is not None
            for thing in gc.get_objects()
        ),
        objects=objects,
        temporary=_temporary(),
        switch_s=sys.getswitchinterval(),
    )


def growth(before: Held, settle_s: float = SETTLE_S) -> tuple[Held, list[str]]:
    """What there is now, and what of it is too much; some things need a moment to go."""
    until = time.monotonic() + settle_s
    while True:
        now = held()
        found = _growth(before, now)
        if not found or time.monotonic() > until:
            return now, found
        time.sleep(0.5)


def _growth(before: Held, now: Held) -> list[str]:
    found = []
    most = before.rss_bytes + max(SLACK_BYTES, SLACK_SHARE * before.rss_bytes)
    if now.rss_bytes > most:
        found.append(f"memory: {now.rss_bytes >> 20} MiB, {before.rss_bytes >> 20} at the start")
    if now.arrow_bytes > before.arrow_bytes + (1 << 20):
        found.append(f"Arrow buffers: {now.arrow_bytes:,} bytes, {before.arrow_bytes:,}")
    if more := now.threads - before.threads:
        found.append(f"threads: {dict(more)}")
    if now.files > before.files:
        found.append(f"open files: {now.files}, {before.files} at the start")
    if now.instances > before.instances:
        found.append(f"DuckDB instances: {now.instances}, {before.instances} at the start")
    if new := now.temporary - before.temporary:
        found.append(f"temporary files: {sorted(new)[:5]}")
    for name, count in (now.objects - before.objects).items():
        if count > SLACK_OBJECTS:
            found.append(f"objects: {count} more of {name}")
    if now.switch_s != before.switch_s:
        found.append(f"the switch interval is {now.switch_s}, not {before.switch_s}")
    return found


def busy(session: Session, settle_s: float = SETTLE_S) -> list[str]:
    """What an idle session still holds, after a moment to release it."""
    until = time.monotonic() + settle_s
    while (found := _busy(session)) and time.monotonic() < until:
        time.sleep(0.1)
    return found


def _busy(session: Session) -> list[str]:
    host: Any = session.host
    leases, tasks = host.backend._leases, host.backend._tasks
    looks: dict[str, Callable[[], Any]] = {
        "active queries": lambda: len(session.queries()),
        "queries in the kernel": lambda: host.ask(lambda c: len(c.kernel.state.queries)),
        "slots lent": lambda: host.ask(
            lambda c: sum(
                node.maps + node.reduces + node.leased for node in c.kernel.state.nodes.values()
            )
        ),
        "native runs": lambda: len(leases._runs) + len(leases._jobs),
        "staged queries": lambda: len(tasks._sets),
        "tasks launched": lambda: len(tasks._launched),
        "slots overstaying": lambda: leases._bursting,
        "bytes of instances in use": lambda: host.engine.pool._used_bytes,
        "anything in the coordinator": lambda: not host.ask(lambda c: c.idle),
        "temporary files": lambda: sum(
            1 for file in host._temp.path.rglob("*") if file.is_file() and file.name != ".lock"
        ),
    }
    return [f"{name}: {value}" for name, look in looks.items() if (value := look())]


def _name(thing: object) -> str:
    kind = type(thing)
    module = getattr(kind, "__module__", "")
    if isinstance(module, str) and module.startswith("queryard."):
        return f"{module}.{kind.__qualname__}"
    return ""


def rss_bytes() -> int:
    """Memory in use, as the system sees it; 0 where it does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _temporary() -> frozenset[str]:
    """Files of this process's sessions."""
    root = Path(tempfile.gettempdir())
    return frozenset(str(path) for path in root.glob(f"queryard-*/{os.getpid()}-*"))

"""How fast this machine is, from half a second of small statements on made-up rows.

Measured is CPU time of one thread, so that other work on the machine hardly matters. What was
found is kept in a small file, by processor and version of DuckDB.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import tempfile
import threading
import time
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

import duckdb

from queryard.estimate.prices import REFERENCE, Rates

ROWS = 200_000
# A statement is run until it has taken this long, at least twice; the fastest run counts.
EACH_S = 0.12
TURNS = 2

# What each kind of work takes on the reference machine.
REFERENCE_S = {"computing": 0.0152, "hashing": 0.021, "sorting": 0.038}

_ROWS = f"""
CREATE TABLE rows AS SELECT
  range AS a, hash(range) % {ROWS} AS b, (hash(range + 1) % 1000)::DOUBLE AS c,
  'row number ' || hash(range) AS d
FROM range({ROWS})
"""
_STATEMENTS = {
    "computing": "SELECT sum(c * 2 + a), count(*) FILTER (d LIKE '%77%') FROM rows WHERE c < 900",
    "hashing": """
SELECT count(*) FROM (SELECT b, sum(c) FROM rows GROUP BY b)
UNION ALL SELECT count(*) FROM rows x JOIN rows y ON x.b = y.a
""",
    "sorting": f"SELECT sum(a) FROM (SELECT a, c FROM rows ORDER BY c, b LIMIT {ROWS - 1})",
}
_measuring = threading.Lock()
_found: dict[str, Rates] = {}


def machine_rates(path: Path | None = None) -> Rates:
    """The rates of this machine: those kept in a file, else measured now (half a second).

    They are kept there for the next time, unless it cannot be written.
    """
    machine = _machine()
    with _measuring:
        if machine not in _found:
            _found[machine] = _kept(path, machine) or _measured()
        found = _found[machine]
    if path is not None and _kept(path, machine) is None:
        _keep(path, machine, found)
    return found


def known_rates(path: Path | None = None) -> Rates:
    """The rates of this machine as far as they are known; the reference's as long as they are not.

    It measures nothing and returns at once.
    """
    machine = _machine()
    found = _found.get(machine) or _kept(path, machine)
    if found is None:
        return REFERENCE
    return _found.setdefault(machine, found)


def _measured() -> Rates:
    connection = duckdb.connect(":memory:", config={"threads": 1, "memory_limit": "256MB"})
    with contextlib.closing(connection):
        connection.execute("SET temp_directory = ''")
        connection.execute(_ROWS)
        taken = {kind: _fastest(connection, sql) for kind, sql in _STATEMENTS.items()}
    return Rates(**{kind: round(s / REFERENCE_S[kind], 3) for kind, s in taken.items()})


def _fastest(connection: duckdb.DuckDBPyConnection, sql: str) -> float:
    """The least CPU seconds of this thread that a statement took."""
    fastest = float("inf")
    began = time.thread_time()
    turns = 0
    while turns < TURNS or time.thread_time() - began < EACH_S:
        start = time.thread_time()
        connection.execute(sql).fetchall()
        fastest = min(fastest, time.thread_time() - start)
        turns += 1
    return fastest


# --- the file ------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _machine() -> str:
    """What the rates depend on."""
    processor = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
                break
    return f"{processor}, duckdb {duckdb.__version__}"


def _kept(path: Path | None, machine: str) -> Rates | None:
    try:
        found = json.loads(path.read_text())[machine] if path is not None else None
        return None if found is None else Rates(**{k: float(found[k]) for k in REFERENCE_S})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(path: Path, machine: str, rates: Rates) -> None:
    """Written beside and moved into place, as others may read it at any moment."""
    try:
        kept = json.loads(path.read_text())
    except (OSError, ValueError):
        kept = {}
    if not isinstance(kept, dict):
        kept = {}
    kept[machine] = asdict(rates)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, written = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        with os.fdopen(handle, "w") as file:
            json.dump(kept, file, indent=1)
        os.replace(written, path)

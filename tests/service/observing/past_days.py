"""A history of some days, with queries of several tenants, made for tests."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

from queryard.history import opening, schema

DAY_S = 86_400.0
# The morning of a day; sessions of the days before it, two of which overlap.
TODAY = 1_794_960_000.0
TENANTS = ("sales", "sales/emea", "salesforce", "web")


def write_days(file: Path, queries: int, seed: int = 1, days: int = 4) -> None:
    """Queries over the last days, of all outcomes."""
    rng = random.Random(seed)
    connection = opening.open_for_writing(file)
    with connection:
        connection.execute("BEGIN")
        for number in range(days):
            began_at = TODAY - (days - number) * DAY_S + number * 1000.0
            _session(connection, f"{number:012x}", began_at)
        for number in range(queries):
            _query(connection, f"{rng.randrange(days):012x}", number, rng)
    connection.close()


def _session(connection: sqlite3.Connection, session: str, began_at: float) -> None:
    connection.execute(
        schema.INSERT["sessions"],
        {
            "session": session,
            "began_at": began_at,
            "seen_at": began_at + 2 * DAY_S,
            "closed_at": began_at + 2 * DAY_S,
            "version": "1",
            "pid": 1,
            "slots": 4,
            "memory_bytes": 1000,
            "settings": "{}",
            "profile": '{"name": "fair"}',
        },
    )


def _query(connection: sqlite3.Connection, session: str, number: int, rng: random.Random) -> None:
    query = f"{session}-{number}"
    asked_s = rng.uniform(0, 1.4 * DAY_S)
    work_s = rng.choice([0.0, 0.0004, rng.lognormvariate(-2, 2)])
    outcome = rng.choices(["finished", "failed", "cancelled", "refused", "lost"], [20, 3, 3, 1, 1])
    ended_s = asked_s + work_s + rng.uniform(0, 5)
    is_lost = outcome == ["lost"]
    connection.execute(
        schema.INSERT["asked"],
        {
            "session": session,
            "query": query,
            "time_s": asked_s,
            "sql": f"SELECT {number} FROM orders",
            "template": f"SELECT ? FROM t{number % 5}",
            "tenant": rng.choice(TENANTS),
            "priority": 0.0,
            "deadline_s": asked_s + rng.uniform(1, 4) if rng.random() < 0.3 else None,
            "plan": "native",
            "memory_bytes": 1,
            "predicted_work_s": rng.uniform(0.001, 2),
            "predicted_memory_bytes": None,
            "predicted_by": "plan",
            "twin_of": "other" if rng.random() < 0.1 else "",
        },
    )
    connection.execute(
        schema.INSERT["ended"],
        {
            "session": session,
            "query": query,
            "time_s": None if is_lost else ended_s,
            "started_s": asked_s + 0.01,
            "outcome": outcome[0],
            "error": "Some Error: what" if outcome == ["failed"] else "",
            "work_s": None if is_lost else work_s,
            "held_s": work_s,
            "peak_memory_bytes": None,
            "rows": 1,
            "burst_s": 0.0,
            "foreseen_s": rng.choice([None, 0.0, rng.uniform(0.001, 2)]),
            "foreseen_spread": None,
            "foreseen_by": "plan",
            "foreseen_part": "",
            "table_bytes": None,
        },
    )

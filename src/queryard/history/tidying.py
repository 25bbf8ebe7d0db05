"""What killed sessions left is closed, and what is older than wanted goes, a little at a time.

A session goes with all its rows, unless it is running. Should a running one alone be larger than
wanted, the older half of its own steps goes, and it can no longer be replayed.

What the queries of a template took is kept apart (`past`) and goes by other rules: the last
`RUNS` of each template, `MOST_PAST` in all. So predictions do not begin anew every month.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from . import presence
from .presence import DAY_S
from .retention import Retention
from .schema import OF_A_SESSION
from .selections import LOST, UNCLOSED

# Rows removed in one transaction, so that other sessions wait for milliseconds only.
CHUNK = 2_000
PAGES = 1_000
RUNS = 32
MOST_PAST = 20_000

_CLOSE_LOST = f"""
INSERT INTO ended (session, query, started_s, outcome, error, held_s, burst_s)
SELECT session, query, started_s, outcome, error, held_s, NULL FROM ({LOST})
"""
_ENDED = """
SELECT session FROM sessions
WHERE seen_at < :before AND session != :own AND NOT (closed_at IS NULL AND seen_at > :alive)
ORDER BY seen_at
"""
_FORGET_PAST = """
DELETE FROM past WHERE rowid IN (
    SELECT row FROM (
        SELECT rowid AS row,
            row_number() OVER (ORDER BY ended_at DESC) AS newest,
            row_number() OVER (PARTITION BY template ORDER BY ended_at DESC) AS of_template
        FROM past
    ) WHERE newest > :most OR of_template > :runs
)
"""


def tidy(connection: sqlite3.Connection, file: Path, keep: Retention, own: str) -> Iterator[None]:
    """Close and remove what is over; each step is one short transaction."""
    now = time.time()
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        give_sign_of_life(connection, own, now)
    yield
    yield from _close_lost(connection, file, own, now)
    for session in _ended(connection, own, now, before=now - keep.days * DAY_S):
        yield from _remove_session(connection, session)
    for session in _ended(connection, own, now, before=now):
        if _used_bytes(connection) <= keep.max_bytes:
            break
        yield from _remove_session(connection, session)
    if _used_bytes(connection) > keep.max_bytes:
        yield from _remove_older_steps(connection, own)
    yield from _forget_past(connection)
    yield from _remove(connection, "done", "ended_at < ?", now - keep.days * DAY_S)
    yield from _give_back(connection)


def give_sign_of_life(connection: sqlite3.Connection, own: str, now: float) -> None:
    """Say that a session is there, also where another one took it for gone."""
    connection.execute("UPDATE sessions SET seen_at = ? WHERE session = ?", (now, own))
    connection.execute("DELETE FROM ended WHERE session = ? AND outcome = 'lost'", (own,))


def _close_lost(connection: sqlite3.Connection, file: Path, own: str, now: float) -> Iterator[None]:
    """Give the queries of killed sessions an end."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        signs = dict(connection.execute(UNCLOSED).fetchall())
        gone = [
            session
            for session, seen_at in signs.items()
            if session != own and presence.is_gone(file, session, seen_at, now)
        ]
        connection.execute(_CLOSE_LOST, {"gone": json.dumps(gone)})
    # For a day the lock file tells that a session was killed; afterwards its silence does.
    for session in presence.known(file):
        seen_at = signs.get(session)
        if seen_at is not None and seen_at >= now - DAY_S:
            continue
        # Of one that has closed, or is not in the file yet, only the lock counts.
        if presence.is_gone(file, session, now if seen_at is None else seen_at, now):
            presence.forget(file, session)
    yield


def _ended(connection: sqlite3.Connection, own: str, now: float, before: float) -> list[str]:
    """Sessions last seen before a time, the oldest first, without those that may be running.

    A session says once per hour that it is there; one that has not for a day was killed.
    """
    values = {"before": before, "own": own, "alive": now - DAY_S}
    return [session for (session,) in connection.execute(_ENDED, values)]


def _remove_session(connection: sqlite3.Connection, session: str) -> Iterator[None]:
    for table in OF_A_SESSION:
        yield from _remove(connection, table, "session = ?", session)


def _remove_older_steps(connection: sqlite3.Connection, session: str) -> Iterator[None]:
    ends = "SELECT min(number), max(number) FROM steps WHERE session = ?"
    first, last = connection.execute(ends, (session,)).fetchone()
    if first is not None:
        which, middle = "session = ? AND number < ?", (first + last) // 2
        yield from _remove(connection, "steps", which, session, middle)


def _forget_past(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute(_FORGET_PAST, {"most": MOST_PAST, "runs": RUNS})
    yield


def _remove(
    connection: sqlite3.Connection, table: str, which: str, *values: str | float
) -> Iterator[None]:
    some = f"SELECT rowid FROM {table} WHERE {which} LIMIT {CHUNK}"
    removal = f"DELETE FROM {table} WHERE rowid IN ({some})"
    while True:
        removed = connection.execute(removal, values).rowcount
        yield
        if removed < CHUNK:
            return


def _give_back(connection: sqlite3.Connection) -> Iterator[None]:
    """Pages that are free go back to the file system."""
    while free := _pragma(connection, "freelist_count"):
        # It frees one page per step, and only a script is stepped to its end.
        connection.executescript(f"PRAGMA incremental_vacuum({PAGES})")
        yield
        if _pragma(connection, "freelist_count") >= free:
            return


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages = _pragma(connection, "page_count") - _pragma(connection, "freelist_count")
    return pages * _pragma(connection, "page_size")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value

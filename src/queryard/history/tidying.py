"""What killed sessions left is closed, and what is older than wanted goes, a little at a time.

A session goes with all its rows, unless it is running. Should a running one alone be larger than
wanted, the older half of its own steps goes, and it can no longer be replayed.

What the queries of a template took is kept apart (`past`) and goes by other rules: the last
`RUNS` of each template, `MOST_PAST` in all. So predictions do not begin anew every month.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import ColumnElement, Connection, Table, func, literal_column, select

from . import presence
from .presence import DAY_S
from .retention import Retention
from .schema import OF_A_SESSION, ended, past, sessions, steps
from .selections import LOST, lost_ends, unclosed

# Rows removed in one transaction, so that other sessions wait for milliseconds only.
CHUNK = 2_000
PAGES = 1_000
RUNS = 32
MOST_PAST = 20_000
_ROWID: ColumnElement[int] = literal_column("rowid")


def tidy(connection: Connection, file: Path, keep: Retention, own: str) -> Iterator[None]:
    """Close and remove what is over; each step is one short transaction."""
    now = time.time()
    with connection.begin():
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
    yield from _give_back(connection)


def give_sign_of_life(connection: Connection, own: str, now: float) -> None:
    """Say that a session is there, also where another one took it for gone."""
    connection.execute(sessions.update().where(sessions.c.session == own).values(seen_at=now))
    connection.execute(ended.delete().where(ended.c.session == own, ended.c.outcome == LOST))


def _close_lost(connection: Connection, file: Path, own: str, now: float) -> Iterator[None]:
    """Give the queries of killed sessions an end."""
    with connection.begin():
        rows = connection.execute(unclosed()).all()
        gone = {
            session
            for session, seen_at in rows
            if session != own and presence.is_gone(file, session, seen_at, now)
        }
        if gone:
            connection.execute(ended.insert().from_select(ended.c.keys(), lost_ends(gone)))
    # For a day the lock file tells that a session was killed; afterwards its silence does.
    signs = {row.session: row.seen_at for row in rows}
    for session in presence.known(file):
        seen_at = signs.get(session)
        if seen_at is not None and seen_at >= now - DAY_S:
            continue
        # Of one that has closed, or is not in the file yet, only the lock counts.
        if presence.is_gone(file, session, now if seen_at is None else seen_at, now):
            presence.forget(file, session)
    yield


def _ended(connection: Connection, own: str, now: float, before: float) -> list[str]:
    """Sessions last seen before a time, the oldest first, without those that may be running.

    A session says once an hour that it is there; one that has not for a day was killed.
    """
    runs = sessions.c.closed_at.is_(None) & (sessions.c.seen_at > now - DAY_S)
    wanted = (
        select(sessions.c.session)
        .where(sessions.c.seen_at < before, sessions.c.session != own, ~runs)
        .order_by(sessions.c.seen_at)
    )
    with connection.begin():
        return list(connection.scalars(wanted))


def _remove_session(connection: Connection, session: str) -> Iterator[None]:
    for table in OF_A_SESSION:
        yield from _remove(connection, table, table.c.session == session)


def _remove_older_steps(connection: Connection, session: str) -> Iterator[None]:
    mine = steps.c.session == session
    ends = select(func.min(steps.c.number), func.max(steps.c.number)).where(mine)
    with connection.begin():
        first, last = connection.execute(ends).one()
    if first is not None:
        yield from _remove(connection, steps, mine & (steps.c.number < (first + last) // 2))


def _forget_past(connection: Connection) -> Iterator[None]:
    newest = func.row_number().over(order_by=past.c.ended_at.desc())
    of_template = func.row_number().over(
        partition_by=past.c.template, order_by=past.c.ended_at.desc()
    )
    ranked = select(
        _ROWID.label("row"), newest.label("newest"), of_template.label("of_template")
    ).select_from(past)
    places = ranked.subquery()
    wanted = select(places.c.row).where(
        (places.c.newest > MOST_PAST) | (places.c.of_template > RUNS)
    )
    with connection.begin():
        connection.execute(past.delete().where(_ROWID.in_(wanted)))
    yield


def _remove(connection: Connection, table: Table, which: ColumnElement[bool]) -> Iterator[None]:
    some = select(_ROWID).select_from(table).where(which).limit(CHUNK)
    removal = table.delete().where(_ROWID.in_(some))
    while True:
        with connection.begin():
            removed = connection.execute(removal).rowcount
        yield
        if removed < CHUNK:
            return


def _give_back(connection: Connection) -> Iterator[None]:
    """Pages that are free go back to the file system."""
    while free := _pragma(connection, "freelist_count"):
        # It frees a page a step, and only a script is stepped to its end.
        raw = connection.connection.cursor()
        raw.executescript(f"PRAGMA incremental_vacuum({PAGES})")
        raw.close()
        yield
        if _pragma(connection, "freelist_count") >= free:
            return


def _used_bytes(connection: Connection) -> int:
    pages = _pragma(connection, "page_count") - _pragma(connection, "freelist_count")
    return pages * _pragma(connection, "page_size")


def _pragma(connection: Connection, name: str) -> int:
    with connection.begin():
        value: int = connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
    return value

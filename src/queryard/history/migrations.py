"""From any earlier form of the file to the present one.

A form is never edited once it has been in use: a change is a further migration, at the
end of the list, and the tables in `schema.py` follow. The version of a file is the number of
migrations it has been through, kept in SQLite's own `user_version`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from .errors import HistoryError

APPLICATION_ID = 0x51795264  # "QyRd": tells a history from the databases of other programs

_FIRST = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    "CREATE TABLE sessions (session TEXT PRIMARY KEY, began_at FLOAT, seen_at FLOAT, "
    "closed_at FLOAT, version TEXT, pid INTEGER, slots INTEGER, memory_bytes INTEGER, "
    "settings TEXT, profile TEXT)",
    "CREATE TABLE steps (session TEXT, number INTEGER, time_s FLOAT, events TEXT, commands TEXT, "
    "PRIMARY KEY (session, number))",
    "CREATE TABLE asked (session TEXT, query TEXT, time_s FLOAT, sql TEXT, template TEXT, "
    "tenant TEXT, priority FLOAT, deadline_s FLOAT, plan TEXT, memory_bytes INTEGER, "
    "predicted_work_s FLOAT, predicted_memory_bytes INTEGER, predicted_by TEXT, twin_of TEXT)",
    "CREATE INDEX asked_by_query ON asked (session, query)",
    "CREATE TABLE ended (session TEXT, query TEXT, time_s FLOAT, started_s FLOAT, outcome TEXT, "
    "error TEXT, work_s FLOAT, held_s FLOAT, peak_memory_bytes INTEGER, rows INTEGER)",
    "CREATE INDEX ended_by_query ON ended (session, query)",
    "CREATE TABLE forecasts (session TEXT, query TEXT, made_s FLOAT, start_s FLOAT, end_s FLOAT)",
    "CREATE INDEX forecasts_by_query ON forecasts (session, query)",
    "CREATE TABLE jobs (session TEXT, job TEXT, query TEXT, operator TEXT, upstream TEXT, "
    "width INTEGER, maps INTEGER, reduces INTEGER, submitted_s FLOAT, started_s FLOAT, "
    "ended_s FLOAT, outcome TEXT, PRIMARY KEY (session, job))",
    "CREATE TABLE tasks (session TEXT, launch INTEGER, job TEXT, kind TEXT, task INTEGER, "
    "node TEXT, round TEXT, started_s FLOAT, ended_s FLOAT, outcome TEXT, cause TEXT, "
    "PRIMARY KEY (session, launch, job, kind, task))",
    "CREATE TABLE leases (session TEXT, number INTEGER, job TEXT, node TEXT, slots INTEGER, "
    "started_s FLOAT, ended_s FLOAT, outcome TEXT, cause TEXT, PRIMARY KEY (session, number))",
    "CREATE TABLE estimates (session TEXT, time_s FLOAT, job TEXT, map_s FLOAT, reduce_s FLOAT, "
    "work_s FLOAT)",
    "CREATE INDEX estimates_by_session ON estimates (session)",
    "CREATE TABLE policies (session TEXT, time_s FLOAT, profile TEXT)",
    "CREATE INDEX policies_by_session ON policies (session)",
)
_COSTS_AND_PAST = (
    "ALTER TABLE ended ADD COLUMN burst_s FLOAT DEFAULT 0",
    "CREATE TABLE costs (session TEXT, time_s FLOAT, decisions INTEGER, decide_s FLOAT, "
    "driver_cpu_s FLOAT, watch_cpu_s FLOAT, history_cpu_s FLOAT, process_cpu_s FLOAT, "
    "rss_bytes INTEGER, waiting INTEGER, running INTEGER, bursts INTEGER, burst_s FLOAT)",
    "CREATE INDEX costs_by_session ON costs (session)",
    "CREATE TABLE past (template TEXT, ended_at FLOAT, work_s FLOAT, held_s FLOAT, "
    "peak_memory_bytes INTEGER)",
    "CREATE INDEX past_by_template ON past (template, ended_at)",
    "INSERT INTO past SELECT asked.template, sessions.began_at + ended.time_s, ended.work_s, "
    "ended.held_s, ended.peak_memory_bytes FROM ended JOIN asked USING (session, query) "
    "JOIN sessions USING (session) WHERE ended.outcome = 'finished' AND asked.twin_of = ''",
)
_FORESEEN = (
    "ALTER TABLE ended ADD COLUMN foreseen_s FLOAT",
    "ALTER TABLE ended ADD COLUMN foreseen_spread FLOAT",
    "ALTER TABLE ended ADD COLUMN foreseen_by TEXT DEFAULT ''",
    "ALTER TABLE ended ADD COLUMN foreseen_part TEXT DEFAULT ''",
)
_DONE = (
    "CREATE TABLE done (session TEXT, tenant TEXT, key TEXT, statement TEXT, query TEXT, "
    "ended_at FLOAT, PRIMARY KEY (tenant, key))",
)
# For pages that show a stretch of time, or one query with all its slots.
_BY_TIME = (
    "CREATE INDEX asked_by_time ON asked (session, time_s)",
    "CREATE INDEX ended_by_time ON ended (session, time_s)",
    "DROP INDEX costs_by_session",
    "CREATE INDEX costs_by_time ON costs (session, time_s)",
    "CREATE INDEX leases_by_job ON leases (session, job)",
    "CREATE INDEX tasks_by_job ON tasks (session, job)",
)

_HELD = (
    "CREATE TABLE held (session TEXT, query TEXT, reason TEXT, seconds FLOAT)",
    "CREATE INDEX held_by_query ON held (session, query)",
)
_BEGUN = ("ALTER TABLE done ADD COLUMN state TEXT DEFAULT 'done'",)

# How large the tables of a query were: a template takes more once they have grown.
_TABLE_BYTES = (
    "ALTER TABLE ended ADD COLUMN table_bytes FLOAT",
    "ALTER TABLE past ADD COLUMN table_bytes FLOAT",
)

# What models of the costs of queries have learnt.
_LEARNT = ("CREATE TABLE learnt (model TEXT PRIMARY KEY, saved_at FLOAT, state TEXT)",)

MIGRATIONS: Sequence[Sequence[str]] = (
    _FIRST,
    _COSTS_AND_PAST,
    _FORESEEN,
    _DONE,
    _BY_TIME,
    _HELD,
    _BEGUN,
    _TABLE_BYTES,
    _LEARNT,
)
VERSION = len(MIGRATIONS)


def version_of(connection: sqlite3.Connection, file: str) -> int:
    """The version of a file, 0 for an empty one; refuses files that are no history.

    In the transaction that the caller has begun: another process may be making the tables.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise HistoryError(
                f"{file}: a SQLite database, but not a history of Queryard's; name another file"
            )
        return 0
    if version > VERSION:
        raise HistoryError(
            f"{file}: a history of version {version}, and this Queryard knows versions up to "
            f"{VERSION}; use a newer Queryard, or another file"
        )
    return version


def migrate(connection: sqlite3.Connection, file: str, upto: int = VERSION) -> None:
    """Bring a file up to date, in the transaction that the caller has begun."""
    version = version_of(connection, file)
    for statements in MIGRATIONS[version:upto]:
        for statement in statements:
            connection.execute(statement)
    if version < upto:
        connection.execute(f"PRAGMA user_version = {upto}")

"""The tables as SQLAlchemy sees them; `migrations.py` is what makes them.

Everything belongs to a session. `steps` is the journal, and jobs, tasks, leases, estimates and
policies are read off it. `past` outlives the sessions: what the queries of a template took.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Float, Integer, MetaData, Table, Text
from sqlalchemy.types import TypeEngine

metadata = MetaData()


def _table(name: str, *columns: tuple[str, type[TypeEngine[Any]]], key: int = 0) -> Table:
    """A table; the first `key` columns tell its rows apart."""
    return Table(
        name,
        metadata,
        *(Column(column, kind, primary_key=i < key) for i, (column, kind) in enumerate(columns)),
    )


sessions = _table(
    "sessions",
    ("session", Text),
    ("began_at", Float),
    ("seen_at", Float),
    ("closed_at", Float),
    ("version", Text),
    ("pid", Integer),
    ("slots", Integer),
    ("memory_bytes", Integer),
    ("settings", Text),
    ("profile", Text),
    key=1,
)
steps = _table(
    "steps",
    ("session", Text),
    ("number", Integer),
    ("time_s", Float),
    ("events", Text),
    ("commands", Text),
    key=2,
)
asked = _table(
    "asked",
    ("session", Text),
    ("query", Text),
    ("time_s", Float),
    ("sql", Text),
    ("template", Text),
    ("tenant", Text),
    ("priority", Float),
    ("deadline_s", Float),
    ("plan", Text),
    ("memory_bytes", Integer),
    ("predicted_work_s", Float),
    ("predicted_memory_bytes", Integer),
    ("predicted_by", Text),
    ("twin_of", Text),
)
ended = _table(
    "ended",
    ("session", Text),
    ("query", Text),
    ("time_s", Float),
    ("started_s", Float),
    ("outcome", Text),
    ("error", Text),
    ("work_s", Float),
    ("held_s", Float),
    ("peak_memory_bytes", Integer),
    ("rows", Integer),
    ("burst_s", Float),
)
forecasts = _table(
    "forecasts",
    ("session", Text),
    ("query", Text),
    ("made_s", Float),
    ("start_s", Float),
    ("end_s", Float),
)
costs = _table(
    "costs",
    ("session", Text),
    ("time_s", Float),
    ("decisions", Integer),
    ("decide_s", Float),
    ("driver_cpu_s", Float),
    ("watch_cpu_s", Float),
    ("history_cpu_s", Float),
    ("process_cpu_s", Float),
    ("rss_bytes", Integer),
    ("waiting", Integer),
    ("running", Integer),
    ("bursts", Integer),
    ("burst_s", Float),
)
jobs = _table(
    "jobs",
    ("session", Text),
    ("job", Text),
    ("query", Text),
    ("operator", Text),
    ("upstream", Text),
    ("width", Integer),
    ("maps", Integer),
    ("reduces", Integer),
    ("submitted_s", Float),
    ("started_s", Float),
    ("ended_s", Float),
    ("outcome", Text),
    key=2,
)
tasks = _table(
    "tasks",
    ("session", Text),
    ("launch", Integer),
    ("job", Text),
    ("kind", Text),
    ("task", Integer),
    ("node", Text),
    ("round", Text),
    ("started_s", Float),
    ("ended_s", Float),
    ("outcome", Text),
    ("cause", Text),
    key=5,
)
leases = _table(
    "leases",
    ("session", Text),
    ("number", Integer),
    ("job", Text),
    ("node", Text),
    ("slots", Integer),
    ("started_s", Float),
    ("ended_s", Float),
    ("outcome", Text),
    ("cause", Text),
    key=2,
)
estimates = _table(
    "estimates",
    ("session", Text),
    ("time_s", Float),
    ("job", Text),
    ("map_s", Float),
    ("reduce_s", Float),
    ("work_s", Float),
)
policies = _table(
    "policies",
    ("session", Text),
    ("time_s", Float),
    ("profile", Text),
)
past = _table(
    "past",
    ("template", Text),
    ("ended_at", Float),
    ("work_s", Float),
    ("held_s", Float),
    ("peak_memory_bytes", Integer),
)

# The largest first, so that most of a session is gone if removing it is interrupted.
OF_A_SESSION = (
    steps,
    leases,
    tasks,
    estimates,
    jobs,
    forecasts,
    costs,
    policies,
    ended,
    asked,
    sessions,
)
# Of these a later row takes the place of an earlier one: what was open has ended.
REWRITTEN = (jobs, tasks, leases)

"""The tables as they are now, and how a row goes into each; `migrations.py` makes them.

Everything belongs to a session. `steps` is the journal, and jobs, tasks, leases, estimates and
policies are read off it. Three tables outlive the sessions: `past`, what the queries of a template
took, `learnt`, what models have learnt from all of them, and `done`, the statements with side
effects that were begun under an idempotency key.
"""

from __future__ import annotations

COLUMNS = {
    "sessions": (
        "session, began_at, seen_at, closed_at, version, pid, slots, memory_bytes, settings, "
        "profile"
    ),
    "steps": "session, number, time_s, events, commands",
    "asked": (
        "session, query, time_s, sql, template, tenant, priority, deadline_s, plan, memory_bytes, "
        "predicted_work_s, predicted_memory_bytes, predicted_by, twin_of"
    ),
    "ended": (
        "session, query, time_s, started_s, outcome, error, work_s, held_s, peak_memory_bytes, "
        "rows, burst_s, foreseen_s, foreseen_spread, foreseen_by, foreseen_part, table_bytes"
    ),
    "forecasts": "session, query, made_s, start_s, end_s",
    "held": "session, query, reason, seconds",
    "costs": (
        "session, time_s, decisions, decide_s, driver_cpu_s, watch_cpu_s, history_cpu_s, "
        "process_cpu_s, rss_bytes, waiting, running, bursts, burst_s"
    ),
    "jobs": (
        "session, job, query, operator, upstream, width, maps, reduces, submitted_s, started_s, "
        "ended_s, outcome"
    ),
    "tasks": "session, launch, job, kind, task, node, round, started_s, ended_s, outcome, cause",
    "leases": "session, number, job, node, slots, started_s, ended_s, outcome, cause",
    "estimates": "session, time_s, job, map_s, reduce_s, work_s",
    "policies": "session, time_s, profile",
    "past": "template, ended_at, work_s, held_s, peak_memory_bytes, table_bytes",
    "learnt": "model, saved_at, state",
    "done": "session, tenant, key, statement, query, ended_at, state",
}

# The largest first, so that most of a session is gone if removing it is interrupted.
OF_A_SESSION = (
    "steps",
    "leases",
    "tasks",
    "estimates",
    "jobs",
    "forecasts",
    "held",
    "costs",
    "policies",
    "ended",
    "asked",
    "sessions",
)
# Of these a later row takes the place of an earlier one: what was open has ended.
REWRITTEN = ("jobs", "tasks", "leases", "learnt", "done")

INSERT = {
    table: f"INSERT {'OR REPLACE ' if table in REWRITTEN else ''}INTO {table} ({columns}) "
    f"VALUES (:{columns.replace(', ', ', :')})"
    for table, columns in COLUMNS.items()
}

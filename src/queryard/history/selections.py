"""What readers ask of the file, in SQL. Every statement takes the named values that it mentions.

Lists of names are handed over as JSON arrays, as SQLite binds single values only.
"""

from __future__ import annotations

from collections.abc import Collection

TIMED_OUT = "the query ran into its time limit"
"""How the error begins of a query that was stopped, although its outcome is that it failed."""

SESSIONS = """
SELECT sessions.*,
    (SELECT count(*) FROM asked WHERE asked.session = sessions.session) AS queries,
    coalesce(
        (SELECT max(number) FROM steps WHERE steps.session = sessions.session), 0
    ) AS steps,
    coalesce(
        (SELECT time_s FROM steps WHERE steps.session = sessions.session
         ORDER BY number DESC LIMIT 1), 0.0
    ) AS last_s
FROM sessions ORDER BY began_at, session
"""

# Sessions that run, or were killed.
UNCLOSED = "SELECT session, seen_at FROM sessions WHERE closed_at IS NULL"

# The last few runs of each template, and the last few that were cancelled; the oldest first. The
# latter stand nowhere but among the queries of their sessions, and are forgotten with them.
PAST = f"""
WITH runs AS (
    SELECT template, ended_at, work_s, held_s, peak_memory_bytes, 'finished' AS outcome,
        table_bytes
    FROM past
    UNION ALL
    SELECT template, began_at + ended.time_s, work_s, held_s, peak_memory_bytes, 'cancelled',
        table_bytes
    FROM ended JOIN asked USING (session, query) JOIN sessions USING (session)
    WHERE (outcome = 'cancelled' OR error LIKE '{TIMED_OUT}%')
        AND started_s IS NOT NULL AND work_s > 0 AND twin_of = '' AND plan != 'staged'
), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY template, outcome ORDER BY ended_at DESC) AS place
    FROM runs
)
SELECT template, ended_at, work_s, held_s, peak_memory_bytes, outcome,
    coalesce(table_bytes, 0.0) AS table_bytes
FROM ranked WHERE place <= :limit ORDER BY ended_at
"""

# What is known of the queries that were on their way when their session was killed; `:gone` are
# such sessions. They never ended, so they have no time. What they held until the last step of the
# session is known; what they took is not.
LOST = """
WITH gone AS (
    SELECT value AS session,
        (SELECT time_s FROM steps WHERE steps.session = value ORDER BY number DESC LIMIT 1)
            AS last_s
    FROM json_each(:gone)
), held AS (
    SELECT session, job,
        slots * (coalesce(ended_s, last_s) - coalesce(started_s, last_s)) AS held_s
    FROM gone JOIN leases USING (session)
    UNION ALL
    SELECT session, job, coalesce(ended_s, last_s) - coalesce(started_s, last_s)
    FROM gone JOIN tasks USING (session)
), held_by_job AS (
    SELECT session, job, sum(held_s) AS held_s FROM held GROUP BY session, job
), ran AS (
    SELECT session, query, min(started_s) AS started_s, sum(held_s) AS held_s
    FROM gone JOIN jobs USING (session) LEFT JOIN held_by_job USING (session, job)
    GROUP BY session, query
)
SELECT asked.session, asked.query, ran.started_s, 'lost' AS outcome,
    'the process of its session ended before the query did' AS error,
    coalesce(ran.held_s, 0.0) AS held_s
FROM gone JOIN asked USING (session)
    LEFT JOIN ended USING (session, query) LEFT JOIN ran USING (session, query)
WHERE ended.query IS NULL
"""

_WANTED = {
    "query": "asked.query = :query",
    "session": "asked.session = :session",
    "tenant": "(tenant = :tenant OR substr(tenant, 1, length(:tenant) + 1) = :tenant || '/')",
    "since": "began_at + asked.time_s >= :since",
    "until": "began_at + asked.time_s < :until",
    "template": "template = :template",
    "outcomes": (
        "coalesce(ended.outcome, lost.outcome, 'open') IN (SELECT value FROM json_each(:outcomes))"
    ),
}


def queries(given: Collection[str]) -> str:
    """Queries with their ends and forecasts; the last `:limit`, in the order they were asked.

    `given` are those of `_WANTED` by which queries are chosen. A query of a session among `:gone`
    is lost if its end was never recorded.
    """
    wanted = " AND ".join(text for name, text in _WANTED.items() if name in given) or "true"
    return f"""
WITH lost AS ({LOST}), chosen AS (
    SELECT asked.rowid AS row, asked.session, asked.query, began_at + asked.time_s AS asked_at,
        asked.time_s AS asked_s, sql, template, tenant, priority, deadline_s, plan,
        asked.memory_bytes, predicted_work_s, predicted_memory_bytes, predicted_by, twin_of,
        ended.time_s AS ended_s, coalesce(ended.started_s, lost.started_s) AS started_s,
        coalesce(ended.outcome, lost.outcome, 'open') AS outcome,
        coalesce(ended.error, lost.error, '') AS error,
        ended.work_s, coalesce(ended.held_s, lost.held_s) AS held_s,
        ended.peak_memory_bytes, ended.rows, ended.burst_s, ended.foreseen_s,
        ended.foreseen_spread, coalesce(ended.foreseen_by, '') AS foreseen_by,
        coalesce(ended.foreseen_part, '') AS foreseen_part
    FROM asked JOIN sessions USING (session)
        LEFT JOIN ended USING (session, query) LEFT JOIN lost USING (session, query)
    WHERE {wanted}
    ORDER BY asked_at DESC, asked.rowid DESC LIMIT :limit
)
SELECT chosen.*,
    first.made_s AS first_made_s, first.start_s AS first_start_s, first.end_s AS first_end_s,
    last.made_s AS last_made_s, last.start_s AS last_start_s, last.end_s AS last_end_s
FROM chosen
    LEFT JOIN forecasts AS first ON first.rowid = ({_forecast("made_s")})
    LEFT JOIN forecasts AS last ON last.rowid = ({_forecast("made_s DESC")})
ORDER BY asked_at, row
"""


def _forecast(order: str) -> str:
    """Which forecast of a chosen query is the first in an order."""
    return (
        "SELECT rowid FROM forecasts WHERE session = chosen.session AND query = chosen.query "
        f"ORDER BY {order}, rowid LIMIT 1"
    )


_SPAN = "session = :session AND asked.time_s >= :low AND asked.time_s < :high"
SPAN_JOBS = f"""
SELECT jobs.* FROM asked JOIN jobs USING (session, query)
WHERE {_SPAN} ORDER BY asked.time_s, jobs.rowid
"""
SPAN_TASKS = f"""
SELECT job, kind, avg(tasks.ended_s - tasks.started_s) AS mean_s
FROM asked JOIN jobs USING (session, query) JOIN tasks USING (session, job)
WHERE {_SPAN} AND tasks.outcome = 'finished' GROUP BY job, kind
"""
SPAN_EVENTS = """
SELECT events FROM steps
WHERE session = :session AND time_s >= :low AND time_s < :high AND events LIKE :kind
ORDER BY number
"""

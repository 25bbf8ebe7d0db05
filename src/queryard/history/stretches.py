"""What pages ask of a stretch of time, in SQL: `:since` and `:until` are seconds since 1970.

Sessions come first in every join, so that the rows of each are found by its own clock, through an
index, and a stretch costs what it holds, however long the history is.
"""

from __future__ import annotations

# A tenant and those below it; all of them if none is given.
_OF_TENANT = (
    "(:tenant IS NULL OR tenant = :tenant "
    "OR substr(tenant, 1, length(:tenant) + 1) = :tenant || '/')"
)
_IN_STRETCH = "{0}.time_s >= :since - began_at AND {0}.time_s < :until - began_at"

# Sessions of a stretch, the latest first.
SESSIONS = """
SELECT session FROM sessions WHERE coalesce(closed_at, :until) >= :since AND began_at < :until
ORDER BY began_at DESC
"""

# Queries of a session that ended in a stretch, the latest first: in the order of the index, as
# sorting very many would take longer than finding them.
ENDED_COLUMNS = {
    "tenant": "TEXT",
    "template": "TEXT",
    "outcome": "TEXT",
    "ended_at": "FLOAT",
    "response_s": "FLOAT",
    "work_s": "FLOAT",
    "slots": "INTEGER",
    "late_s": "FLOAT",
    "foreseen_s": "FLOAT",
    "is_twin": "INTEGER",
}
ENDED = f"""
SELECT tenant, substr(template, 1, :characters), outcome, began_at + ended.time_s AS ended_at,
    ended.time_s - asked.time_s AS response_s, ended.work_s, sessions.slots,
    ended.time_s - deadline_s AS late_s, coalesce(foreseen_s, predicted_work_s) AS foreseen_s,
    twin_of != '' AS is_twin
FROM sessions
    CROSS JOIN ended ON ended.session = sessions.session
    CROSS JOIN asked ON asked.session = ended.session AND asked.query = ended.query
WHERE sessions.session = :session AND {_IN_STRETCH.format("ended")} AND {_OF_TENANT}
ORDER BY ended.time_s DESC LIMIT :limit
"""

# By day of UTC and tenant: how many queries ended, and what they took.
DAYS = f"""
SELECT date(began_at + ended.time_s, 'unixepoch') AS day, tenant, count(*) AS queries,
    sum(outcome = 'failed') AS failed, sum(outcome = 'finished') AS finished,
    sum(CASE WHEN outcome = 'finished' THEN ended.time_s - asked.time_s END) AS response_s,
    total(work_s) AS work_s
FROM sessions
    CROSS JOIN ended ON ended.session = sessions.session
    CROSS JOIN asked ON asked.session = ended.session AND asked.query = ended.query
WHERE coalesce(closed_at, :until) >= :since AND began_at < :until
    AND {_IN_STRETCH.format("ended")}
GROUP BY day, tenant ORDER BY day, tenant
"""

# Queries that ended in a stretch, a page of them, the latest first.
PAGE = f"""
SELECT asked.session, asked.query, began_at + asked.time_s AS asked_at,
    began_at + ended.started_s AS started_at, began_at + ended.time_s AS ended_at,
    began_at + deadline_s AS deadline_at, substr(sql, 1, :characters) AS sql, tenant, outcome,
    substr(error, 1, :characters) AS error, work_s, held_s, rows,
    coalesce(foreseen_s, predicted_work_s) AS foreseen_s
FROM sessions
    CROSS JOIN ended ON ended.session = sessions.session
    CROSS JOIN asked ON asked.session = ended.session AND asked.query = ended.query
WHERE coalesce(closed_at, :until) >= :since AND began_at < :until
    AND {_IN_STRETCH.format("ended")} AND {_OF_TENANT}
ORDER BY ended_at DESC, asked.rowid DESC LIMIT :limit OFFSET :skip
"""

# What sessions themselves have cost between two notes of it, added up by steps of time.
COSTS = f"""
WITH noted AS (
    SELECT began_at + time_s AS at, slots, waiting, running, rss_bytes,
        time_s - lag(time_s) OVER noting AS seconds,
        process_cpu_s - lag(process_cpu_s) OVER noting AS process_cpu_s,
        driver_cpu_s - lag(driver_cpu_s) OVER noting AS driver_cpu_s,
        watch_cpu_s - lag(watch_cpu_s) OVER noting AS watch_cpu_s,
        history_cpu_s - lag(history_cpu_s) OVER noting AS history_cpu_s,
        decide_s - lag(decide_s) OVER noting AS decide_s,
        decisions - lag(decisions) OVER noting AS decisions
    FROM sessions CROSS JOIN costs ON costs.session = sessions.session
    WHERE coalesce(closed_at, :until) >= :since AND began_at < :until
        AND {_IN_STRETCH.format("costs")}
    WINDOW noting AS (PARTITION BY costs.session ORDER BY time_s)
)
SELECT CAST((at - seconds - :since) / :step_s AS INTEGER) AS step, sum(seconds) AS seconds,
    sum(slots * seconds) AS slots_total, sum(waiting * seconds) AS waiting,
    sum(running * seconds) AS running, sum(rss_bytes * seconds) AS memory_bytes,
    sum(process_cpu_s) AS process_cpu, sum(driver_cpu_s) AS driver, sum(watch_cpu_s) AS watch,
    sum(history_cpu_s) AS history, sum(decide_s) AS decide_s, sum(decisions) AS decisions
FROM noted WHERE seconds > 0 GROUP BY step ORDER BY step
"""

# What changed the policy, the latest first; the first policy of a session comes with it.
POLICIES = """
SELECT at, session, profile FROM (
    SELECT began_at + time_s AS at, sessions.session AS session, policies.profile AS profile
    FROM sessions CROSS JOIN policies ON policies.session = sessions.session
    UNION ALL SELECT began_at, session, profile FROM sessions
) WHERE at < :until ORDER BY at DESC LIMIT :limit
"""

# The slots that one query held. Names of jobs begin with that of their query and a slash.
_OF_QUERY = "session = :session AND job > :query || '/' AND job < :query || '0'"
JOBS = f"SELECT * FROM jobs WHERE {_OF_QUERY} ORDER BY submitted_s, job"
HELD = "SELECT reason, seconds FROM held WHERE session = :session AND query = :query"
LEASES = f"SELECT * FROM leases WHERE {_OF_QUERY} ORDER BY started_s, number LIMIT :limit"
TASKS = f"SELECT * FROM tasks WHERE {_OF_QUERY} ORDER BY started_s, launch LIMIT :limit"
# The launches that it shared with others, and those others with their tenants.
RIDES = f"""
SELECT own.launch, asked.query, asked.tenant, count(*) AS tasks
FROM (SELECT DISTINCT session, launch FROM tasks WHERE {_OF_QUERY} LIMIT :limit) AS own
    CROSS JOIN tasks ON tasks.session = own.session AND tasks.launch = own.launch
    CROSS JOIN asked ON asked.session = tasks.session
        AND asked.query = substr(tasks.job, 1, instr(tasks.job, '/') - 1)
WHERE asked.query != :query GROUP BY own.launch, asked.query, asked.tenant
"""
TWINS = """
SELECT query, tenant FROM asked
WHERE session = :session AND query != :query AND twin_of IN (:query, :twin_of) AND twin_of != ''
    AND time_s >= :since_s AND time_s <= :until_s
UNION SELECT query, tenant FROM asked
WHERE session = :session AND query = :twin_of AND query != :query
LIMIT :limit
"""

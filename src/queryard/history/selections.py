"""What readers ask of the file."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Select,
    Table,
    and_,
    func,
    literal,
    literal_column,
    null,
    or_,
    select,
    union_all,
)

from . import schema
from .schema import asked, ended, forecasts, jobs, leases, steps, tasks

OPEN = "open"
TIMED_OUT = "the query ran into its time limit"
"""How the error begins of a query that was stopped, although its outcome is that it failed."""
LOST = "lost"


def of_session(table: Table, session: str, order: str) -> Select[Any]:
    """All rows of a session, in an order; equal ones as they were written."""
    rowid: ColumnElement[int] = literal_column(f"{table.name}.rowid")
    return select(table).where(table.c.session == session).order_by(table.c[order], rowid)


def sessions() -> Select[Any]:
    """Sessions, with how much there is of each."""
    row = schema.sessions
    queries = select(func.count()).where(asked.c.session == row.c.session).scalar_subquery()
    number = select(func.max(steps.c.number)).where(steps.c.session == row.c.session)
    last = (
        select(steps.c.time_s)
        .where(steps.c.session == row.c.session)
        .order_by(steps.c.number.desc())
        .limit(1)
    )
    return select(
        row,
        queries.label("queries"),
        func.coalesce(number.scalar_subquery(), 0).label("steps"),
        func.coalesce(last.scalar_subquery(), 0.0).label("last_s"),
    ).order_by(row.c.began_at, row.c.session)


def past(limit: int) -> Select[Any]:
    """The last few runs of each template, and the last few that were cancelled; the oldest first.

    The latter stand nowhere but among the queries of their sessions, and are forgotten with them.
    """
    finished = select(schema.past, literal("finished").label("outcome"))
    stopped = or_(ended.c.outcome == "cancelled", ended.c.error.startswith(TIMED_OUT))
    cancelled = (
        select(
            asked.c.template,
            (schema.sessions.c.began_at + ended.c.time_s).label("ended_at"),
            *(ended.c[name] for name in ("work_s", "held_s", "peak_memory_bytes")),
            literal("cancelled").label("outcome"),
        )
        .join_from(ended, asked, _same(ended, asked))
        .join(schema.sessions, schema.sessions.c.session == ended.c.session)
        .where(stopped, ended.c.started_s.is_not(None), ended.c.work_s > 0)
        .where(asked.c.twin_of == "", asked.c.plan != "staged")
    )
    row = union_all(finished, cancelled).subquery()
    place = func.row_number().over(
        partition_by=(row.c.template, row.c.outcome), order_by=row.c.ended_at.desc()
    )
    ranked = select(row, place.label("place")).subquery()
    kept = (c for c in ranked.c if c.name != "place")
    return select(*kept).where(ranked.c.place <= limit).order_by(ranked.c.ended_at)


def unclosed() -> Select[Any]:
    """Sessions that run, or were killed."""
    row = schema.sessions
    return select(row.c.session, row.c.seen_at).where(row.c.closed_at.is_(None))


def lost_ends(gone: Collection[str]) -> Select[Any]:
    """The rows of `ended` for queries that were on their way when their session was killed.

    They never ended, so they have no time. What they held until the last step of the session is
    known; what they took is not.
    """
    slots_s = leases.c.slots * (func.coalesce(leases.c.ended_s, _last_s(leases)) - _began(leases))
    task_s = func.coalesce(tasks.c.ended_s, _last_s(tasks)) - _began(tasks)
    held = union_all(
        select(leases.c.session, leases.c.job, slots_s.label("held_s")).where(_of(leases, gone)),
        select(tasks.c.session, tasks.c.job, task_s.label("held_s")).where(_of(tasks, gone)),
    ).subquery()
    by_job = (
        select(held.c.session, held.c.job, func.sum(held.c.held_s).label("held_s"))
        .group_by(held.c.session, held.c.job)
        .subquery()
    )
    same_job = and_(by_job.c.session == jobs.c.session, by_job.c.job == jobs.c.job)
    ran = (
        select(
            jobs.c.session,
            jobs.c.query,
            func.min(jobs.c.started_s).label("started_s"),
            func.sum(by_job.c.held_s).label("held_s"),
        )
        .outerjoin_from(jobs, by_job, same_job)
        .where(_of(jobs, gone))
        .group_by(jobs.c.session, jobs.c.query)
        .subquery()
    )
    known: dict[str, Any] = {
        "session": asked.c.session,
        "query": asked.c.query,
        "started_s": ran.c.started_s,
        "outcome": literal_column(f"'{LOST}'"),
        "error": literal_column("'the process of its session ended before the query did'"),
        "held_s": func.coalesce(ran.c.held_s, 0.0),
    }
    return (
        select(*(known.get(c.name, null()).label(c.name) for c in ended.c))
        .outerjoin_from(asked, ended, _same(asked, ended))
        .outerjoin(ran, _same(asked, ran))
        .where(_of(asked, gone), ended.c.query.is_(None))
    )


def _of(table: Table, gone: Collection[str]) -> ColumnElement[bool]:
    return table.c.session.in_(sorted(gone))


def _began(table: Table) -> ColumnElement[float]:
    return func.coalesce(table.c.started_s, _last_s(table))


def _last_s(table: Table) -> ColumnElement[float]:
    """The time of the last step of a row's session."""
    of_session = steps.c.session == table.c.session
    last = select(steps.c.time_s).where(of_session).order_by(steps.c.number.desc()).limit(1)
    return last.correlate(table).scalar_subquery()


def queries(
    session: str | None,
    tenant: str | None,
    since: float | None,
    limit: int | None,
    template: str | None,
    outcomes: Collection[str] | None,
    gone: Collection[str],
) -> Select[Any]:
    """Queries with their ends and forecasts; the last `limit`, in the order they were asked.

    Those of sessions that are `gone` are lost if their end was never recorded.
    """
    ends: FromClause = ended
    if gone:
        ends = union_all(select(ended), lost_ends(gone)).subquery("ends")
    chosen = _chosen(session, tenant, since, template, outcomes, ends).limit(limit).subquery()
    first, last = forecasts.alias("first"), forecasts.alias("last")
    made = forecasts.c.made_s
    return (
        select(
            *(c for c in chosen.c if c.name != "row"),
            *(c.label(f"first_{c.name}") for c in _times(first)),
            *(c.label(f"last_{c.name}") for c in _times(last)),
        )
        .outerjoin_from(chosen, first, _is(first, chosen, made.asc()))
        .outerjoin(last, _is(last, chosen, made.desc()))
        .order_by(chosen.c.asked_at, chosen.c.row)
    )


def _chosen(
    session: str | None,
    tenant: str | None,
    since: float | None,
    template: str | None,
    outcomes: Collection[str] | None,
    ends: FromClause,
) -> Select[Any]:
    """The queries that are wanted, the last first."""
    asked_at = schema.sessions.c.began_at + asked.c.time_s
    outcome = func.coalesce(ends.c.outcome, OPEN)
    renamed = {"time_s": "asked_s"}
    wanted = (
        select(
            *(c.label(renamed.get(c.name, c.name)) for c in asked.c),
            asked_at.label("asked_at"),
            ends.c.time_s.label("ended_s"),
            ends.c.started_s,
            outcome.label("outcome"),
            func.coalesce(ends.c.error, "").label("error"),
            *(ends.c[name] for name in ("work_s", "held_s", "peak_memory_bytes", "rows")),
            ends.c.burst_s,
            literal_column("asked.rowid").label("row"),
        )
        .join_from(asked, schema.sessions, asked.c.session == schema.sessions.c.session)
        .outerjoin(ends, _same(asked, ends))
        .order_by(asked_at.desc(), literal_column("asked.rowid").desc())
    )
    if session is not None:
        wanted = wanted.where(asked.c.session == session)
    if tenant is not None:
        below = asked.c.tenant.startswith(f"{tenant}/", autoescape=True)
        wanted = wanted.where(or_(asked.c.tenant == tenant, below))
    if since is not None:
        wanted = wanted.where(asked_at >= since)
    if template is not None:
        wanted = wanted.where(asked.c.template == template)
    if outcomes is not None:
        wanted = wanted.where(outcome.in_(outcomes))
    return wanted


def _times(table: Any) -> list[ColumnElement[Any]]:
    return [table.c[name] for name in ("made_s", "start_s", "end_s")]


def _same(one: FromClause, other: FromClause) -> ColumnElement[bool]:
    """That two rows are of the same query."""
    return and_(one.c.session == other.c.session, one.c.query == other.c.query)


def _is(table: Any, chosen: Any, order: ColumnElement[Any]) -> ColumnElement[bool]:
    """That `table` is the first of a query's forecasts in an order."""
    found = (
        select(literal_column("forecasts.rowid"))
        .where(_same(forecasts, chosen))
        .order_by(order, literal_column("forecasts.rowid"))
        .limit(1)
        .correlate(chosen)
        .scalar_subquery()
    )
    return literal_column(f"{table.name}.rowid") == found

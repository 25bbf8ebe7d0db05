"""Rows to record, and a whole run in a history."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from queryard.core.commands import Finish, Grant, Revoke
from queryard.core.events import EstimateChanged, LeaseEnded, NodeJoined, QuerySubmitted
from queryard.core.journal import Step
from queryard.core.model import Divisible, Job, Node, Query
from queryard.history import AskedRow, CostRow, EndedRow, ForecastRow, History, SessionRow


def session_row(session: str = "s1", began_at: float = 1_700_000_000.0) -> SessionRow:
    return SessionRow(
        session, began_at, "0.1", 4711, 2, 10**9, {"seed": 0}, {"order": "fifo", "name": "fifo"}
    )


def asked_row(query: str = "q1", time_s: float = 1.0, **changes: object) -> AskedRow:
    values: dict[str, object] = {
        "query": query,
        "time_s": time_s,
        "sql": "select 1",
        "template": "select ?",
        "tenant": "default",
        "priority": 0.0,
        "deadline_s": None,
        "plan": "native",
        "memory_bytes": 1000,
        "predicted_work_s": 2.0,
        "predicted_memory_bytes": None,
        "predicted_by": "template",
    }
    return AskedRow(**(values | changes))  # type: ignore[arg-type]


def ended_row(query: str = "q1", time_s: float = 4.0, **changes: object) -> EndedRow:
    values: dict[str, object] = {
        "query": query,
        "time_s": time_s,
        "started_s": time_s - 2.0,
        "outcome": "finished",
        "error": "",
        "work_s": 1.0,
        "held_s": 2.5,
        "peak_memory_bytes": 5000,
        "rows": 7,
        "burst_s": 0.0,
    }
    return EndedRow(**(values | changes))  # type: ignore[arg-type]


def forecast_row(query: str = "q1", made_s: float = 1.0, end_s: float = 5.0) -> ForecastRow:
    return ForecastRow(query, made_s, made_s + 1.0, end_s)


def cost_row(time_s: float = 1.0) -> CostRow:
    return CostRow(time_s, 10, 0.01, 0.02, 0.03, 0.01, 3.0, 10**8, 5, 2, 1, 0.1)


def steps_of(query: str, at_s: float = 1.0) -> list[Step]:
    """A query with one divisible job: two slots granted, one revoked, then its end."""
    job = f"{query}/query"
    spec = Query(query, (Job("query", divisible=Divisible(2)),), submit_s=at_s)
    return [
        Step(
            at_s,
            (QuerySubmitted(at_s, spec), EstimateChanged(at_s, job, work_s=3.0)),
            (Grant(job, "local", 2),),
        ),
        Step(at_s + 1, (EstimateChanged(at_s + 1, job, work_s=4.0),), (Revoke(job, "local", 1),)),
        Step(at_s + 1.25, (LeaseEnded(at_s + 1.25, job, "local", 1, "revoked"),), ()),
        Step(at_s + 2, (LeaseEnded(at_s + 2, job, "local", 1, "finished"),), (Finish(query),)),
    ]


NODE_STEP = Step(0.0, (NodeJoined(0.0, Node("local", 2, 1e9)),), ())


def record(file: Path, session: str = "s1", queries: int = 1, **more: object) -> None:
    """A session of so many queries, written and closed."""
    history = History.open(file)
    history.begin(session_row(session, **more))  # type: ignore[arg-type]
    history.step(NODE_STEP)
    for number in range(1, queries + 1):
        name, at_s = f"{session}-{number}", 10.0 * number
        history.asked(asked_row(name, at_s))
        history.forecast(forecast_row(name, at_s, at_s + 4.0))
        for step in steps_of(name, at_s):
            history.step(step)
        history.ended(ended_row(name, at_s + 2, started_s=at_s))
    history.cost(cost_row())
    history.close()
    assert history.error is None, history.error


def is_sound(file: Path) -> bool:
    connection = sqlite3.connect(file)
    try:
        return bool(connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok")
    finally:
        connection.close()

"""Answers of the API, as OpenAPI shows them.

They are written from plain data without being checked against these classes, for speed; tests
check that they agree.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .bodies import Plan

State = Literal["waiting", "running", "finished", "failed", "cancelled"]

ANSWER_EXAMPLE: dict[str, Any] = {
    "id": "5f0c2a91b7de-14",
    "state": "finished",
    "sql": "SELECT 42 AS answer",
    "tenant": "sales",
    "token": "ann",
    "protocol": "http",
    "priority": 0.0,
    "plan": "native",
    "deadline_s": None,
    "time_limit_s": None,
    "online": False,
    "progress": 1.0,
    "rows": 1,
    "columns": [{"name": "answer", "type": "INTEGER"}],
    "returns": "rows",
    "reasons": [],
    "submitted_at": "2026-11-18T05:00:00+00:00",
    "now_s": 81.21,
    "timing": {
        "submitted_s": 81.2,
        "started_s": 81.2,
        "ended_s": None,
        "work_s": 0.001,
        "held_s": 0.001,
        "burst_s": 0.0,
        "predicted_work_s": 0.001,
        "predicted_by": "template",
        "shared": False,
    },
    "memory_bytes": 33554432,
    "peak_memory_bytes": None,
    "error": None,
    "links": {"self": "/v1/queries/5f0c2a91b7de-14", "rows": "/v1/queries/5f0c2a91b7de-14/rows"},
    "first_rows": [[42]],
    "next": None,
}


class Problem(BaseModel):
    """What went wrong, after RFC 9457."""

    type: str = Field(examples=["urn:queryard:problem:unknown-name"])
    title: str
    status: int
    detail: str = Field(description="What is wrong, with what, and what to do about it.")
    sqlstate: str = Field(examples=["42P01"])
    query: str | None = Field(default=None, description="The query that it happened to.")
    line: int | None = Field(default=None, description="The line of the statement that is meant.")
    retry_after_s: float | None = Field(default=None, description="When to try again.")


class Column(BaseModel):
    name: str
    type: str = Field(description="The SQL type.", examples=["BIGINT"])


class Timing(BaseModel):
    """Times are seconds on the server's clock, as `now_s`; costs are core- and slot-seconds."""

    submitted_s: float
    started_s: float | None
    ended_s: float | None
    work_s: float
    held_s: float
    burst_s: float
    predicted_work_s: float | None
    predicted_by: str
    shared: bool


class Forecast(BaseModel):
    query: str
    start_s: float | None
    end_s: float | None


class ForecastList(BaseModel):
    now_s: float
    forecasts: list[Forecast]


class Why(BaseModel):
    """What holds a query. Queries of other tenants are counted and not named."""

    query: str
    status: State
    now_s: float
    submitted_s: float
    started_s: float | None
    ended_s: float | None
    slots: int
    pool: str
    rule: str
    ahead: list[str]
    ahead_count: int
    reasons: list[str]
    forecast: Forecast | None
    forecast_made_s: float | None
    text: str


class QueryState(BaseModel):
    """A query at one moment."""

    id: str = Field(examples=["5f0c2a91b7de-14"])
    state: State
    sql: str
    tenant: str
    token: str
    protocol: Literal["http", "postgres", "quack"]
    priority: float
    plan: Plan
    deadline_s: float | None
    time_limit_s: float | None
    online: bool
    progress: float = Field(description="Share done, from 0 to 1.")
    slots: int | None = Field(None, description="That it has now; only in lists.")
    rows: int = Field(description="Rows that it has given so far.")
    columns: list[Column] | None = Field(description="None before they are known.")
    returns: Literal["rows", "changes", "nothing"] | None
    reasons: list[str] = Field(description="Why it runs otherwise than was asked for.")
    submitted_at: str
    now_s: float
    timing: Timing
    memory_bytes: int
    peak_memory_bytes: int | None
    error: Problem | None
    links: dict[str, str]
    why: Why | None = Field(default=None, description="Only where one query is asked for.")


class QueryAnswer(QueryState):
    """A query, with its first rows if they came within `wait`."""

    model_config = ConfigDict(json_schema_extra={"examples": [ANSWER_EXAMPLE]})

    first_rows: list[list[Any]] | None = Field(
        default=None, description="Values in the order of columns."
    )
    next: int | None = Field(
        default=None, description="The position of the row after them; null: none."
    )


class QueryList(BaseModel):
    now_s: float
    queries: list[QueryState]


class Rows(BaseModel):
    """Rows as JSON."""

    columns: list[Column]
    returns: Literal["rows", "changes", "nothing"]
    start: int
    rows: list[list[Any]]
    next: int | None = Field(description="The position of the next row; null at the end.")


class OnlineAnswer(BaseModel):
    """An answer after a part of the data."""

    columns: list[Column]
    rows: list[list[Any]]
    fraction: float
    exact: bool
    elapsed_s: float
    confidence: float
    error: float | None
    low: dict[str, list[float | None]]
    high: dict[str, list[float | None]]
    marks: list[str]
    eta_s: dict[str, float | None]
    sample: str
    notes: list[str]


class Answers(BaseModel):
    """The newest answer of an online query."""

    query: str
    number: int = Field(description="How many answers there were; ask again with `after` it.")
    ended: bool = Field(description="Whether no further answer comes.")
    in_rows: bool = Field(description="Whether the last answer is in `rows`: it ran exactly.")
    reason: str = Field(description="Why it runs exactly.")
    answer: OnlineAnswer | None = Field(description="Null if there is none newer than `after`.")


class TableState(BaseModel):
    name: str
    kind: str
    rows: float | None
    bytes: float
    files: int
    columns: list[Column] | None
    error: str | None


class TableList(BaseModel):
    tables: list[TableState]


class TenantState(BaseModel):
    name: str
    weight: float | None
    guarantee: float | None
    cap: float | None
    waiting: int
    running: int
    slots: int


class TenantList(BaseModel):
    tenants: list[TenantState]


class ProfileState(BaseModel):
    name: str
    summary: str
    composition: str
    origin: str
    citation: str


class ProfileList(BaseModel):
    current: dict[str, Any]
    profiles: list[ProfileState]


class HistoryList(BaseModel):
    queries: list[dict[str, Any]] = Field(description="As in the history, the earliest first.")


class SessionState(BaseModel):
    id: str
    label: str
    tenant: str


class SessionList(BaseModel):
    sessions: list[SessionState]


class Described(BaseModel):
    columns: list[Column]
    parameters: list[str] = Field(description='SQL types in the order of `$1`; "UNKNOWN" if open.')


class Health(BaseModel):
    status: str
    reason: str | None = None


class Whoami(BaseModel):
    name: str
    tenant: str
    role: Literal["user", "admin"]
    version: str

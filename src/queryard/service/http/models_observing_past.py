"""Answers about the cluster, its policy, its log and the past, as OpenAPI shows them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from .models_observing import EXAMPLE_POLICY, EXAMPLE_QUERY, PolicyInForce, QueryNow, example


class NodeNow(BaseModel):
    """A node. Nodes of one host share its memory."""

    name: str
    host: str
    where: str | None = Field(None, description="The address of its machine; for admins.")
    state: Literal["up", "draining", "resting", "suspect", "lost"]
    resting: str | None = Field(
        None,
        description="For how long and why it gets no work, where work failed there that succeeded "
        "elsewhere; for admins.",
    )
    slots: int
    busy: int
    speed: float = Field(description="Relative to 1.")
    memory_bytes: int | None = Field(description="For queries; null if it is not bounded.")
    free_bytes: int | None
    caches: dict[str, Any] = Field(
        description="What is kept there: `parsed_tables`, `task_outputs`."
    )
    running: list[str] = Field(description="Queries that hold slots there.")
    running_others: int = Field(description="How many more, which the token does not see.")


class Cluster(BaseModel):
    """All nodes at one moment."""

    model_config = example(
        {
            "backend": "local",
            "nodes": [
                {
                    "name": "local",
                    "host": "local",
                    "state": "up",
                    "slots": 4,
                    "busy": 3,
                    "speed": 1.0,
                    "memory_bytes": 8000000000,
                    "free_bytes": 7000000000,
                    "caches": {},
                    "running": ["5f0c2a91b7de-14"],
                    "running_others": 1,
                }
            ],
            "kept_tables": {},
        }
    )

    backend: str
    nodes: list[NodeNow]
    kept_tables: dict[str, float] = Field(
        description="The share of each table that is kept parsed; for admins."
    )
    refused: list[str] = Field(
        default_factory=list,
        description="Nodes that do not take part, each with the reason; for admins.",
    )


class PolicyChanged(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    at: float
    from_: str | None = Field(alias="from")
    to: str
    by: str | None
    reason: str | None


class SchedulerState(BaseModel):
    """The policy in force, and how it was chosen."""

    model_config = example(
        {
            "policy": EXAMPLE_POLICY,
            "profile": {"name": "marshal"},
            "portfolio": None,
            "changes": [
                {
                    "at": 1794981600.0,
                    "from": "fair",
                    "to": "marshal",
                    "by": "ops",
                    "reason": "small queries fast",
                }
            ],
            "decisions": [],
        }
    )

    policy: PolicyInForce
    profile: dict[str, Any] = Field(description="As a table; only its name if it is not an admin.")
    portfolio: dict[str, Any] | None
    changes: list[PolicyChanged] = Field(description="The latest first.")
    decisions: list[dict[str, Any]] = Field(description="Of a portfolio, the latest first.")


class LogLine(BaseModel):
    seq: int
    at: float
    level: str
    event: str
    text: str = Field(description="Its fields, as the log on stderr has them.")
    query: str | None
    tenant: str | None
    fields: dict[str, Any]


class Logs(BaseModel):
    """Lines of the log, the oldest first."""

    model_config = example(
        {
            "lines": [
                {
                    "seq": 7,
                    "at": 1794985200.25,
                    "level": "info",
                    "event": "query finished",
                    "text": "query=5f0c2a91b7de-14 tenant=sales",
                    "query": "5f0c2a91b7de-14",
                    "tenant": "sales",
                    "fields": {"query": "5f0c2a91b7de-14", "tenant": "sales"},
                }
            ],
            "last": 7,
        }
    )

    lines: list[LogLine]
    last: int = Field(description="Ask for lines after this one next.")


_ROW: dict[str, Any] = {
    "key": "sales",
    "queries": 120,
    "failed": 2,
    "cancelled": 1,
    "refused": 0,
    "work_s": 35.2,
    "mean_response_s": 0.8,
    "p50_response_s": 0.4,
    "p95_response_s": 2.9,
    "mean_slowdown": 3.1,
    "deadlines": {"met": 40, "missed": 2},
    "prediction_error": 1.3,
}
_PERFORMANCE: dict[str, Any] = {
    "since": 1794981600.0,
    "until": 1794985200.0,
    "by": "tenant",
    "queries": 120,
    "is_cut": False,
    "all": {**_ROW, "key": ""},
    "rows": [_ROW],
    "more_rows": 0,
    "over_time": {
        "at": [1794981600.0, 1794983400.0],
        "queries": [80, 40],
        "mean_response_s": [0.7, 1.0],
        "p95_response_s": [2.5, 3.0],
        "prediction_error": [1.3, 1.2],
    },
}


class DeadlinesKept(BaseModel):
    met: int
    missed: int


class PerformanceRow(BaseModel):
    """Some queries together. Response and slowdown are those of queries that finished."""

    key: str
    queries: int
    failed: int
    cancelled: int
    refused: int
    work_s: float
    mean_response_s: float | None
    p50_response_s: float | None
    p95_response_s: float | None
    mean_slowdown: float | None
    deadlines: DeadlinesKept
    prediction_error: float | None


class PerformanceOverTime(BaseModel):
    at: list[float]
    queries: list[int]
    mean_response_s: list[float | None]
    p95_response_s: list[float | None]
    prediction_error: list[float | None]


class Performance(BaseModel):
    """How queries did that ended in a stretch of time."""

    model_config = example(_PERFORMANCE)

    since: float
    until: float
    by: Literal["tenant", "template", "size"]
    queries: int
    is_cut: bool = Field(description="Whether there were more, of which the latest are counted.")
    all: PerformanceRow = Field(description="All of them together.")
    rows: list[PerformanceRow] = Field(description="Those with most queries first.")
    more_rows: int
    over_time: PerformanceOverTime


class DaySums(BaseModel):
    day: str
    queries: int
    failed: int
    tenants: int
    mean_response_s: float | None
    work_s: float


class ArchiveList(BaseModel):
    """Days of UTC on which queries ended."""

    model_config = example(
        {
            "days": [
                {
                    "day": "2026-11-18",
                    "queries": 120,
                    "failed": 2,
                    "tenants": 3,
                    "mean_response_s": 0.8,
                    "work_s": 35.2,
                }
            ]
        }
    )

    days: list[DaySums]


class ArchivedDay(BaseModel):
    """A day, with a page of its queries."""

    model_config = example(
        {
            "day": "2026-11-18",
            "performance": _PERFORMANCE,
            "queries": [{**EXAMPLE_QUERY, "status": "finished", "ended_at": 1794985205.0}],
            "start": 0,
            "next": None,
            "total": 120,
        }
    )

    day: str
    performance: Performance
    queries: list[QueryNow] = Field(description="The latest first.")
    start: int = Field(description="How many queries come before them.")
    next: int | None = Field(description="Where the next page starts; null at the end.")
    total: int = Field(description="Queries of the day.")

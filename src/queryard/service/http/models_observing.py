"""Answers of the routes for operators, as OpenAPI shows them; tests check that they agree.

Times `*_at` are seconds since 1970, `*_s` are seconds.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

AnyStatus = Literal["waiting", "running", "finished", "failed", "cancelled", "refused", "lost"]

EXAMPLE_QUERY: dict[str, Any] = {
    "id": "5f0c2a91b7de-14",
    "sql": "SELECT count(*) FROM orders",
    "tenant": "sales",
    "status": "waiting",
    "slots": 0,
    "progress": 0.0,
    "submitted_at": 1794985200.25,
    "started_at": None,
    "ended_at": None,
    "deadline_at": None,
    "waited_s": 1.5,
    "predicted_work_s": 0.8,
    "work_s": 0.0,
    "starts_in_s": 1.6,
    "eta_s": 2.4,
    "why": "3 waiting queries before it in its pool.",
}
EXAMPLE_POLICY: dict[str, Any] = {
    "name": "marshal",
    "since_at": 1794981600.0,
    "by": None,
    "reason": None,
}


def example(content: dict[str, Any]) -> ConfigDict:
    """What OpenAPI shows of a model."""
    return ConfigDict(json_schema_extra={"examples": [content]})


class PolicyInForce(BaseModel):
    """The policy that decides now. By whose choice and why is for admins."""

    name: str
    since_at: float | None
    by: str | None
    reason: str | None


class SlotCount(BaseModel):
    total: int
    busy: int


class MemoryInUse(BaseModel):
    pool_bytes: int = Field(description="What queries can reserve together.")
    reserved_bytes: int
    process_bytes: int = Field(description="Of the server's process.")


class TenantNow(BaseModel):
    name: str
    waiting: int
    running: int
    slots: int


class QueryNow(BaseModel):
    """A query in a list."""

    id: str
    sql: str = Field(description="The first 300 characters.")
    tenant: str
    status: AnyStatus
    slots: int
    progress: float | None = Field(description="Share done, from 0 to 1.")
    submitted_at: float | None
    started_at: float | None
    ended_at: float | None
    deadline_at: float | None
    waited_s: float
    predicted_work_s: float | None
    work_s: float
    starts_in_s: float | None = Field(
        description="About how many seconds to its start; null once it has started, and in a pause."
    )
    eta_s: float | None = Field(
        description="About how many seconds to its end; null once it has ended, and in a pause."
    )
    why: str = Field(description="One sentence; `GET /v1/queries/{id}` tells all.")


class Now(BaseModel):
    """What there is at one moment."""

    model_config = example(
        {
            "at": 1794985201.75,
            "now_s": 81.21,
            "policy": EXAMPLE_POLICY,
            "state": "open",
            "slots": {"total": 4, "busy": 4},
            "memory": {
                "pool_bytes": 8000000000,
                "reserved_bytes": 120000000,
                "process_bytes": 400000000,
            },
            "tenants": [{"name": "sales", "waiting": 1, "running": 0, "slots": 0}],
            "running": [],
            "waiting": [EXAMPLE_QUERY],
            "more_waiting": 0,
            "ended": [],
        }
    )

    at: float
    now_s: float = Field(description="The same on the server's clock.")
    policy: PolicyInForce
    state: Literal["open", "paused", "draining"]
    slots: SlotCount
    memory: MemoryInUse
    tenants: list[TenantNow]
    running: list[QueryNow]
    waiting: list[QueryNow] = Field(description="In the order they are expected to start.")
    more_waiting: int = Field(description="How many more wait.")
    ended: list[QueryNow] = Field(description="The last 20, the last one first.")


Figures = list[float | None]


class Series(BaseModel):
    """Figures by steps of time. Each list has one number per step, null where none is known."""

    model_config = example(
        {
            "at": [1794985200.0, 1794985212.0],
            "step_s": 12.0,
            "slots_busy": [3.5, 4.0],
            "slots_total": [4.0, 4.0],
            "waiting": [0.0, 2.25],
            "running": [2.0, 3.0],
            "memory_bytes": [410000000.0, 420000000.0],
            "reserved_bytes": [120000000.0, 90000000.0],
            "process_cpu": [3.4, 3.9],
            "own_cpu": {"driver": [0.01, 0.02], "watch": [0.01, 0.01]},
            "decide_ms": [0.2, 0.3],
        }
    )

    at: list[float] = Field(description="When each step begins.")
    step_s: float
    slots_busy: Figures
    slots_total: Figures
    waiting: Figures
    running: Figures
    memory_bytes: Figures = Field(description="Of the server's process.")
    reserved_bytes: Figures = Field(description="Reserved by queries.")
    process_cpu: Figures = Field(description="Cores that the server's process kept busy.")
    own_cpu: dict[str, Figures] = Field(
        description="Cores that the server's own threads kept busy, by part; for admins."
    )
    decide_ms: Figures = Field(description="Milliseconds per decision.")


class SegmentState(BaseModel):
    """Some slots of a node over some time, or a time without slots."""

    kind: Literal["waiting", "lease", "task", "ride", "paused"]
    from_s: float = Field(description="Since the submission of the query.")
    to_s: float
    slots: int
    node: str | None
    label: str


class WaitedFor(BaseModel):
    reason: str
    s: float


class Predicted(BaseModel):
    """What was expected when the query came, and what was expected last."""

    work_s: float | None
    by: str | None
    last_work_s: float | None
    last_by: str | None
    memory_bytes: int | None
    start_s: float | None = Field(description="By the first forecast, since the submission.")
    end_s: float | None


class Actual(BaseModel):
    """What came; of a query that runs, so far."""

    work_s: float | None
    held_s: float | None = Field(description="Slot-seconds.")
    memory_bytes: int | None = Field(description="The most it used, where that is known.")
    start_s: float | None
    end_s: float | None
    rows: int | None


class AnswerPoint(BaseModel):
    """How good an answer of an online query was."""

    elapsed_s: float
    error: float | None
    fraction: float


class Timeline(BaseModel):
    """One query over time."""

    model_config = example(
        {
            "id": "5f0c2a91b7de-14",
            "tenant": "sales",
            "sql": "SELECT count(*) FROM orders",
            "status": "finished",
            "submitted_at": 1794985200.25,
            "started_at": 1794985200.75,
            "ended_at": 1794985201.25,
            "deadline_at": None,
            "error": None,
            "segments": [
                {
                    "kind": "waiting",
                    "from_s": 0.0,
                    "to_s": 0.5,
                    "slots": 0,
                    "node": None,
                    "label": "It waited for its first slot.",
                },
                {
                    "kind": "lease",
                    "from_s": 0.5,
                    "to_s": 1.0,
                    "slots": 2,
                    "node": "local",
                    "label": "2 slots, finished",
                },
            ],
            "is_cut": False,
            "held_s": 1.0,
            "waits": [{"reason": "its first slot", "s": 0.5}],
            "rode_with": [],
            "rode_with_others": 0,
            "predicted": {
                "work_s": 0.8,
                "by": "template",
                "last_work_s": 0.8,
                "last_by": "template",
                "memory_bytes": None,
                "start_s": 0.4,
                "end_s": 0.9,
            },
            "actual": {
                "work_s": 0.9,
                "held_s": 1.0,
                "memory_bytes": None,
                "start_s": 0.5,
                "end_s": 1.0,
                "rows": 1,
            },
            "plan": "plan: native\nnative: native, up to 4 slots at once",
            "answers": [],
            "last_answer": None,
            "has_operators": True,
        }
    )

    id: str
    tenant: str
    sql: str
    status: AnyStatus
    submitted_at: float
    started_at: float | None
    ended_at: float | None
    deadline_at: float | None
    error: str | None
    segments: list[SegmentState]
    is_cut: bool = Field(description="Whether there are more segments than are listed.")
    held_s: float = Field(description="Slot-seconds of the segments.")
    waits: list[WaitedFor] = Field(description="What it waited for, and how long.")
    rode_with: list[str] = Field(description="Queries that shared its scans or its execution.")
    rode_with_others: int = Field(description="How many more, which the token does not see.")
    predicted: Predicted
    actual: Actual
    plan: str = Field(description="Its jobs; `/v1/queries/{id}/plan` has the operators.")
    answers: list[AnswerPoint] = Field(description="Of an online query that ended lately, or runs.")
    last_answer: dict[str, Any] | None = Field(
        None,
        description="The last provisional answer of an online query that ended lately, if small.",
    )
    has_operators: bool = Field(False, description="Whether `/v1/queries/{id}/plan` answers.")

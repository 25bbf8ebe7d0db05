"""Requests and answers about controls and what-ifs, as OpenAPI shows them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..controlling.control_request import What


class LimitsChange(BaseModel):
    """Limits on waiting queries; null for none."""

    model_config = ConfigDict(extra="forbid")

    waiting: int | None = Field(default=None, description="Waiting queries.", examples=[100])
    wait: float | str | None = Field(default=None, description="The wait to be expected.")
    memory: int | str | None = Field(default=None, description="The memory of one query.")


class ChangeBody(BaseModel):
    """A change; which arguments there are depends on what is changed."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"change": "tenant", "tenant": "sales", "weight": 3},
                {"change": "profile", "profile": "fair"},
                {"change": "pause", "reason": "the disk is being replaced"},
                {"change": "cancel-tenant", "tenant": "web"},
            ]
        },
    )

    change: What
    reason: str | None = Field(default=None, description="Why, for the record.", max_length=200)
    seen: int | None = Field(
        default=None,
        description="The last change that the caller knows of; if there is a later one, the "
        "change is not made (409).",
    )
    profile: str | dict[str, Any] | None = Field(
        default=None, description="A policy by its name, or a document of one."
    )
    tenant: str | None = Field(default=None, max_length=500)
    weight: float | None = Field(
        default=None, description="Against other tenants; null: as without changes."
    )
    guarantee: float | None = Field(
        default=None, description="A share of all slots; null: as without changes."
    )
    cap: float | None = Field(
        default=None, description="A share of all slots; null: as without changes."
    )
    limits: LimitsChange | None = Field(default=None, description="Null: no limits at all.")
    models: list[Literal["templates", "prices", "portfolio"]] | None = Field(
        default=None, description="What is to be learnt anew; all by default."
    )


class UndoBody(BaseModel):
    """Why a change is taken back."""

    model_config = ConfigDict(extra="forbid")

    reason: str | None = Field(default=None, max_length=200)


class LimitsState(BaseModel):
    """Limits that hold; null: none."""

    waiting: int | None
    wait_s: float | None
    memory_bytes: int | None


class TenantControl(BaseModel):
    """What a tenant may count on."""

    name: str
    weight: float
    guarantee: float
    cap: float
    limits: LimitsState


class Word(BaseModel):
    """On whose word something is so, since when, and why."""

    by: str
    at: float
    reason: str


class ChangeRecord(BaseModel):
    """One change that was made."""

    id: int
    at: float = Field(description="Seconds since 1970.")
    by: str = Field(description="The name of the token.")
    what: str
    text: str = Field(description="One sentence.")
    reason: str
    before: Any
    after: Any
    undoable: bool = Field(description="Whether it can be undone now.")
    undoes: int | None = Field(description="The change that this one has taken back.")
    undone_by: int | None = Field(description="The change that has taken this one back.")


class ControlsState(BaseModel):
    """All that can be changed, as it is."""

    profile: str | dict[str, Any]
    portfolio: dict[str, Any] | None
    tenants: list[TenantControl]
    limits: LimitsState
    state: Literal["open", "paused", "draining"]
    paused: Word | None
    draining: Word | None
    models_reset_at: float | None
    last: int = Field(description="The number of the last change.")
    kept: bool = Field(description="Whether changes survive the server.")
    changes: list[ChangeRecord] = Field(description="The latest first.")


class WhatIfBody(BaseModel):
    """A window of the history, and policies to compare on it."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"since": "2026-11-18T08:00:00Z", "until": 1794999600, "policies": ["fair", "srtf"]}
            ]
        },
    )

    since: float | str | None = Field(
        default=None,
        description="Seconds since 1970, or a time of ISO 8601; an hour before `until` by default.",
    )
    until: float | str | None = Field(default=None, description="The same; now by default.")
    policies: list[str | dict[str, Any]] = Field(
        description="Names (`all`, `portfolio` and `portfolio:OBJECTIVE` included), or documents.",
        min_length=1,
        max_length=100,
    )
    slots: int | None = Field(
        default=None, ge=1, le=100_000, description="As many as there were by default."
    )


class WhatIfState(BaseModel):
    """How far a what-if is."""

    id: str
    by: str
    at: float
    since: float
    until: float
    policies: list[str]
    slots: int | None
    state: Literal["waiting", "running", "done", "failed"]
    progress: float = Field(description="From 0 to 1.")
    error: str | None


class FigureDocument(BaseModel):
    """A figure; it has no script."""

    title: str
    svg: str


class WhatIfFound(WhatIfState):
    """A what-if, with all that was found once it is done."""

    title: str
    rows: list[dict[str, Any]] = Field(
        description="The table of `queryard compare`: a row per policy, and (`kind` is "
        "`reference`) what was recorded and two ideals."
    )
    table: str = Field(description="The same as text.")
    verdict: str
    notes: list[str]
    estimates: str = Field(description="What policies knew of the work of queries.")
    figures: list[FigureDocument]


class WhatIfList(BaseModel):
    whatifs: list[WhatIfState]

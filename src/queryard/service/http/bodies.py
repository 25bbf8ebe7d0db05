"""Bodies of requests, as OpenAPI shows them; the server checks what it is sent against them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Parameters = list[Any] | dict[str, Any]
Plan = Literal["auto", "native", "staged"]
SqlText = Annotated[
    str, Field(description="The statement.", examples=["SELECT count(*) FROM orders WHERE n > ?"])
]
ParameterValues = Annotated[
    Parameters | None,
    Field(
        description=(
            "Values for `?` and `$1` (a list), or `$name` (an object). What JSON lacks is written "
            'with its type, as `{"@type": "DATE", "value": "2026-11-18"}`; types are BLOB (as '
            "base64), DATE, DECIMAL, DOUBLE, HUGEINT, INTERVAL (in seconds), TIME, TIMESTAMP, "
            "TIMESTAMPTZ and UUID."
        ),
        examples=[[5]],
    ),
]
SessionName = Annotated[
    str | None,
    Field(
        description="A session that `POST /v1/sessions` has opened, with temporary tables, "
        "settings and transactions of its own."
    ),
]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class OnlineOptions(_Request):
    """How a query answers early and often; all may be left out."""

    stop_at: float | None = Field(
        default=None, description="The relative error to stop at.", examples=[0.01]
    )
    confidence: float = Field(default=0.95, description="Of the intervals.")
    every: float | str = Field(default=0.5, description="How often an answer is given at most.")
    within: float | str | None = Field(default=None, description="When to stop at the latest.")
    columns: list[str] = Field(default=[], description="By which columns the error is measured.")
    groups: list[Any] = Field(
        default=[],
        description="By which groups: values of the group column, or lists with one per column.",
        examples=[["MAIL", "SHIP"]],
    )


class QueryBody(_Request):
    """A query to be run."""

    sql: SqlText
    parameters: ParameterValues = None
    tenant: str | None = Field(
        default=None, description="A tenant below the token's own.", max_length=500
    )
    priority: float = Field(
        default=0.0, description="Policies that know priorities serve higher ones first."
    )
    deadline: float | str | None = Field(
        default=None,
        description='When the answer is wanted: seconds from now, "10 s", or a time of ISO 8601.',
        examples=["10 s"],
    )
    time_limit: float | str | None = Field(
        default=None, description="When the query is ended with an error.", examples=["5 min"]
    )
    memory: int | str | None = Field(
        default=None, description="What it reserves.", examples=["500 MB"]
    )
    plan: Plan | None = Field(
        default=None, description="How it runs; the server chooses by default."
    )
    online: bool | OnlineOptions = Field(
        default=False, description="Whether it answers early and often, and how."
    )
    idempotency_key: str = Field(
        default="",
        description="The same key again, with the same statement, is the same query.",
        max_length=1000,
    )
    session: SessionName = None

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"sql": "SELECT 42 AS answer"},
                {
                    "sql": "SELECT count(*) FROM orders WHERE n > ?",
                    "parameters": [5],
                    "deadline": "10 s",
                    "idempotency_key": "report-17",
                },
                {"sql": "SELECT avg(price) FROM orders", "online": {"stop_at": 0.01}},
            ]
        },
    )


class StatementBody(_Request):
    """A statement that is looked at, and not run."""

    sql: SqlText
    parameters: ParameterValues = None
    session: SessionName = None


class PlanBody(StatementBody):
    """A statement whose plan is asked for."""

    plan: Plan | None = None


class ExplainBody(PlanBody):
    """A statement that is to be explained."""

    analyze: bool = Field(default=False, description="Whether it is run, for the real figures.")


class SessionBody(_Request):
    """A session to be opened."""

    label: str = Field(default="", description="Shown in lists.", max_length=200)
    tenant: str | None = Field(default=None, description="A tenant below the token's own.")


class ProfileBody(_Request):
    """A policy to follow."""

    profile: str | dict[str, Any] = Field(
        description="The name of a profile, or a profile as a table.", examples=["fair"]
    )

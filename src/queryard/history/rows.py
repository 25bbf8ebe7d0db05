"""The rows of a history, as they are recorded and as they are read.

All `*_s` times are on the session's own clock, in seconds since it began; `*_at` are seconds
since 1970. Work is CPU core-seconds, what was held slot-seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from queryard.core.journal import Step

Outcome = Literal["finished", "failed", "cancelled", "refused"]


# --- recorded ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session, and what its kernel was started with: enough to replay it."""

    session: str
    began_at: float
    version: str
    pid: int
    slots: int
    memory_bytes: int
    settings: Mapping[str, Any]
    profile: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AskedRow:
    """A query as it was asked for, and what was expected of it.

    `twin_of` names the query that this one shares a run with: that run answers both.
    """

    query: str
    time_s: float
    sql: str
    template: str
    tenant: str
    priority: float
    deadline_s: float | None
    plan: str
    memory_bytes: int
    predicted_work_s: float | None
    predicted_memory_bytes: int | None
    predicted_by: str
    twin_of: str = ""


@dataclass(frozen=True, slots=True)
class EndedRow:
    """How a query ended, and what it took; `burst_s` of that on a slot beyond the others.

    The work of an execution that several queries shared belongs to the query that started it.
    `foreseen_s` is the last prediction that was made of its work, `foreseen_spread` the factor that
    half of such predictions are within, `foreseen_part` what its plan mostly does ("join"),
    `table_bytes` how large the tables were that it names.
    """

    query: str
    time_s: float
    started_s: float | None
    outcome: Outcome
    error: str
    work_s: float
    held_s: float
    peak_memory_bytes: int | None
    rows: int
    burst_s: float
    foreseen_s: float | None = None
    foreseen_spread: float | None = None
    foreseen_by: str = ""
    foreseen_part: str = ""
    table_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class ForecastRow:
    """When a query was expected to start and end, as seen at `made_s`."""

    query: str
    made_s: float
    start_s: float | None
    end_s: float | None


@dataclass(frozen=True, slots=True)
class HeldRow:
    """For how long something has held a query before its first slot."""

    query: str
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class CostRow:
    """What Queryard itself has cost since the session began, and how much it had to do."""

    time_s: float
    decisions: int
    decide_s: float
    driver_cpu_s: float
    watch_cpu_s: float
    history_cpu_s: float
    process_cpu_s: float
    rss_bytes: int
    waiting: int
    running: int
    bursts: int
    burst_s: float


DoneState = Literal["begun", "done", "undone"]
"""It may have run; it ended well; it failed, and has left nothing."""


@dataclass(frozen=True, slots=True)
class DoneRow:
    """What became of a statement with side effects, by its idempotency key.

    `statement` is a hash of its text and parameters, `ended_at` is when the state was so, in
    seconds since 1970.
    """

    tenant: str
    key: str
    statement: str
    query: str
    ended_at: float
    state: DoneState = "done"


@dataclass(frozen=True, slots=True)
class LearntRow:
    """What a model has learnt so far, as plain data; it takes the place of what it had before.

    `saved_at` is in seconds since 1970.
    """

    model: str
    saved_at: float
    state: Mapping[str, Any]


Recorded = (
    Step | AskedRow | EndedRow | ForecastRow | HeldRow | CostRow | DoneRow | LearntRow | SessionRow
)


# --- read ----------------------------------------------------------------------------------------


class PastRow(NamedTuple):
    """What a query of a template took; only of those that ran on their own.

    A query with the outcome "cancelled" would have taken more. `table_bytes` are those of the
    tables that it named; 0: not known.
    """

    template: str
    work_s: float
    peak_memory_bytes: int | None
    ended_at: float
    held_s: float
    outcome: Literal["finished", "cancelled"] = "finished"
    table_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """A session as it stands in the file; `closed_at` is None if it runs, or was killed.

    `lost` says that it was killed: its process is gone. `seen_at` is its last sign of life, at
    least once per hour; `last_s` the time of its last step.
    """

    session: str
    began_at: float
    seen_at: float
    closed_at: float | None
    version: str
    pid: int
    slots: int
    memory_bytes: int
    settings: Mapping[str, Any]
    profile: Mapping[str, Any]
    queries: int
    steps: int
    last_s: float
    lost: bool


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """A query from the asking to the end, with the first and the last forecast made of it.

    `outcome` is "open" while no end is recorded, and "lost" if the session was killed before: the
    query has no end, and what it held is the least it needs.
    """

    session: str
    query: str
    asked_at: float
    asked_s: float
    sql: str
    template: str
    tenant: str
    priority: float
    deadline_s: float | None
    plan: str
    memory_bytes: int
    predicted_work_s: float | None
    predicted_memory_bytes: int | None
    predicted_by: str
    twin_of: str
    ended_s: float | None
    started_s: float | None
    outcome: str
    error: str
    work_s: float | None
    held_s: float | None
    peak_memory_bytes: int | None
    rows: int | None
    burst_s: float | None
    foreseen_s: float | None
    foreseen_spread: float | None
    foreseen_by: str
    foreseen_part: str
    first_forecast: ForecastRow | None
    last_forecast: ForecastRow | None

    @property
    def response_s(self) -> float | None:
        """From the asking to the answer; None for a query that gave none."""
        if self.ended_s is None or self.outcome != "finished":
            return None
        return self.ended_s - self.asked_s

    @property
    def waited_s(self) -> float | None:
        """Until its first slot, or until it ended without one."""
        until_s = self.started_s if self.started_s is not None else self.ended_s
        return None if until_s is None else until_s - self.asked_s

    @property
    def ran_s(self) -> float | None:
        if self.ended_s is None or self.started_s is None:
            return None
        return self.ended_s - self.started_s

    @property
    def forecast_error(self) -> float | None:
        """By which share of its response the first forecast was off; above 0 if it took longer."""
        first = self.first_forecast
        if first is None or first.end_s is None or self.response_s is None:
            return None
        assert self.ended_s is not None
        return (self.ended_s - first.end_s) / max(self.response_s, 1e-3)

"""What a host tells of a query: facts as the loop last published them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from queryard.backends.protocol import NO_USAGE, Usage
from queryard.estimate.work import Prediction

from .request import QueryRequest
from .work.base import Work

Status = Literal["waiting", "running", "finished", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Timing:
    """When a query was submitted, began and ended on the host's clock, and what it cost.

    `work_s` are core-seconds, `held_s` slot-seconds, `burst_s` those on a burst slot. A `shared`
    query was answered by the execution of an identical query.
    """

    submitted_s: float
    started_s: float | None
    ended_s: float | None
    work_s: float
    held_s: float
    burst_s: float
    predicted_work_s: float | None
    predicted_by: str
    shared: bool


@dataclass(frozen=True, slots=True)
class QueryView:
    """An active query, at one moment."""

    id: str
    sql: str
    tenant: str
    priority: float
    status: Status
    slots: int
    progress: float
    submitted_s: float
    started_s: float | None
    deadline_s: float | None
    predicted_work_s: float | None
    work_s: float


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """One query at the moment of its last change."""

    id: str
    request: QueryRequest
    submitted_s: float
    prediction: Prediction
    expected_s: float
    memory_bytes: int = 0
    started_s: float | None = None
    ended_s: float | None = None
    error: BaseException | None = None
    # Core-seconds attributed to it: those of a shared execution all count for the first query.
    work_s: float = 0.0
    usage: Usage = NO_USAGE
    progress: float = 0.0
    # The identical query that shares its execution with this one.
    shares_with: str = ""
    reasons: tuple[str, ...] = ()
    # A database that other clients use, while it waits for its turn.
    waits_for: str = ""
    peak_memory_bytes: int | None = None
    work: Work | None = None

    def timing(self) -> Timing:
        return Timing(
            submitted_s=self.submitted_s,
            started_s=self.started_s,
            ended_s=self.ended_s,
            work_s=self.work_s,
            held_s=self.usage.held_s,
            burst_s=self.usage.burst_s,
            predicted_work_s=self.prediction.work_s,
            predicted_by=self.prediction.by,
            shared=bool(self.shares_with),
        )

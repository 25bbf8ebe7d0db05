"""What a session knows of a query, and the parts of it that are for others to see."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from queryard.backends.member import Member
from queryard.engine.errors import QueryCancelled
from queryard.engine.meter import Meter
from queryard.results.streams import ResultStream

from .asked import Asked

if TYPE_CHECKING:
    from queryard.sim.forecast import Forecast

    from .prediction import Prediction
    from .runs import Run
    from .work import Work

Status = Literal["waiting", "running", "finished", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Timing:
    """When a query was submitted, began and ended on the session's clock, and what it cost.

    `work_s` are core-seconds, `held_s` slot-seconds, `burst_s` those on a slot beyond the number
    there are. A `shared` query was answered by the run of another that asked the same.
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
    """A query on its way, at one moment."""

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


class Record:
    """One query, as long as it is on its way; its handle keeps it longer."""

    def __init__(self, query: str, asked: Asked, output: ResultStream, submitted_s: float) -> None:
        self.id = query
        self.asked = asked
        self.sql = asked.sql
        self.output = output
        # Whether it does more than read, so that it runs to its end even if nobody looks.
        self.leaves_something = asked.leaves_something
        self.memory_bytes = 0
        # None as long as it stands in line.
        self.work: Work | None = None
        self.meter = Meter()
        self.error: BaseException | None = None
        self.over = threading.Event()
        self.submitted_s = submitted_s
        self.started_s: float | None = None
        self.ended_s: float | None = None
        # Its part in a native run, for whoever wants to know more.
        self.member: Member | None = None
        self.run: Run | None = None
        # From which number on runs have seen the files as they are since it came.
        self.runs_since = 0
        # The query whose run it shares.
        self.twin_of = ""
        self.prediction: Prediction | None = None
        # The work that is expected by now, which may be more than was predicted.
        self.expected_s = 0.0
        self.peak_memory_bytes: int | None = None
        self.forecast: Forecast | None = None

    @property
    def work_s(self) -> float:
        """Core-seconds it stands for: of a shared run, all of them with the one that came first."""
        if self.twin_of:
            return 0.0
        return self.meter.work_s if self.run is None else self.run.work_s

    @property
    def burst_s(self) -> float:
        """Slot-seconds by which its slots overstayed, while others ran in their place."""
        return 0.0 if self.member is None else self.member.burst_s

    @property
    def ended(self) -> bool:
        return self.over.is_set()

    @property
    def status(self) -> Status:
        """How far it is; it has ended as soon as the engine is done with it."""
        work = self.work
        if self.ended or (work is not None and work.ended):
            error = self.error or (work.error if work is not None else None)
            if error is None:
                return "finished"
            return "cancelled" if isinstance(error, QueryCancelled) else "failed"
        return "running" if work is not None and work.started else "waiting"

    def progress(self) -> float:
        """Share done, from 0 to 1."""
        if self.ended:
            return 1.0
        return self.work.progress() if self.work is not None else 0.0

    def end(self, error: BaseException | None, now_s: float) -> None:
        """Nothing of it is left but its rows."""
        self.error = error
        self.ended_s = now_s
        if error is not None:
            self.output.fail(error)
        self.over.set()

    def timing(self) -> Timing:
        return Timing(
            submitted_s=self.submitted_s,
            started_s=self.started_s,
            ended_s=self.ended_s,
            work_s=self.work_s,
            held_s=self.meter.held_s,
            burst_s=self.burst_s,
            predicted_work_s=None if self.prediction is None else self.prediction.work_s,
            predicted_by="" if self.prediction is None else self.prediction.by,
            shared=bool(self.twin_of),
        )

    def view(self) -> QueryView:
        return QueryView(
            id=self.id,
            sql=self.sql,
            tenant=self.asked.tenant,
            priority=self.asked.priority,
            status=self.status,
            slots=self.meter.slots,
            progress=self.progress(),
            submitted_s=self.submitted_s,
            started_s=self.started_s,
            deadline_s=self.asked.deadline_s,
            predicted_work_s=None if self.prediction is None else self.prediction.work_s,
            work_s=self.work_s,
        )

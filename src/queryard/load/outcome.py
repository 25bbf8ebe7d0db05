"""What became of requests, while they run and afterwards."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from queryard.workload.load import Request

State = Literal["to come", "under way", "finished", "failed", "cancelled", "refused"]
# A submission that comes later than this is reported.
LATE_S = 0.05


@dataclass(slots=True)
class Outcome:
    """One request. Times are seconds from the start of the run, on the clock of the client.

    `sent_s` is when it was really submitted, `started_s` when it first got a slot, `ended_s` when
    its last row was there. Core-seconds `work_s` and slot-seconds `held_s` are known of queries
    under Queryard only, like `forecast_end_s`, which the session made when the query came.
    """

    request: Request
    due_s: float | None = None
    state: State = "to come"
    sent_s: float | None = None
    started_s: float | None = None
    ended_s: float | None = None
    error: str = ""
    rows: int = 0
    work_s: float | None = None
    held_s: float | None = None
    burst_s: float = 0.0
    shared: bool = False
    predicted_work_s: float | None = None
    predicted_by: str = ""
    forecast_end_s: float | None = None

    @property
    def response_s(self) -> float | None:
        """From the time it was to be submitted to its last row; None without an answer."""
        if self.state != "finished" or self.ended_s is None:
            return None
        return self.ended_s - self.request.time_s

    @property
    def late_s(self) -> float:
        """How much later than planned it was submitted."""
        return 0.0 if self.sent_s is None else self.sent_s - self.request.time_s

    @property
    def has_missed(self) -> bool:
        """Whether it had a deadline and gave no answer by then."""
        if self.due_s is None or self.state in ("to come", "under way"):
            return False
        return self.state != "finished" or self.ended_s is None or self.ended_s > self.due_s


@dataclass(frozen=True, slots=True)
class Glance:
    """What is known of a query on its way; `end_s` is when it is expected to end."""

    running: bool
    slots: int | None = None
    progress: float | None = None
    end_s: float | None = None


@dataclass(slots=True)
class Board:
    """A run while it goes on, for a display."""

    name: str
    slots: int
    outcomes: Sequence[Outcome]
    began: float = field(default_factory=time.perf_counter)
    glances: Mapping[str, Glance] = field(default_factory=dict)

    def now_s(self) -> float:
        """Seconds since the start of the run."""
        return time.perf_counter() - self.began


@dataclass(frozen=True, slots=True)
class Cost:
    """What Queryard itself took: CPU seconds by thread, decisions, slots beyond the number, and
    queries that were begun as very short ones and begun again.
    """

    decisions: int
    decide_s: float
    driver_cpu_s: float
    watch_cpu_s: float
    history_cpu_s: float
    bursts: int
    burst_s: float
    sprints: int = 0
    restarts: int = 0
    restart_s: float = 0.0

    @property
    def cpu_s(self) -> float:
        return self.driver_cpu_s + self.watch_cpu_s + self.history_cpu_s


@dataclass(frozen=True, slots=True)
class Played:
    """A run that is over; `cpu_s` is what the whole process computed in it."""

    name: str
    slots: int
    outcomes: tuple[Outcome, ...]
    cpu_s: float
    cost: Cost | None = None
    interrupted: bool = False

    @property
    def sent(self) -> tuple[Outcome, ...]:
        """Those that were submitted."""
        return tuple(outcome for outcome in self.outcomes if outcome.state != "to come")

    @property
    def span_s(self) -> float:
        """From the first submission to the last end."""
        ends_s = [outcome.ended_s for outcome in self.sent if outcome.ended_s is not None]
        if not ends_s:
            return 0.0
        return max(ends_s) - min(outcome.request.time_s for outcome in self.sent)

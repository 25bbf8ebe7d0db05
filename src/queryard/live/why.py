"""What there is to say of one query: why it waits, when it will end, how good that forecast was."""

from __future__ import annotations

from dataclasses import dataclass

from queryard.core.explain import Why
from queryard.sim.forecast import Forecast

from .facts import Status
from .ticket import Ticket


@dataclass(frozen=True, slots=True)
class WaitReport:
    """One query at one moment; `str` tells it in words.

    `ahead` are the queries that come before it, `reasons` what holds it. `forecast` is the newest
    one while it is active, None if there is none yet; after its end, the one that was made when
    it came. Times are those of the session's clock.
    """

    query: str
    status: Status
    now_s: float
    submitted_s: float
    started_s: float | None
    ended_s: float | None
    slots: int
    pool: str
    rule: str
    ahead: tuple[str, ...]
    reasons: tuple[str, ...]
    forecast: Forecast | None
    forecast_made_s: float | None = None

    @property
    def forecast_error(self) -> float | None:
        """By which share of its response the forecast was off; above 0 if it took longer."""
        if self.ended_s is None or self.forecast is None or self.forecast.end_s is None:
            return None
        return (self.ended_s - self.forecast.end_s) / max(self.ended_s - self.submitted_s, 1e-3)

    def __str__(self) -> str:
        return "\n".join([self._headline(), *(f"- {reason}" for reason in self.reasons)])

    def _headline(self) -> str:
        if self.ended_s is not None:
            took = f"{self.query} {self.status} after {self.ended_s - self.submitted_s:.2f} s"
            if self.started_s is not None:
                took += f", {self.started_s - self.submitted_s:.2f} s of it waiting"
            if (error := self.forecast_error) is None:
                return took
            return f"{took}; when it came, an end {self._off(error)} was forecast"
        if self.started_s is None:
            where = f"{self.query} waits for {self.now_s - self.submitted_s:.2f} s"
        else:
            where = f"{self.query} runs for {self.now_s - self.started_s:.2f} s"
        return f"{where}{self._expected()}"

    def _off(self, error: float) -> str:
        return f"{abs(error):.0%} {'earlier' if error > 0 else 'later'}"

    def _expected(self) -> str:
        found = self.forecast
        if found is None:
            return "; a forecast of its end is being made"
        if found.end_s is None:
            return "; its end is too far away to be forecast"
        ends = f"end in {max(0.0, found.end_s - self.now_s):.2f} s"
        if self.started_s is not None or found.start_s is None:
            return f"; it is expected to {ends}"
        return (
            f"; it is expected to start in {max(0.0, found.start_s - self.now_s):.2f} s "
            f"and to {ends}"
        )


def wait_report(
    ticket: Ticket, why: Why | None, forecast: Forecast | None, made_s: float | None, now_s: float
) -> WaitReport:
    """What the kernel and the forecast say of a query."""
    facts = ticket.facts
    ended = facts.ended_s is not None
    if ended:
        reasons: tuple[str, ...] = () if facts.error is None else (str(facts.error),)
        first = ticket.first_forecast
        forecast, made_s = (None, None) if first is None else first
    elif why is not None:
        reasons = why.reasons
    elif facts.waits_for:
        reasons = (f"it waits for its turn at the database {facts.waits_for}: others use it",)
    elif facts.work is None:
        reasons = ("it is queued for its client's own connection, or is being planned",)
    else:
        reasons = ("it is on its way to the scheduler, or back",)
    if facts.shares_with and not ended:
        reasons = (*reasons, f"it shares the execution of {facts.shares_with}, an identical query")
    return WaitReport(
        query=ticket.id,
        status=ticket.status,
        now_s=now_s,
        submitted_s=facts.submitted_s,
        started_s=facts.started_s,
        ended_s=facts.ended_s,
        slots=0 if why is None else why.slots,
        pool="" if why is None else why.pool,
        rule="" if why is None else why.rule,
        ahead=() if why is None else why.ahead,
        reasons=reasons,
        forecast=forecast,
        forecast_made_s=made_s,
    )


# Its name before.
Outlook = WaitReport

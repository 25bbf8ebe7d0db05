"""Reflection: what was forecast for the policy that was chosen, beside what came of it.

POSUM's fourth step. Queries that arrive later make every forecast too good, whichever policy was
chosen. So a candidate is corrected by how far its forecasts err beyond those of all candidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from .scores import Objective, QueryEnd, Schedule

# A forecast is judged by what has ended of it, if that are at least so many of its queries.
LEAST_ENDED = 0.5
# Forecasts that wait for their outcome.
MOST_OPEN = 8
# Of a candidate, this many outcomes count as much as knowing nothing.
PRIOR = 4.0
# The latest outcome counts like this in the mean.
LATEST = 0.2
# No correction is larger than this factor.
MOST = 2.0


@dataclass(slots=True)
class PendingForecast:
    """A forecast whose outcome is to be seen. `ends_s` has those queries that have ended."""

    number: int
    policy: str
    schedule: Schedule
    since_s: float
    until_s: float
    ends_s: dict[str, float | None] = field(default_factory=dict)
    left: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self.left = {query.id for query in self.schedule.queries}


@dataclass(frozen=True, slots=True)
class Outcome:
    """Scores over the queries that have ended, as they were forecast and as they were.

    What was lost before the decision does not count.
    """

    number: int
    policy: str
    forecast: float
    observed: float
    queries: int

    @property
    def error(self) -> float:
        """How much worse it was than forecast: 0.5 if by half."""
        return self.observed / self.forecast - 1.0


@dataclass(slots=True)
class _Bias:
    """The mean logarithm of observed over forecast."""

    mean: float = 0.0
    count: int = 0

    def note(self, value: float) -> None:
        self.count += 1
        self.mean += max(LATEST, 1 / self.count) * (value - self.mean)


class Reflection:
    """Keeps forecasts until they can be judged, and what was learnt from those that were."""

    def __init__(self, objective: Objective, most: float | None = None) -> None:
        """No correction is larger than the factor `most`; with 1 nothing is corrected."""
        self._objective = objective
        self._most = MOST if most is None else most
        self._open: dict[int, PendingForecast] = {}
        self._all = _Bias()
        self._of: dict[str, _Bias] = {}

    def forget(self) -> Callable[[], None]:
        """Forget what was learnt; forecasts of before are judged no more.

        What it returns gives back what was forgotten, in the place of what was learnt since.
        """
        before = self._all, self._of
        self._open.clear()
        self._all, self._of = _Bias(), {}

        def give_back() -> None:
            self._all, self._of = before

        return give_back

    def expect(self, number: int, policy: str, schedule: Schedule, since_s: float) -> None:
        """A decision with this number is in force; `schedule` is the forecast for its policy,
        made at `since_s`.
        """
        last_s = max((query.end_s for query in schedule.queries), default=since_s)
        # Twice the time: what has not ended by then is judged no more.
        until_s = since_s + 2 * (last_s - since_s) + 1.0
        self._open[number] = PendingForecast(number, policy, schedule, since_s, until_s)
        while len(self._open) > MOST_OPEN:
            self._open.pop(next(iter(self._open)))

    def ended(self, query: str, end_s: float | None) -> list[Outcome]:
        """A query has ended; None if it failed or was cancelled. Outcomes that are known now."""
        done = []
        for forecast in self._open.values():
            if query in forecast.left:
                forecast.left.discard(query)
                forecast.ends_s[query] = end_s
                if not forecast.left:
                    done.append(forecast)
        return self._judge(done)

    def settle(self, now: float, policy: str | None = None) -> list[Outcome]:
        """Judge what has waited for too long, and what was forecast for other policies than the
        one in force now.
        """
        changed = [o for o in self._open.values() if policy is not None and o.policy != policy]
        late = [o for o in self._open.values() if now >= o.until_s and o not in changed]
        return self._judge(changed + late)

    def correction(self, policy: str) -> float:
        """By what a score of a candidate is multiplied; 1 while nothing is known of it."""
        found = self._of.get(policy)
        if found is None:
            return 1.0
        beyond = (found.mean - self._all.mean) * found.count / (found.count + PRIOR)
        return min(self._most, max(1 / self._most, math.exp(beyond)))

    def _judge(self, pending: list[PendingForecast]) -> list[Outcome]:
        found = []
        for forecast in pending:
            del self._open[forecast.number]
            outcome = self._outcome(forecast)
            if outcome is not None:
                found.append(outcome)
                value = math.log(outcome.observed / outcome.forecast)
                self._all.note(value)
                self._of.setdefault(forecast.policy, _Bias()).note(value)
        return found

    def _outcome(self, forecast: PendingForecast) -> Outcome | None:
        """Both scores over the same queries; None where too little of the forecast is left."""
        foreseen: list[QueryEnd] = []
        seen: list[QueryEnd] = []
        for query in forecast.schedule.queries:
            end_s = forecast.ends_s.get(query.id)
            if end_s is not None:
                foreseen.append(query)
                seen.append(query.ending(max(end_s, query.submit_s)))
        if not seen or len(seen) < LEAST_ENDED * len(forecast.schedule.queries):
            return None
        # What nodes cost is not of queries.
        foretold, observed = (
            to_come(self._objective, Schedule(tuple(queries)), forecast.since_s)
            for queries in (foreseen, seen)
        )
        if not foretold > 0 or not observed > 0:
            return None
        return Outcome(forecast.number, forecast.policy, foretold, observed, len(seen))


def to_come(objective: Objective, schedule: Schedule, since_s: float) -> float:
    """The score without what was lost already: that of the same queries, had they ended then."""
    lost = objective.vector(schedule.ended_by(since_s))
    return objective.score(objective.vector(schedule)) - objective.score(lost)

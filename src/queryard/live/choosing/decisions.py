"""One decision of a portfolio, as it is told: what was tried, what was chosen, and why."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from queryard.core import readable
from queryard.portfolio.reflection import Outcome


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate: its score, corrected by what its forecasts were worth, and its metrics.

    `dropped` says why it could not be chosen.
    """

    name: str
    score: float | None = None
    correction: float = 1.0
    objectives: Mapping[str, float] = field(default_factory=dict)
    dropped: str | None = None


@dataclass(slots=True)
class PolicyDecision:
    """A look at the queue that ended in a choice, or in none (`dropped`)."""

    number: int
    time_s: float
    trigger: str
    waiting: int
    before: str
    chosen: str
    reason: str = ""
    tried: tuple[Tried, ...] = ()
    took_s: float = 0.0
    cpu_s: float = 0.0
    remembered: bool = False
    dropped: str | None = None
    complete: bool = True
    forecast: float | None = None
    outcome: Outcome | None = None

    def plain(self, ahead_s: float) -> dict[str, Any]:
        """As JSON has it; `ahead_s` is by how much Unix time is ahead of the session's clock."""
        outcome = self.outcome
        return {
            "at": self.time_s + ahead_s,
            "number": self.number,
            "trigger": self.trigger,
            "waiting": self.waiting,
            "before": self.before,
            "chosen": self.chosen,
            "reason": self.reason,
            "candidates": [
                {
                    "name": tried.name,
                    "score": tried.score,
                    "correction": tried.correction,
                    "objectives": dict(tried.objectives),
                    "dropped": tried.dropped,
                }
                for tried in self.tried
            ],
            "took_s": self.took_s,
            "cpu_s": self.cpu_s,
            "remembered": self.remembered,
            "dropped": self.dropped,
            "complete": self.complete,
            "forecast": self.forecast,
            "outcome": None
            if outcome is None
            else {
                "forecast": outcome.forecast,
                "observed": outcome.observed,
                "queries": outcome.queries,
                "error": outcome.error,
            },
        }


def told(scores: Mapping[str, float], before: str, chosen: str, margin: float, queries: int) -> str:
    """Why one candidate was chosen, in one sentence.

    >>> told({"fifo": 8.0, "tls": 6.0}, "fifo", "tls", 0.1, 12)
    'tls scores 6.00 over 12 queries, 25 % less than fifo (8.00)'
    >>> told({"fifo": 8.0, "tls": 7.5}, "fifo", "fifo", 0.1, 12)
    'fifo stays (8.00 over 12 queries): tls is better by 6 %, less than the margin of 10 %'
    >>> told({"fifo": 8.0, "tls": 6.0}, "fifo", "fifo", 0.1, 12)
    'fifo stays (8.00 over 12 queries): tls is better by 25 %, only by what forecasts were worth'
    """
    own, over = readable.score(scores[chosen]), f"over {readable.several(queries, 'query')}"
    if chosen != before:
        if math.isinf(scores[before]):
            return f"{chosen} scores {own} {over}; {before} could not be tried out"
        was = readable.score(scores[before])
        if scores[chosen] < scores[before]:
            gain = 1 - scores[chosen] / scores[before]
            less = f"{100 * gain:.0f} % less than {before} ({was})"
            return f"{chosen} scores {own} {over}, {less}"
        return f"{chosen}, the first candidate, is as good as {before}: {own} {over}"
    best = min(scores, key=lambda name: (scores[name], name != chosen, name))
    if scores[best] >= scores[chosen]:
        return f"{chosen} stays: no candidate is better ({own} {over})"
    gain = 1 - scores[best] / scores[chosen]
    why = f"less than the margin of {100 * margin:.0f} %"
    if gain >= margin:
        why = "only by what forecasts were worth"
    return f"{chosen} stays ({own} {over}): {best} is better by {100 * gain:.0f} %, {why}"

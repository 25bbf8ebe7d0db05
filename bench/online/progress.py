"""How well the scheduler's measure of progress stands for the true error, and how it is foretold.

Progress is what policies for online queries go by in ReLAQS (§4.4): 1 after the first answer, then
how far the answer moved with each part over the largest such move. The true error is relative to
that of the first answer; it is known after the parts where an answer was given. Both are
differences on the scale from 0 to 1, and forecasts are one and five parts ahead.

Beside it stands what is left of the error, as the engine expects it with each answer. Policies go
by that where they hear it; it is foretold for the next answer, whatever is read until then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from queryard.estimate.progress import SampleCurve, fit_curves
from queryard.policies.orders.progress_claims import RECENT

AHEAD = (1, 5)


@dataclass(frozen=True)
class Report:
    """What a policy hears of a part: its number, how far the answer moved with it.

    `left` is what it hears of the error that is left. `error` says how wrong the answer was; None
    where none was given.
    """

    part: int
    change: float
    error: float | None
    left: float | None = None


@dataclass
class Misses:
    """By how much progress differs from the error, and forecasts of progress from it."""

    metric: list[float] = field(default_factory=list)
    left: list[float] = field(default_factory=list)
    next_left: list[float] = field(default_factory=list)
    ahead: dict[int, list[float]] = field(default_factory=lambda: {n: [] for n in AHEAD})

    def add(self, reports: Sequence[Report]) -> None:
        """One query's reports, in order.

        >>> misses = Misses()
        >>> misses.add([Report(1, 1.0, 0.2), Report(2, 0.1, 0.1), Report(3, 0.05, None)])
        >>> misses.metric, misses.ahead[5]
        ([0.0, 0.5], [])
        """
        if not reports or not reports[0].error:
            return
        progress = _progress([report.change for report in reports])
        for report, value in zip(reports, progress, strict=True):
            if report.error is not None:
                true = min(1.0, report.error / reports[0].error)
                self.metric.append(abs(value - true))
                if report.left is not None:
                    self.left.append(abs(report.left - true))
        points = [(r.part, p) for r, p in zip(reports, progress, strict=True)][1:]
        for known in range(1, len(points)):
            curve, _ = fit_curves(points[max(0, known - RECENT) : known])
            for ahead in AHEAD:
                if known - 1 + ahead < len(points):
                    part, value = points[known - 1 + ahead]
                    self.ahead[ahead].append(abs(min(1.0, curve(part)) - value))
        told = [(r.part, r.left) for r in reports if r.left is not None]
        for (part, left), (later, value) in pairwise(told):
            forecast = SampleCurve.through(part, left, len(reports))(later)
            self.next_left.append(abs(min(1.0, forecast) - value))


def _progress(changes: Sequence[float]) -> list[float]:
    largest = accumulate(changes[1:], max)
    pairs = zip(changes[1:], largest, strict=True)
    return [1.0, *(change / most if most else 0.0 for change, most in pairs)]

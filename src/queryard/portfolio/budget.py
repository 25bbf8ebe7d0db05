"""What deciding may cost: a share of a core, on average."""

from __future__ import annotations

# Seconds of idling for which an unused share is saved up.
SAVED_FOR_S = 5.0


class Budget:
    """Processor time that comes in at a steady rate, from nothing; it is saved before it is spent.

    What a decision takes is known afterwards only. Where it was more than expected, the next one
    waits. Over any time the cost is at most the share of it, the little that was saved up before,
    and the error of one expectation.

    >>> budget = Budget(0.05, now=0.0)
    >>> budget.free_s(0.0, 0.1)
    2.0
    >>> budget.spend(0.15, now=2.0)
    >>> budget.free_s(2.0, 0.1), budget.spent_s
    (5.0, 0.15)
    """

    def __init__(self, share: float, now: float) -> None:
        self.share = share
        self.spent_s = 0.0
        self._saved_s = 0.0
        self._at_s = now

    def spend(self, seconds: float, now: float) -> None:
        """Processor time was used."""
        self._come_to(now, 0.0)
        self.spent_s += seconds
        self._saved_s -= seconds

    def free_s(self, now: float, cost_s: float = 0.0) -> float:
        """When something may be done that costs so much; now, or later."""
        self._come_to(now, cost_s)
        # A hair less, so that the rounding of floats does not put it off.
        lacks_s = cost_s - self._saved_s
        return now if lacks_s <= 1e-9 else now + lacks_s / self.share

    def _come_to(self, now: float, wanted_s: float) -> None:
        came_s = max(0.0, now - self._at_s) * self.share
        most_s = max(self._saved_s, SAVED_FOR_S * self.share, wanted_s)
        self._saved_s = min(self._saved_s + came_s, most_s)
        self._at_s = max(self._at_s, now)

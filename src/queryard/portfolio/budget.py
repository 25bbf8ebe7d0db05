"""What deciding may cost: a share of a core, on average."""

from __future__ import annotations

# Seconds of idling for which an unused share is saved up.
SAVED_FOR_S = 30.0


class Budget:
    """Processor time that comes in at a steady rate; a decision is made when none is owed.

    What a decision takes is known afterwards only, so that one may owe: the next one then waits.
    Over any time the cost is at most the share of it, what was saved up, and one decision.

    >>> budget = Budget(0.05, now=0.0)
    >>> budget.spend(0.1, now=0.0)
    >>> budget.free_s(0.0), budget.free_s(2.0), budget.spent_s
    (2.0, 2.0, 0.1)
    """

    def __init__(self, share: float, now: float, saved_s: float = 0.0) -> None:
        """`saved_s` may be spent at the beginning."""
        self.share = share
        self.spent_s = 0.0
        self._saved_s = saved_s
        self._at_s = now

    def spend(self, seconds: float, now: float) -> None:
        """Processor time was used."""
        self._come_to(now)
        self.spent_s += seconds
        self._saved_s -= seconds

    def free_s(self, now: float) -> float:
        """When the next decision may be made; now, or later."""
        self._come_to(now)
        return now if self._saved_s >= 0 else now - self._saved_s / self.share

    def _come_to(self, now: float) -> None:
        came_s = max(0.0, now - self._at_s) * self.share
        most_s = max(self._saved_s, SAVED_FOR_S * self.share)
        self._saved_s = min(self._saved_s + came_s, most_s)
        self._at_s = max(self._at_s, now)

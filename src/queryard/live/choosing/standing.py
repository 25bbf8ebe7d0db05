"""How far candidates were behind the best one of late, and which of several as good is taken."""

from __future__ import annotations

import math
from collections.abc import Mapping

# The latest decision counts like this, up to a limit; and what is no difference.
LATEST, MOST_BEHIND, CLEARLY = 0.1, 1.0, 0.02


class Standing:
    """A small queue does not tell all candidates apart, and the next one may.

    Two that are nearly as good would take turns, and the next queue would find the worse.
    """

    def __init__(self) -> None:
        self.behind: dict[str, float] = {}
        """By how much each candidate was behind the best one of late, as a share."""

    def note(self, scores: Mapping[str, float]) -> None:
        """The candidates were tried out once more."""
        least = min(scores.values())
        for name, score in scores.items():
            behind = min(MOST_BEHIND, score / least - 1) if least > 0 else 0.0
            known = self.behind.get(name, behind)
            self.behind[name] = known + LATEST * (behind - known)

    def steady(
        self,
        best: str,
        before: str,
        scores: Mapping[str, float],
        bare: Mapping[str, float],
        margin: float,
    ) -> str:
        """The best one, or one as good that was less behind of late, in the order of candidates.

        Where the first candidate is only as good as the one in force (`before`), it comes back
        unless it was clearly behind. What forecasts were worth says little of another load, and so
        it changes no policy alone: `bare` scores, without corrections, must be better, too.
        """
        if best == before:
            return best
        if scores[best] > scores[before] * (1 - margin):
            is_behind = self.behind[best] > self.behind[before] + CLEARLY
            return before if is_behind else best
        as_good = [
            name
            for name in scores
            if scores[name] <= scores[best] / (1 - margin)
            and bare.get(name, math.inf) < bare.get(before, math.inf)
        ]
        return min(as_good, key=lambda name: self.behind[name], default=before)

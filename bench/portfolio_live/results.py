"""The scores of a load under a portfolio and its candidates, and how they are shown."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from rich.table import Table

from bench.live.verdict import Figure

CANDIDATES = ("marshal", "fifo", "swrd", "edf")
PORTFOLIO = "portfolio"
# At most so far from the best fixed policy; the worst is at least so far; of a core.
NEAR, APART, SHARE = 1.05, 1.5, 0.05


@dataclass(frozen=True)
class Seed:
    """The scores of one seed by policy, and what the portfolio decided, at which cost."""

    seed: int
    queries: int
    scores: Mapping[str, float]
    cpu_s: float
    took_s: float
    chosen: tuple[str, ...]
    decided_s: tuple[float, ...] = ()

    @property
    def best(self) -> str:
        return min(CANDIDATES, key=lambda policy: self.scores[policy])

    @property
    def ratio(self) -> float:
        """The portfolio's score, of the best fixed policy's."""
        return self.scores[PORTFOLIO] / self.scores[self.best]

    @property
    def apart(self) -> float:
        """The worst fixed policy's score, of the best's."""
        return max(self.scores[policy] for policy in CANDIDATES) / self.scores[self.best]


@dataclass
class Results:
    """A load, and what it is scored by."""

    load: str
    objective: str
    seeds: list[Seed] = field(default_factory=list)

    def figures(self) -> list[Figure]:
        ratios = [each.ratio for each in self.seeds]
        share = sum(each.cpu_s for each in self.seeds) / sum(each.took_s for each in self.seeds)
        found = [
            Figure(f"{self.load}: score, of the best fixed policy's", ratios, NEAR),
            Figure("  geometric mean over the seeds", [geometric(ratios)], NEAR),
            Figure("  of the policy that is best over all seeds", [self.over_all()], NEAR),
            Figure(
                f"  the worst fixed policy's, of the best's (at least {APART:g})",
                [each.apart for each in self.seeds],
            ),
            Figure("  share of a core for deciding", [share], SHARE, "%"),
        ]
        decided_s = [s for each in self.seeds for s in each.decided_s]
        return [*found, Figure("  a decision takes", decided_s, None, "s")] if decided_s else found

    def over_all(self) -> float:
        """Geometric means over the seeds: the portfolio's, of the best fixed policy's.

        The best of each seed is known afterwards only; one policy for all seeds could be chosen.
        """
        means = {
            policy: geometric([each.scores[policy] for each in self.seeds])
            for policy in (PORTFOLIO, *CANDIDATES)
        }
        return means[PORTFOLIO] / min(means[policy] for policy in CANDIDATES)

    def table(self) -> Table:
        """All scores, a row per policy."""
        table = Table(title=f'{self.load}: scores by "{self.objective}", the lower the better')
        table.add_column("policy")
        for each in self.seeds:
            table.add_column(f"seed {each.seed}", justify="right")
        table.add_column("mean", justify="right")
        table.add_column("decided for", justify="right")
        chosen = [policy for each in self.seeds for policy in each.chosen]
        for policy in (PORTFOLIO, *CANDIDATES):
            scores = [each.scores[policy] for each in self.seeds]
            cells = [f"{score:.3g}" for score in (*scores, geometric(scores))]
            count = str(chosen.count(policy)) if policy in CANDIDATES else ""
            table.add_row(policy, *cells, count)
        ratios = [each.ratio for each in self.seeds]
        table.add_row("of the best", *(f"{r:.2f}" for r in (*ratios, geometric(ratios))), "")
        return table


def geometric(values: list[float]) -> float:
    """The geometric mean.

    >>> round(geometric([1.0, 4.0]), 3)
    2.0
    """
    return math.exp(statistics.fmean(math.log(value) for value in values))

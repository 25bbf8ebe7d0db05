"""POSUM's schedulers on its workloads: policies by themselves, and the portfolio in three modes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from queryard.metrics.runs import read_run
from queryard.policies import resolve_profile
from queryard.portfolio import (
    METRICS,
    OBJECTIVES,
    Decision,
    PortfolioSettings,
    Schedule,
    candidates_of,
    schedule_of,
    simulate_portfolio,
)
from queryard.sim import SimResult
from research.outcome import Interval, interval
from research.trials import Setting

from .workloads import Draw, posum_setting

POLICIES = ("srtf", "locf", "edls-sh", "edls-pr")
MODES = ("mixed", "deadline", "batch")
TITLES = {
    "srtf": "SRTF",
    "locf": "LOCF",
    "edls-sh": "EDLS-Sh",
    "edls-pr": "EDLS-Pr",
    "mixed": "portfolio, mixed",
    "deadline": "portfolio, deadline",
    "batch": "portfolio, batch",
}
# What 100 weighs in the printed parts of the mixed score.
BATCH_WEIGHT = OBJECTIVES["mixed"].weights["slowdown"]
PERIOD_S = 30.0
# A round of four policies took 14 s (figure 5.7); here it simulates about a thousand launches.
SLOW_LAUNCH_S = 14.0 / 1000


Rule = Literal["published", "slow", "reflecting"]
# What was added to the published rule, and the settings without it.
ADDITIONS: Mapping[str, Mapping[str, float]] = {
    "margin": {"margin": 0.0},
    "period": {"period_s": PERIOD_S, "least_s": PERIOD_S, "share": 1.0},
}


def portfolio_of(mode: str, rule: Rule = "published") -> PortfolioSettings:
    """As published: a decision every 30 s, for the policy that scores best.

    A slow one takes 14 s per thousand simulated launches. A reflecting one is ours: a period that
    follows the queue, and a switch only if the gain exceeds a margin.
    """
    return _portfolio_with(_additions_of(rule), mode, is_slow=rule == "slow")


def _additions_of(rule: Rule) -> frozenset[str]:
    return frozenset(ADDITIONS if rule == "reflecting" else ())


def _portfolio_with(
    additions: Collection[str], mode: str, first: str = POLICIES[0], is_slow: bool = False
) -> PortfolioSettings:
    """With some of what was added, beginning with a policy."""
    without = [fields for name, fields in ADDITIONS.items() if name not in additions]
    settings: dict[str, Any] = {name: value for fields in without for name, value in fields.items()}
    if is_slow:
        settings["launch_cost_s"] = SLOW_LAUNCH_S
    candidates = candidates_of(tuple(dict.fromkeys((first, *POLICIES))))
    return PortfolioSettings(candidates, OBJECTIVES[mode], **settings)


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a workload under a scheduler."""

    schedule: Schedule
    end_s: float
    decisions: tuple[Decision, ...] = ()

    @property
    def batch(self) -> float:
        """The batch part of the mixed score."""
        return BATCH_WEIGHT * METRICS["slowdown"](self.schedule)

    @property
    def deadline(self) -> float:
        """The deadline part of the mixed score."""
        return METRICS["violation"](self.schedule)

    def score(self, objective: str) -> float:
        weighed = OBJECTIVES[objective]
        return weighed.score(weighed.vector(self.schedule))


def play(setting: Setting, profile: str | Mapping[str, Any], seed: int) -> Played:
    """A workload under one policy."""
    resolved = resolve_profile(profile) if isinstance(profile, str) else profile
    return _played(setting.simulate(resolved, seed))


def play_portfolio(setting: Setting, settings: PortfolioSettings, seed: int) -> Played:
    """A workload under a portfolio."""
    found = simulate_portfolio(setting.workload, setting.nodes, settings, **setting.given(seed))
    setting.check_ended(found.run, f"a portfolio of {', '.join(settings.candidates)}")
    return replace(_played(found.run), decisions=found.decisions)


def _played(run: SimResult) -> Played:
    rows = read_run(run.journal)
    return Played(schedule_of(rows), rows.closed_s)


def by_policy(draw: Draw, run: int, policy: str, estimates: str = "standard") -> Played:
    """One run of a workload; remembered, as several tables show the same one."""
    return _by_policy(draw, run, policy, estimates)


def by_portfolio(
    draw: Draw, run: int, mode: str, rule: Rule = "published", estimates: str = "standard"
) -> Played:
    """The same for POSUM's portfolio."""
    additions, first = _additions_of(rule), POLICIES[0]
    return _by_portfolio(draw, run, mode, additions, first, rule == "slow", estimates)


def by_additions(
    draw: Draw, run: int, additions: Collection[str], first: str = POLICIES[0]
) -> Played:
    """The same for a portfolio with some of what was added, in mixed mode."""
    return _by_portfolio(draw, run, "mixed", frozenset(additions), first, False, "standard")


# Defaults are filled in before, or the same run would be remembered under two names.
@cache
def _by_policy(draw: Draw, run: int, policy: str, estimates: str) -> Played:
    return play(posum_setting(draw, run, estimates), policy, run)


@cache
def _by_portfolio(
    draw: Draw,
    run: int,
    mode: str,
    additions: frozenset[str],
    first: str,
    is_slow: bool,
    estimates: str,
) -> Played:
    settings = _portfolio_with(additions, mode, first, is_slow)
    return play_portfolio(posum_setting(draw, run, estimates), settings, run)


def peak_queue(schedule: Schedule) -> int:
    """How many jobs there were at most at a time.

    >>> from queryard.portfolio import QueryEnd
    >>> peak_queue(Schedule((QueryEnd("a", 0, 9, 1), QueryEnd("b", 3, 5, 1))))
    2
    """
    changes = [(query.submit_s, 1) for query in schedule.queries]
    changes += [(query.end_s, -1) for query in schedule.queries]
    most = here = 0
    for _, change in sorted(changes):
        here += change
        most = max(most, here)
    return most


def gap(ours: Sequence[float], theirs: Sequence[float]) -> Interval | None:
    """By which share of their mean ours are above theirs, run by run; None if they are all 0.

    >>> gap([6.0, 5.0], [10.0, 10.0]).mean
    -0.45
    """
    scale = sum(theirs) / len(theirs)
    if not scale:
        return None
    return interval([(new - old) / scale for new, old in zip(ours, theirs, strict=True)])


def is_above(found: Interval | None) -> bool | None:
    """Whether a gap is above 0; None where chance may have made it.

    >>> is_above(gap([12.0, 13.0], [10.0, 11.0])), is_above(gap([1.0, 3.0], [2.0, 2.5]))
    (True, None)
    """
    if found is None or found.low <= 0 <= found.high:
        return None
    return found.mean > 0


def best_of(runs: Mapping[str, Sequence[Played]], names: Sequence[str], objective: str) -> str:
    """The best on an objective in hindsight, on average; ties by the order of names."""
    return min(names, key=lambda name: sum(run.score(objective) for run in runs[name]))

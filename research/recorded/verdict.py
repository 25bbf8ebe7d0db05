"""Whether the portfolio is worth it: one verdict on any runs, of streams, of days, of both."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

from research.judging import target
from research.outcome import Finding, Interval, Outcome, Table, interval

from .comparison import GOALS, Compared, portfolio_name

# To reach: of the best fixed policy over all runs; of the best in hindsight of each, and how often.
MOST_OF_FIXED, MOST_OF_HINDSIGHT, SHARE_OF_RUNS = 1.0, 1.1, 0.8
# So much worse than a score of 0 counts one above it.
PERFECT = 100.0


def verdict(compared: Sequence[Compared]) -> tuple[Finding, ...]:
    """The portfolio for each goal against fixed policies; every run counts once."""
    return tuple(finding for goal in GOALS for finding in _of_goal(compared, goal))


def together(outcomes: Sequence[Outcome]) -> Outcome:
    """One verdict over the runs of several experiments."""
    compared = [item for outcome in outcomes for item in outcome.material]
    runs: dict[str, int] = {}
    for item in compared:
        runs[item.case.title] = runs.get(item.case.title, 0) + 1
    rows = tuple((title, str(count)) for title, count in runs.items())
    note = "Every run counts once, so that a workload with more seeds weighs more"
    return Outcome(verdict(compared), (Table("Runs", ("workload", "seeds"), rows),), notes=(note,))


def best_fixed(compared: Sequence[Compared], goal: str) -> str:
    """The one fixed policy with the least geometric mean of its scores over all runs.

    Scores are taken as multiples of the best of their run, which ranks policies alike and gives a
    perfect score of 0 a place. Ties by name.
    """
    names = [name for name in compared[0].fixed if all(name in item.fixed for item in compared)]
    means = {
        name: geometric_mean(
            [ratio(item.runs[name].scores[goal], item.hindsight(goal)[1]) for item in compared]
        )
        for name in names
    }
    return min(means, key=lambda name: (means[name], name))


def _of_goal(compared: Sequence[Compared], goal: str) -> Iterable[Finding]:
    best = best_fixed(compared, goal)
    own = portfolio_name(goal)
    of_fixed = geometric_interval(
        [ratio(item.runs[own].scores[goal], item.runs[best].scores[goal]) for item in compared]
    )
    is_reached = round(of_fixed.mean, 4) <= MOST_OF_FIXED  # as it is shown
    yield Finding(
        f"{goal}: the portfolio's score, of the best fixed policy over all runs ({best})",
        f"to reach: at most {MOST_OF_FIXED:.1f}",
        of_fixed.text("{:.4f}".format),
        target(is_reached),
        "" if is_reached else _worst(compared, goal, best),
    )
    ratios = hindsight_ratios(compared, goal)
    within = sum(value <= MOST_OF_HINDSIGHT for value in ratios) / len(ratios)
    yield Finding(
        f"{goal}: runs in which it is at most {MOST_OF_HINDSIGHT:.1f} of the best in hindsight",
        f"to reach: at least {SHARE_OF_RUNS:.0%}",
        f"{within:.0%} of {len(ratios)} (geometric mean {geometric_mean(ratios):.2f})",
        target(within >= SHARE_OF_RUNS),
    )


def _worst(compared: Sequence[Compared], goal: str, best: str) -> str:
    """The run that costs most, and what was in force there."""

    def behind(item: Compared) -> float:
        return ratio(item.runs[portfolio_name(goal)].scores[goal], item.runs[best].scores[goal])

    worst = max(compared, key=behind)
    rest = geometric_mean([behind(item) for item in compared if item is not worst])
    used = ", ".join(
        f"{name} {share:.0%}"
        for name, share in (worst.runs[portfolio_name(goal)].usage or {}).items()
    )
    return (
        f"without one run {rest:.3f}: {worst.case.title}, seed {worst.case.seed}, is at "
        f"{behind(worst):.2f}, where it followed {used}"
    )


def hindsight_ratios(compared: Sequence[Compared], goal: str) -> list[float]:
    """The portfolio's score over that of the best fixed policy, run by run."""
    own = portfolio_name(goal)
    return [ratio(item.runs[own].scores[goal], item.hindsight(goal)[1]) for item in compared]


def ratio(own: float, other: float) -> float:
    """One score over another; of a perfect one, `PERFECT`."""
    if other > 0:
        return max(own / other, 1 / PERFECT)
    return 1.0 if own <= 0 else PERFECT


def geometric_interval(ratios: Sequence[float]) -> Interval:
    """The geometric mean of ratios with its 95 % interval, which is that of their logarithms.

    >>> geometric_interval([1.0, 2.0, 4.0]).text("{:.2f}".format)
    '2.00 (0.36 to 11.19)'
    """
    return interval([math.log(value) for value in ratios]).map(math.exp)


def geometric_mean(values: Sequence[float]) -> float:
    """
    >>> geometric_mean([1.0, 4.0])
    2.0
    """
    return math.exp(fmean(map(math.log, values))) if values else 1.0

"""What each addition to the published portfolio is worth on POSUM's workloads, by itself."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from statistics import fmean

from ..outcome import Table, Wish, interval, of_seeds
from .schedulers import (
    ADDITIONS,
    POLICIES,
    TITLES,
    Played,
    best_of,
    by_policy,
    gap,
    play_portfolio,
    portfolio_with,
)
from .score_tables import text_of
from .workloads import Draw, posum_setting

# With what ours begins in one row: the policy that minds deadlines and costs others least.
OTHER_FIRST = "edls-pr"
MIXED = "mixed"


def additions_table(wish: Wish, title: str, draws: Sequence[Draw]) -> Table:
    """The published rule with one addition, ours without one, and ours that begins otherwise."""
    rules = {"published": portfolio_with(())}
    rules |= {f"published, and {name}": portfolio_with({name}) for name in ADDITIONS}
    rules["ours"] = portfolio_with(ADDITIONS)
    for name in ADDITIONS:
        rules[f"ours, but no {name}"] = portfolio_with(ADDITIONS.keys() - {name})
    rules[f"ours, {TITLES[OTHER_FIRST]} first"] = portfolio_with(ADDITIONS, MIXED, OTHER_FIRST)
    fixed = {
        name: [by_policy(draw, run, name) for run, draw in enumerate(draws)] for name in POLICIES
    }
    best = best_of(fixed, POLICIES, MIXED)
    rows = []
    for told, settings in rules.items():
        wish.tell(f"{title}, {told}")
        played = [
            play_portfolio(posum_setting(draw, run, "standard"), settings, run)
            for run, draw in enumerate(draws)
        ]
        found = gap(_scores(played), _scores(fixed[best]))
        decisions = fmean(len(run.decisions) for run in played)
        rows.append(
            (
                told,
                interval(_scores(played)).text("{:,.0f}".format),
                text_of(found),
                f"{_of_hindsight(played, list(fixed.values())):.2f}",
                f"{decisions:,.0f}",
            )
        )
    columns = (
        *("portfolio", "mixed score", f"against {TITLES[best]}"),
        *("of the best policy of each run", "decisions"),
    )
    heading = f"What was added to the portfolio, one by one: {title}, mixed"
    return Table(f"{heading} ({of_seeds(len(draws))})", columns, tuple(rows))


def _scores(runs: Sequence[Played]) -> list[float]:
    return [run.score(MIXED) for run in runs]


def _of_hindsight(played: Sequence[Played], fixed: Sequence[Sequence[Played]]) -> float:
    """The geometric mean over runs of the score over that of the policy that was best in it."""
    best = [min(scores) for scores in zip(*map(_scores, fixed), strict=True)]
    ratios = zip(_scores(played), best, strict=True)
    return exp(fmean(log(own / other) for own, other in ratios))

"""What each addition to the published portfolio is worth on POSUM's workloads, by itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from statistics import fmean, geometric_mean

from research.numbers import ROUNDED
from research.outcome import RunOptions, Table, interval, of_seeds

from .schedulers import (
    ADDITIONS,
    POLICIES,
    TITLES,
    Played,
    best_of,
    by_additions,
    by_policy,
    gap,
)
from .score_tables import text_of
from .workloads import Draw

# With what ours begins in one row: the policy that minds deadlines and costs others least.
OTHER_FIRST = "edls-pr"
MIXED = "mixed"


def additions_table(options: RunOptions, title: str, draws: Sequence[Draw]) -> Table:
    """The published rule with one addition, ours without one, and ours that begins otherwise."""
    srtf, every = POLICIES[0], ADDITIONS.keys()
    rules: dict[str, tuple[Collection[str], str]] = {"published": ((), srtf)}
    rules |= {f"published, and {name}": ({name}, srtf) for name in every}
    rules["ours"] = (every, srtf)
    rules |= {f"ours, but no {name}": (every - {name}, srtf) for name in every}
    rules[f"ours, {TITLES[OTHER_FIRST]} first"] = (every, OTHER_FIRST)
    fixed = {
        name: [by_policy(draw, run, name) for run, draw in enumerate(draws)] for name in POLICIES
    }
    best = best_of(fixed, POLICIES, MIXED)
    rows = []
    for told, (additions, first) in rules.items():
        options.tell(f"{title}, {told}")
        played = [by_additions(draw, run, additions, first) for run, draw in enumerate(draws)]
        found = gap(_scores(played), _scores(fixed[best]))
        decisions = fmean(len(run.decisions) for run in played)
        rows.append(
            (
                told,
                interval(_scores(played)).text(ROUNDED),
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
    return geometric_mean(own / other for own, other in zip(_scores(played), best, strict=True))

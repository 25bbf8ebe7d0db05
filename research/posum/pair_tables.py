"""The tables of `posum-provisioning`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from queryard.portfolio import in_force
from research.numbers import ROUNDED, as_percent
from research.outcome import Table, interval, of_seeds

from .pairs import COST_WEIGHT, Runs, begun_hours, best_pair, node_hours, scored
from .schedulers import Played


def pairs_table(title: str, runs: Runs, names: Sequence[str]) -> Table:
    rows = []
    for name in names:
        of = runs[name]
        rows.append(
            (
                name,
                interval([scored(run) for run in of]).text(ROUNDED),
                f"{fmean(run.batch for run in of):,.0f}",
                f"{fmean(run.deadline for run in of):,.0f}",
                f"{fmean(begun_hours(run) for run in of):.1f}",
                f"{fmean(node_hours(run) for run in of):.1f}",
            )
        )
    columns = (
        "allocation, provisioning",
        f"score with cost ({COST_WEIGHT:g} a begun node-hour)",
        "batch",
        "deadline",
        "node-hours begun",
        "node-hours used",
    )
    seeds = of_seeds(min(len(runs[name]) for name in names))
    return Table(f"{title} ({seeds})", columns, tuple(rows))


def in_force_table(portfolios: Mapping[str, Played]) -> Table:
    """How long portfolios followed which pair."""
    rows = []
    for title, run in portfolios.items():
        shares = in_force(run.decisions, run.end_s)
        followed = ", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items())
        switches = sum(decision.chose_another for decision in run.decisions)
        rows.append((title, f"{len(run.decisions)}", f"{switches}", followed))
    columns = ("portfolio", "decisions", "switches", "in force, of the time")
    return Table(f"What the portfolios followed ({of_seeds(1)})", columns, tuple(rows))


def weights_table(
    runs: Runs, weighed: Mapping[float, Played], published: Sequence[str], title: str
) -> Table:
    """What comes of it if a node-hour weighs less or more; the first run only."""
    first = {name: of[:1] for name, of in runs.items()}
    rows = []
    for weight, played in sorted(weighed.items()):
        best = best_pair(first, published, weight)
        ours, theirs = scored(played, weight), scored(first[best][0], weight)
        rows.append(
            (
                f"{weight:g}",
                best,
                f"{theirs:,.0f}",
                f"{ours:,.0f}",
                as_percent(ours / theirs - 1),
                f"{begun_hours(played):.0f}",
            )
        )
    columns = (
        "a begun node-hour weighs",
        "best pair in hindsight",
        "its score",
        title,
        "against it",
        "node-hours begun",
    )
    return Table(f"Sensitivity to the weight of cost ({of_seeds(1)})", columns, tuple(rows))

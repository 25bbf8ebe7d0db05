"""Allocation and provisioning in pairs (table 4.1), with the lease cost that was left unmeasured.

Every pair is run by itself, and portfolios choose among them: of the published sixteen, and of
those and twenty new ones. The cluster begins with the published eight nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from queryard.policies import resolve_profile
from queryard.portfolio import PortfolioSettings
from queryard.portfolio.settings import NEW_ALLOCATIONS, PROVISIONINGS
from research.bars import bar_keys, bar_panel
from research.numbers import as_percent
from research.outcome import Chart, Experiment, Finding, Interval, Outcome, RunOptions

from .pair_tables import in_force_table, pairs_table, weights_table
from .pairs import (
    COST_WEIGHT,
    LEAST_NODES,
    MAX_SLOWDOWN,
    MOST_NODES,
    Runs,
    against,
    best_pair,
    objective,
    pairs,
    scored,
)
from .schedulers import POLICIES, Played, play, play_portfolio
from .workloads import PARAMETERS, WORKLOADS, Draw, posum_setting

FIXED = "fixed"
WEIGHTS = (COST_WEIGHT / 2, COST_WEIGHT * 2)
# A round with four to eight times as many candidates, for nodes that take a while to boot.
LEAST_S, PERIOD_S = 120.0, 240.0
# Of the runs asked for.
SHARE_OF_RUNS = 0.6
PUBLISHED_16, ALL_36 = "portfolio of 16", "portfolio of 36"
DLX = "dlx"
ONE_RUN = "one seed: portfolios cost most"
# Where the chart is cut off.
TOP = 6000.0


def run(options: RunOptions) -> Outcome:
    count = max(1, round(options.seeds * SHARE_OF_RUNS))
    draw = Draw(WORKLOADS[1], hours=options.size)
    published, new = pairs(POLICIES), pairs(NEW_ALLOCATIONS)
    everything = {
        **{f"{name} {FIXED}": resolve_profile(name) for name in (*POLICIES, *NEW_ALLOCATIONS)},
        **published,
        **new,
    }
    runs: dict[str, list[Played]] = {name: [] for name in everything}
    for seed in range(count):
        options.tell(f"pairs by themselves, run {seed}")
        for name, profile in everything.items():
            runs[name].append(play(posum_setting(draw, seed), profile, seed))
    # Portfolios cost most: one run of each.
    starts = {
        part: _portfolio(options, draw, _beginning_with(f"srtf {part}", published))
        for part in PROVISIONINGS
    }
    runs[ALL_36] = [_portfolio(options, draw, {**published, **new})]
    weighed = {
        weight: _portfolio(options, draw, _beginning_with(f"srtf {DLX}", published), weight)
        for weight in WEIGHTS
    }
    weighed[COST_WEIGHT] = starts[DLX]
    for part, played in starts.items():
        runs[_titled(part)] = [played]
    tables = (
        pairs_table("The published pairs", runs, _rows_of(POLICIES)),
        pairs_table("New allocations with the same provisioning", runs, _rows_of(NEW_ALLOCATIONS)),
        pairs_table("Portfolios of pairs", runs, (*map(_titled, PROVISIONINGS), ALL_36)),
        in_force_table({_titled(part): played for part, played in starts.items()}),
        weights_table(runs, weighed, list(published), _titled(DLX)),
    )
    return Outcome(tuple(_findings(runs, published, new)), tables, (_chart(runs),), NOTES)


def _titled(part: str) -> str:
    return f"{PUBLISHED_16}, srtf {part} first"


def _beginning_with(
    first: str, candidates: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Mapping[str, Any]]:
    """The same candidates; the first is in force until another one scores better."""
    return {first: candidates[first], **candidates}


def _portfolio(
    options: RunOptions,
    draw: Draw,
    candidates: Mapping[str, Mapping[str, Any]],
    weight: float = COST_WEIGHT,
) -> Played:
    first = next(iter(candidates))
    options.tell(f"a portfolio of {len(candidates)} from {first}, cost weighs {weight:g}")
    settings = PortfolioSettings(candidates, objective(weight), period_s=PERIOD_S, least_s=LEAST_S)
    return play_portfolio(posum_setting(draw, 0), settings, 0)


def _rows_of(allocations: Sequence[str]) -> list[str]:
    return [f"{name} {part}" for name in allocations for part in (FIXED, *PROVISIONINGS)]


def _against(runs: Runs, ours: str, theirs: str) -> str:
    found = against(runs, ours, theirs)
    return "" if found is None else found.text(as_percent)


def _findings(runs: Runs, published: Iterable[str], new: Iterable[str]) -> Iterable[Finding]:
    unmeasured = "not measured"
    still = best_pair(runs, [f"{name} {FIXED}" for name in POLICIES])
    best, best_new = best_pair(runs, published), best_pair(runs, new)
    what = "with cost (lower is better)"
    yield Finding(
        f"best of the 16 pairs against the best policy on eight nodes, {what}",
        unmeasured,
        f"{_against(runs, best, still)} ({best} : {still})",
    )
    yield Finding(
        f"best new pair against the best of the 16, {what}",
        "not in the portfolio",
        f"{_against(runs, best_new, best)} ({best_new})",
    )
    for part in PROVISIONINGS:
        name = _titled(part)
        yield Finding(
            f"{name}, against the best pair in hindsight, {what}",
            unmeasured,
            f"{_against(runs, name, best)} ({best})",
            note=ONE_RUN,
        )
    by_start = [scored(runs[_titled(part)][0]) for part in PROVISIONINGS]
    yield Finding(
        "what the first pair decides: the worst start against the best",
        unmeasured,
        as_percent(max(by_start) / min(by_start) - 1),
        note=f"{ONE_RUN}; as long as candidates score alike, the one in force stays",
    )
    best_of_all = best_pair(runs, (best, best_new))
    yield Finding(
        f"{ALL_36}, against the best pair in hindsight, {what}",
        unmeasured,
        f"{_against(runs, ALL_36, best_of_all)} ({best_of_all})",
        note=ONE_RUN,
    )


def _chart(runs: Runs) -> Chart:
    panels = []
    for title, allocations, portfolios in (
        ("Published allocations", POLICIES, [_titled(part) for part in PROVISIONINGS]),
        ("New allocations", NEW_ALLOCATIONS, [ALL_36]),
    ):
        values: dict[str, list[Interval | None]] = {
            part: [_mean(runs[f"{name} {part}"]) for name in allocations]
            for part in (FIXED, *PROVISIONINGS)
        }
        of_all = [run for name in portfolios for run in runs[name]]
        values["portfolio"] = [*([None] * len(allocations)), _mean(of_all)]
        groups = (*allocations, "portfolio")
        panel = bar_panel(title, "score with cost (lower is better)", groups, values)
        panels.append(replace(panel, y=replace(panel.y, high=TOP)))
    return Chart(
        "posum-provisioning",
        f"Pairs of allocation and provisioning, and portfolios of them (cut off at {TOP:,.0f})",
        tuple(panels),
        bar_keys((FIXED, *PROVISIONINGS, "portfolio")),
    )


def _mean(of: Sequence[Played]) -> Interval:
    """Without its interval, which would hide the bars; the tables have it."""
    mean = fmean(scored(run) for run in of)
    return Interval(mean, mean, mean, 1)


NOTES = (
    "The thesis describes the pairs and leaves both resizing and its cost unbuilt, so there is no "
    "figure to compare with. All of this is the cost of an hour of work on nodes that are billed "
    "by the hour: a node that is given up and wanted again begins another",
    "Rules that shrink the cluster (-X; DLX while few deadlines are open; MaxBSD while jobs are "
    "young) save few begun hours and pay with squares of violations: jobs that come later find a "
    "small cluster. With allocations that mind deadlines they do far less harm",
    "What comes of the portfolio depends on the pair it begins with, and is no merit of its choice "
    "where it never switches: at first all pairs score alike and the one in force stays, and nodes "
    "cost nothing more once their hour has begun, so that a cluster that has grown is kept",
    "No query arrives in a trial: it shows what a smaller cluster saves on the queries that are "
    "there, and not what later ones lose",
)

EXPERIMENT = Experiment(
    "posum-provisioning",
    "Policies that resize the cluster, with lease cost as the third objective",
    "POSUM §4.3.1, table 4.1 and §6.3 (left unmeasured there)",
    run,
    {
        **{key: PARAMETERS[key] for key in ("arrivals", "task times", "estimates")},
        "nodes": f"{LEAST_NODES} to {MOST_NODES}, eight at first; x is 1; a rule is asked every "
        "30 s; a new node takes 30 s to boot and holds no data",
        "the maximum of MaxBSD": f"{MAX_SLOWDOWN:g}, between the usual slowdown of a job (0.1) and "
        "what a starved one has",
        "lease": f"whole hours; each that is begun weighs {COST_WEIGHT:g}, so that eight nodes for "
        "an hour count like either part of the published score",
        "the portfolio": f"a decision every {PERIOD_S:g} s, or after {LEAST_S:g} s if the queue "
        "has changed much, with a margin of 10 %; one run from each of four pairs to "
        "begin with",
    },
)

"""How far the portfolio is from the best policy where the thesis leaves something open."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from statistics import fmean

from research.numbers import as_percent
from research.outcome import RunOptions, Table, of_seeds

from .schedulers import (
    POLICIES,
    TITLES,
    Played,
    Rule,
    best_of,
    by_policy,
    by_portfolio,
    gap,
    peak_queue,
)
from .workloads import INTERVAL_S, REDUCE_PACE, WORKLOADS, Draw

# Of the runs of the main tables.
SHARE_OF_RUNS = 0.2


@dataclass(frozen=True, slots=True)
class Variant:
    """One thing that is otherwise; all else is as in the main tables."""

    what: str
    draw: Draw
    estimates: str = "standard"
    rule: Rule = "published"
    policies: tuple[str, ...] = POLICIES


def _variants(draw: Draw) -> Iterable[Variant]:
    yield Variant("as in the main table", draw)
    yield Variant("a thousand simulated launches take 14 s", draw, rule="slow")
    yield Variant("ours: margin, period by the queue", draw, rule="reflecting")
    # It takes twenty times as long as the others, so without the policies that depend on it least.
    yield Variant("estimates: regression", draw, "regression", policies=("srtf",))
    yield Variant("estimates: true means", draw, "oracle")
    for factor in (2.0, 1.5, 0.75):
        other = replace(draw, interval_s=INTERVAL_S * factor)
        yield Variant(f"a job every {other.interval_s:.4g} s, not {INTERVAL_S:g}", other)
    yield Variant("intervals are Poisson numbers", replace(draw, rhythm="intervals"))
    yield Variant("reduces half as long", replace(draw, reduce_pace=REDUCE_PACE / 2))


def sensitivity(options: RunOptions) -> Table:
    """Mixed mode on the mixed objective, with fewer runs: those with the same luck compare."""
    seeds = max(1, round(options.seeds * SHARE_OF_RUNS))
    rows = []
    for number, at in WORKLOADS.items():
        for variant in _variants(Draw(at, hours=options.size)):
            what = f"workload {number}, {variant.what}"
            options.tell(what)
            rows.append((what, *_cells(variant, seeds)))
    columns = (
        "what is otherwise",
        "most jobs at a time",
        *(TITLES[name] for name in POLICIES),
        TITLES["mixed"],
        "against the best policy",
    )
    title = f"Sensitivity: mixed scores ({of_seeds(seeds)})"
    return Table(title, columns, tuple(rows))


def _cells(variant: Variant, seeds: int) -> Iterable[str]:
    draw, estimates, policies = variant.draw, variant.estimates, variant.policies
    runs: dict[str, list[Played]] = {
        name: [by_policy(draw, run, name, estimates) for run in range(seeds)] for name in policies
    }
    runs["mixed"] = [
        by_portfolio(draw, run, "mixed", variant.rule, estimates) for run in range(seeds)
    ]
    scores = {name: [run.score("mixed") for run in of] for name, of in runs.items()}
    best = best_of(runs, policies, "mixed")
    yield f"{fmean(peak_queue(run.schedule) for run in runs['srtf']):.0f}"
    for name in (*POLICIES, "mixed"):
        yield f"{fmean(scores[name]):,.0f}" if name in scores else ""
    found = gap(scores["mixed"], scores[best])
    yield "" if found is None else f"{found.text(as_percent)} ({TITLES[best]})"

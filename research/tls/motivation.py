"""A large query between two small ones: how Hadoop stalls the small ones' second jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import fmean

from research.bars import bar_keys, bar_panel
from research.judging import beside, direction
from research.numbers import HUNDREDTHS, TIMES
from research.outcome import (
    Chart,
    Experiment,
    Finding,
    Interval,
    Outcome,
    RunOptions,
    Table,
    Verdict,
    interval,
    of_seeds,
)
from research.trials import Setting

from .plans import PLANS
from .yard import (
    OPEN_PARAMETERS,
    SCHEDULERS,
    USUAL,
    World,
    build_query,
    responses_s,
    submitted,
    workload_of,
)

# Fig. 1: name -> (query, size of its data set).
QUERIES: Mapping[str, tuple[str, float]] = {
    "QA": ("Q14", 10.0),
    "QB": ("Q17", 100.0),
    "QC": ("Q14", 10.0),
}
SMALL = ("QA", "QC")
PRINTED = 3.0
# From this slowdown on, a query counts as stalled.
STALLED = 1.5
SENSITIVITY_SEEDS = 3

Slowed = dict[str, dict[str, list[float]]]
"""Scheduler -> query -> its slowdown, seed by seed."""


@dataclass(frozen=True, slots=True)
class Start:
    """The second comes before the first's second job, says the text: a map takes 17 s."""

    gap_s: float = 5.0
    world: World = USUAL


def three_setting(seed: int, start: Start) -> Setting:
    built = []
    for place, (name, (query, scale_gb)) in enumerate(QUERIES.items()):
        arrival, tables = build_query(name, PLANS[query], scale_gb, start.world, seed, query)
        built.append((submitted(arrival, place * start.gap_s), tables))
    return start.world.setting(workload_of("one after another", built))


def all_slowdowns(seeds: int, start: Start) -> Slowed:
    found: Slowed = {scheduler: {name: [] for name in QUERIES} for scheduler in SCHEDULERS}
    for seed in range(seeds):
        setting = three_setting(seed, start)
        alone_s = setting.alone_s(seed)
        for scheduler, profile in SCHEDULERS.items():
            took_s = responses_s(setting, profile, seed)
            for name, of_name in found[scheduler].items():
                of_name.append(took_s[name] / alone_s[name])
    return found


def run(options: RunOptions) -> Outcome:
    options.tell("Q14, Q17, Q14 one after another")
    found = all_slowdowns(options.seeds, Start())
    findings = [
        beside(
            f"{name} (Q14, 10 GB): slowdown under HCS",
            PRINTED,
            interval(found["HCS"][name]),
            TIMES,
            neutral=1.0,
        )
        for name in SMALL
    ]
    both = zip(*(found["HFS"][name] for name in SMALL), strict=True)
    fair = interval([fmean(of_seed) for of_seed in both])
    findings.append(
        Finding("slowdown of both under HFS", "similar", fair.text(TIMES), _stalls(fair))
    )
    rows = tuple(
        (
            f"{name} ({query}, {gb:.0f} GB)",
            *(interval(found[scheduler][name]).text() for scheduler in SCHEDULERS),
        )
        for name, (query, gb) in QUERIES.items()
    )
    table = Table("Slowdown", ("", *SCHEDULERS), rows)
    panel = bar_panel(
        "Q14, Q17, Q14 one after another",
        "slowdown",
        tuple(f"{name} ({query})" for name, (query, _) in QUERIES.items()),
        {
            scheduler: [interval(found[scheduler][name]) for name in QUERIES]
            for scheduler in SCHEDULERS
        },
    )
    chart = Chart(
        "tls-motivation", "A large query between small ones", (panel,), bar_keys(tuple(SCHEDULERS))
    )
    return Outcome(tuple(findings), (table, _sensitivity(options)), (chart,), NOTES)


def _stalls(slowed: Interval) -> Verdict | None:
    return direction(slowed.mean > STALLED, slowed, STALLED)


def _sensitivity(options: RunOptions) -> Table:
    rows = []
    seeds = min(SENSITIVITY_SEEDS, options.seeds)
    for title, start in OTHERWISE.items():
        found = all_slowdowns(seeds, start)
        cells = (
            interval(found[scheduler][name]).mean for scheduler in SCHEDULERS for name in SMALL
        )
        rows.append((title, *map(HUNDREDTHS, cells)))
    columns = ("", *(f"{name}, {scheduler}" for scheduler in SCHEDULERS for name in SMALL))
    title = "Slowdown of the small ones, if something open is chosen otherwise"
    title += f" ({of_seeds(seeds)})"
    return Table(title, columns, tuple(rows))


OTHERWISE: Mapping[str, Start] = {
    "as chosen": Start(),
    "2 s apart": Start(gap_s=2.0),
    "10 s apart": Start(gap_s=10.0),
    "20 s apart": Start(gap_s=20.0),
    "reduces start after all maps": Start(world=replace(USUAL, slow_start=1.0)),
    "5 s to start a job": Start(world=replace(USUAL, job_start_s=5.0)),
    "a block takes 30 s": Start(world=replace(USUAL, map_s_per_gb=120.0)),
}

NOTES = (
    "The stall under HCS is as printed: a second job of one task lines up behind all maps and "
    "reduces of the large query. Under HFS, of which the text says without numbers that it stalls "
    "them similarly, a job without slots is served next here; all the small ones wait for is that "
    "a task ends, as they do under TLS",
)

EXPERIMENT = Experiment(
    "tls-motivation",
    "A large query between two small ones",
    "TLS §2.1, Fig. 1",
    run,
    {
        "time between submissions": "5 s: each comes before the second job of the one before",
        **OPEN_PARAMETERS,
    },
)

"""Five times Q21 on data sets of 10 to 200 GB, submitted together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from statistics import fmean

from research.bars import bar_keys, bar_panel
from research.judging import beside, whether
from research.numbers import as_percent
from research.outcome import (
    Chart,
    Experiment,
    Finding,
    Outcome,
    RunOptions,
    Table,
    interval,
    of_seeds,
)
from research.trials import Setting, change

from .plans import PLANS
from .yard import OPEN_PARAMETERS, SCHEDULERS, USUAL, World, build_query, responses_s, workload_of

SIZES_GB = (10, 20, 50, 100, 200)
SENSITIVITY_SEEDS = 3
# §5.5: against HFS, and the smallest against HCS.
PRINTED_RESPONSE, PRINTED_THROUGHPUT, PRINTED_SMALLEST = -0.361, 0.225, -0.746

Ends = dict[str, list[dict[int, float]]]
"""Scheduler -> seed -> size in GB -> when it ended; all came at 0."""


def five_setting(seed: int, world: World = USUAL, query: str = "Q21") -> Setting:
    """The five in an order drawn from the seed: it breaks ties between jobs equally old."""
    sizes = list(SIZES_GB)
    Random(f"{seed}/order").shuffle(sizes)
    return world.setting(
        workload_of(
            "five", (build_query(f"{gb}", PLANS[query], gb, world, seed, query) for gb in sizes)
        )
    )


def all_ends(seeds: int, world: World = USUAL, query: str = "Q21") -> Ends:
    return ends_of(five_setting(seed, world, query) for seed in range(seeds))


def ends_of(settings: Iterable[Setting]) -> Ends:
    """When each query ended, setting by setting; its id is its size."""
    found: Ends = {scheduler: [] for scheduler in SCHEDULERS}
    for seed, setting in enumerate(settings):
        for scheduler, profile in SCHEDULERS.items():
            took_s = responses_s(setting, profile, seed)
            found[scheduler].append({int(gb): end_s for gb, end_s in took_s.items()})
    return found


def _mean_response_s(ends: Ends, scheduler: str) -> list[float]:
    return [fmean(of_seed.values()) for of_seed in ends[scheduler]]


def _last_s(ends: Ends, scheduler: str) -> list[float]:
    return [max(of_seed.values()) for of_seed in ends[scheduler]]


def _smallest_s(ends: Ends, scheduler: str) -> list[float]:
    return [of_seed[min(of_seed)] for of_seed in ends[scheduler]]


def findings_of(ends: Ends, prefix: str = "", few: str = "five") -> list[Finding]:
    smallest_gb = min(ends["TLS"][0])
    # Throughput: as many queries in the time until the last ends.
    claims = (
        ("mean response, TLS against HFS", PRINTED_RESPONSE, _mean_response_s, ("TLS", "HFS")),
        ("throughput, TLS against HFS", PRINTED_THROUGHPUT, _last_s, ("HFS", "TLS")),
        (
            f"response at {smallest_gb} GB, TLS against HCS",
            PRINTED_SMALLEST,
            _smallest_s,
            ("TLS", "HCS"),
        ),
    )
    found = []
    for what, printed, values_of, (one, other) in claims:
        ours = change(values_of(ends, one), values_of(ends, other))
        found.append(beside(f"{prefix}{what}", printed, ours, as_percent))
    evenness = {
        scheduler: interval([max(of.values()) / min(of.values()) for of in ends[scheduler]])
        for scheduler in SCHEDULERS
    }
    found.append(
        Finding(
            f"{prefix}slowest over fastest of the {few}, HCS and TLS",
            "similar, far apart",
            f"{evenness['HCS'].mean:.1f}, {evenness['TLS'].mean:.1f}",
            whether(evenness["HCS"].mean < evenness["TLS"].mean),
        )
    )
    return found


def run(options: RunOptions) -> Outcome:
    options.tell("five times Q21")
    ends = all_ends(options.seeds)
    panel = bar_panel(
        "Five times Q21 at once",
        "response (s)",
        tuple(f"{gb} GB" for gb in SIZES_GB),
        {
            scheduler: [interval([of_seed[gb] for of_seed in ends[scheduler]]) for gb in SIZES_GB]
            for scheduler in SCHEDULERS
        },
    )
    chart = Chart("tls-five-q21", "Five times Q21", (panel,), bar_keys(tuple(SCHEDULERS)))
    tables = (ends_table("Response in seconds", ends), _sensitivity(options))
    return Outcome(tuple(findings_of(ends)), tables, (chart,), NOTES)


def ends_table(title: str, ends: Ends, sizes_gb: Sequence[int] = SIZES_GB) -> Table:
    rows = [
        (
            f"{gb} GB",
            *(
                interval([of_seed[gb] for of_seed in ends[scheduler]]).text()
                for scheduler in SCHEDULERS
            ),
        )
        for gb in sizes_gb
    ]
    rows.append(
        ("mean", *(interval(_mean_response_s(ends, scheduler)).text() for scheduler in SCHEDULERS))
    )
    return Table(title, ("", *SCHEDULERS), tuple(rows))


def _sensitivity(options: RunOptions) -> Table:
    rows = []
    seeds = min(SENSITIVITY_SEEDS, options.seeds)
    for title, (world, query) in OTHERWISE.items():
        options.tell(f"otherwise: {title}")
        ends = all_ends(seeds, world, query)
        cells = (
            change(_mean_response_s(ends, "TLS"), _mean_response_s(ends, "HFS")),
            change(_last_s(ends, "HFS"), _last_s(ends, "TLS")),
            change(_smallest_s(ends, "TLS"), _smallest_s(ends, "HCS")),
        )
        rows.append((title, *(as_percent(cell.mean) for cell in cells)))
    columns = ("", "response vs HFS", "throughput vs HFS", "10 GB vs HCS")
    title = f"TLS, if something open is chosen otherwise ({of_seeds(seeds)})"
    return Table(title, columns, tuple(rows))


OTHERWISE: Mapping[str, tuple[World, str]] = {
    "as chosen": (USUAL, "Q21"),
    "nothing stays in memory": (replace(USUAL, memory_cache_bytes=0.0), "Q21"),
    "8 GB of memory per node": (replace(USUAL, memory_cache_bytes=8e9), "Q21"),
    "memory saves 70 %": (replace(USUAL, memory_gain=0.7), "Q21"),
    "reduces start after all maps": (replace(USUAL, slow_start=1.0), "Q21"),
    "5 s to start a job": (replace(USUAL, job_start_s=5.0), "Q21"),
    "Q9 instead": (USUAL, "Q9"),
}

NOTES = (
    "Response and the smallest query are as printed in direction; throughput is not. All slots are "
    "busy under any order until the last jobs of the largest query, which TLS leaves for the end: "
    "there is nothing beside them to fill the slots, while under HFS they ran beside the others. "
    "What memory saves is too little to make up for it (see tls-lodfa)",
)

EXPERIMENT = Experiment(
    "tls-five-q21",
    "Five times Q21 at 10 to 200 GB, submitted together",
    "TLS §5.5, Fig. 17",
    run,
    {
        "the five sizes": "10, 20, 50, 100 and 200 GB, each a data set of its own",
        "which of them is first": "drawn from the seed",
        **OPEN_PARAMETERS,
    },
)

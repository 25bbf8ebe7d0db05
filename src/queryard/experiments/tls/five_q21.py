"""Five times Q21 on data sets of 10 to 200 GB, submitted together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from statistics import fmean

from ..bars import bar_keys, bar_panel
from ..judging import remark, same_side
from ..outcome import Chart, Experiment, Finding, Outcome, Table, Wish, interval, of_seeds
from ..trials import Setting, as_percent, change
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
    found: Ends = {who: [] for who in SCHEDULERS}
    for seed in range(seeds):
        setting = five_setting(seed, world, query)
        for who, profile in SCHEDULERS.items():
            took_s = responses_s(setting, profile, seed)
            found[who].append({gb: took_s[f"{gb}"] for gb in SIZES_GB})
    return found


def _mean_response_s(ends: Ends, who: str) -> list[float]:
    return [fmean(of_seed.values()) for of_seed in ends[who]]


def _last_s(ends: Ends, who: str) -> list[float]:
    return [max(of_seed.values()) for of_seed in ends[who]]


def _smallest_s(ends: Ends, who: str) -> list[float]:
    return [of_seed[SIZES_GB[0]] for of_seed in ends[who]]


def run(wish: Wish) -> Outcome:
    wish.tell("five times Q21")
    ends = all_ends(wish.seeds)
    response = change(_mean_response_s(ends, "TLS"), _mean_response_s(ends, "HFS"))
    # As many queries in the time until the last ends.
    throughput = change(_last_s(ends, "HFS"), _last_s(ends, "TLS"))
    smallest = change(_smallest_s(ends, "TLS"), _smallest_s(ends, "HCS"))
    evenness = {
        who: interval([max(of.values()) / min(of.values()) for of in ends[who]])
        for who in SCHEDULERS
    }
    findings = (
        Finding(
            "mean response, TLS against HFS",
            as_percent(PRINTED_RESPONSE),
            response.text(as_percent),
            same_side(PRINTED_RESPONSE, response),
            remark(PRINTED_RESPONSE, response),
        ),
        Finding(
            "throughput, TLS against HFS",
            as_percent(PRINTED_THROUGHPUT),
            throughput.text(as_percent),
            same_side(PRINTED_THROUGHPUT, throughput),
            remark(PRINTED_THROUGHPUT, throughput),
        ),
        Finding(
            "response at 10 GB, TLS against HCS",
            as_percent(PRINTED_SMALLEST),
            smallest.text(as_percent),
            same_side(PRINTED_SMALLEST, smallest),
            remark(PRINTED_SMALLEST, smallest),
        ),
        Finding(
            "slowest over fastest of the five, HCS and TLS",
            "similar, far apart",
            f"{evenness['HCS'].mean:.1f}, {evenness['TLS'].mean:.1f}",
            evenness["HCS"].mean < evenness["TLS"].mean,
        ),
    )
    panel = bar_panel(
        "Five times Q21 at once",
        "response (s)",
        tuple(f"{gb} GB" for gb in SIZES_GB),
        {
            who: [interval([of_seed[gb] for of_seed in ends[who]]) for gb in SIZES_GB]
            for who in SCHEDULERS
        },
    )
    chart = Chart("tls-five-q21", "Five times Q21", (panel,), bar_keys(tuple(SCHEDULERS)))
    return Outcome(findings, (_table(ends), _sensitivity(wish)), (chart,), NOTES)


def _table(ends: Ends) -> Table:
    rows = [
        (
            f"{gb} GB",
            *(interval([of_seed[gb] for of_seed in ends[who]]).text() for who in SCHEDULERS),
        )
        for gb in SIZES_GB
    ]
    rows.append(("mean", *(interval(_mean_response_s(ends, who)).text() for who in SCHEDULERS)))
    return Table("Response in seconds", ("", *SCHEDULERS), tuple(rows))


def _sensitivity(wish: Wish) -> Table:
    rows = []
    seeds = min(SENSITIVITY_SEEDS, wish.seeds)
    for title, (world, query) in OTHERWISE.items():
        wish.tell(f"otherwise: {title}")
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
    "8 GB of memory a node": (replace(USUAL, memory_cache_bytes=8e9), "Q21"),
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

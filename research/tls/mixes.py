"""The Bing, Facebook and QMix workloads of TLS (table 4) under its three schedulers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random

from queryard.core.model import Table
from queryard.metrics import Summary
from queryard.workload.cluster import numbered
from queryard.workload.generate import generate, submit_poisson
from queryard.workload.mix import PRESETS, Mix, SizeBin
from queryard.workload.model import Arrival
from research.outcome import RunOptions
from research.trials import Setting, parts, run_one

from .plans import MIXED, PLANS, SINGLE_JOBS, input_share
from .yard import NODES, SCHEDULERS, SLOTS, USUAL, World, build_query, workload_of

WORKLOADS = ("Bing", "Facebook", "QMix")
BINS = ("1", "2", "3", "4", "5")
# In the words of table 4.
BIN_TITLES = ("1-10 GB", "20 GB", "50 GB", "100 GB", ">100 GB")
# How many of a hundred queries of QMix are single jobs.
SINGLE = 20


@dataclass(frozen=True, slots=True)
class Traffic:
    """How the queries come. The paper gives no rate.

    0.8 of what all slots can do keeps queries waiting for one another, which is what is compared,
    and is still a load that ends: 1 / (1 - load), the paper's measure of fairness, needs less
    than 1. `shapes` is where plans come from.
    """

    load: float = 0.8
    queues: int = 1
    shapes: str = "TPC-H"


USUAL_TRAFFIC = Traffic()


def mix_setting(
    name: str,
    seed: int,
    size: float = 1.0,
    world: World = USUAL,
    traffic: Traffic = USUAL_TRAFFIC,
) -> Setting:
    """One of the three workloads; QMix is Facebook's of the same seed with some replaced."""
    bins = PRESETS[name.lower()].bins
    if traffic.shapes != "TPC-H":
        mix = Mix(bins=bins, load=traffic.load, map_s_per_gb=world.map_s_per_gb)
        mix = replace(mix, queries=parts(100, size), plain_jobs=PRESETS[name.lower()].plain_jobs)
        return world.setting(generate(mix, seed, NODES))
    dealt = [size_bin for size_bin in bins for _ in range(parts(round(size_bin.share), size))]
    Random(f"{seed}/bins").shuffle(dealt)
    single: set[int] = set()
    if name == "QMix":
        single.update(Random(f"{seed}/single").sample(range(len(dealt)), parts(SINGLE, size)))
    built = [
        _query(query_id, size_bin, seed, world, is_single=place in single)
        for place, (query_id, size_bin) in enumerate(
            zip(numbered("q", len(dealt)), dealt, strict=True)
        )
    ]
    workload = workload_of(name, built)
    timed = submit_poisson(workload.arrivals, traffic.load * SLOTS, Random(f"{seed}/arrivals"))
    owners = Random(f"{seed}/queues")
    owned = tuple(
        replace(
            arrival,
            query=replace(arrival.query, tenant=f"queue {owners.randrange(traffic.queues) + 1}"),
        )
        for arrival in timed
    )
    return world.setting(replace(workload, arrivals=owned))


def _query(
    query_id: str, size_bin: SizeBin, seed: int, world: World, *, is_single: bool
) -> tuple[Arrival, list[Table]]:
    rng = Random(f"{seed}/{query_id}")
    input_gb = rng.uniform(size_bin.least_gb, size_bin.most_gb)
    plans = SINGLE_JOBS if is_single else PLANS
    name = rng.choice(tuple(SINGLE_JOBS) if is_single else MIXED)
    # The bins count what a query reads, so the data set is larger where a query reads only a part.
    scale_gb = input_gb / input_share(plans[name])
    arrival, tables = build_query(query_id, plans[name], scale_gb, world, seed, name)
    return replace(arrival, size_bin=size_bin.name), tables


@lru_cache(maxsize=128)
def _alone_s(name: str, seed: int, size: float) -> dict[str, float]:
    """Times alone, which depend neither on arrivals nor on tenants."""
    return mix_setting(name, seed, size).alone_s(seed)


@lru_cache(maxsize=128)
def mix_run(
    name: str,
    seed: int,
    size: float,
    world: World = USUAL,
    traffic: Traffic = USUAL_TRAFFIC,
) -> dict[str, Summary]:
    """All schedulers on one workload; kept, since two figures show the same runs.

    There are slowdowns in the usual world only: times alone take as long to find as all else.
    """
    setting = mix_setting(name, seed, size, world, traffic)
    is_usual = world == USUAL and traffic.shapes == USUAL_TRAFFIC.shapes
    alone_s = _alone_s(name, seed, size) if is_usual else None
    return {
        scheduler: run_one(setting, profile, seed, alone_s)
        for scheduler, profile in SCHEDULERS.items()
    }


def mix_runs(options: RunOptions, name: str) -> dict[str, list[Summary]]:
    """All schedulers on a workload, seed by seed."""
    found: dict[str, list[Summary]] = {scheduler: [] for scheduler in SCHEDULERS}
    for seed in range(options.seeds):
        options.tell(f"{name}, seed {seed}")
        for scheduler, summary in mix_run(name, seed, options.size).items():
            found[scheduler].append(summary)
    return found

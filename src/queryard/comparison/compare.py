"""Run policies on the same workload."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from queryard.core.errors import InvalidProfile, InvalidRecord
from queryard.core.model import Node
from queryard.sim import Conditions
from queryard.workload import Mix, Workload
from queryard.workload.traces import Trace, Use

from .profiles import PORTFOLIO, Profile, choose_profiles, own_profiles, settle_tenants
from .result import Comparison, SeedRun
from .runs import as_recorded, ideals, run_policy, times_alone
from .settings import Settings, make_conditions
from .sources import USUAL_ESTIMATES, Source, find_source

DEFAULT_POLICIES = "fifo,fair,capacity,edf,srtf,s3,tls,tls-circular"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a comparison is: queries that have ended over all runs, of how many."""

    policy: str
    ended: int
    queries: int


OnProgress = Callable[[Progress], None]


def compare(
    workload: Workload | Trace | Path | str | None = None,
    *,
    generate: Mix | str | None = None,
    demo: bool = False,
    trace: Use | str | None = None,
    policies: str | Iterable[str] = DEFAULT_POLICIES,
    profiles: Mapping[str, Profile] | Path | str | None = None,
    nodes: Sequence[Node] | str | None = None,
    seeds: int | Iterable[int] = 0,
    estimates: str | None = None,
    slow_start: float = 1.0,
    by_tenant: bool = False,
    conditions: Conditions | Mapping[str, float] | None = None,
    on_progress: OnProgress | None = None,
) -> Comparison:
    """Run policies on the same workload in simulation, beside two ideals, and compare them.

    The workload is one of: a file (a workload or a trace), a `Workload` or `Trace` that was made
    already, `generate` (a text such as "queries=100,bins=bing"), or `demo`. `trace` says how a
    trace file is used ("load=0.7"). `nodes` are as in "16x12".

    `policies` are names, joined by commas or in a list; "all" is every built-in policy, and
    "portfolio" chooses among some. `profiles` are the caller's own policies: a TOML file, or tables
    by name. `estimates` is what policies know of task times: "oracle", "oracle:0.3", "observed"
    or a predictor. `conditions` are those of `queryard.sim.Conditions`, by name: {"noise": 0.1}.
    `by_tenant` shares the slots between tenants first. Several `seeds` draw, and run, everything
    once per seed; the table then has medians.

    >>> found = compare(generate="queries=12,bins=80:1-2/20:8", nodes="2x4", policies="fifo,srtf")
    >>> found.best("mean response")
    'srtf'
    >>> fifo, srtf = found.scores["fifo"], found.scores["srtf"]
    >>> srtf.mean_response_s < fifo.mean_response_s
    True
    >>> list(found.references)
    ['ideal PS', 'clairvoyant SRPT']
    """
    names = _names(policies)
    if not names:
        raise InvalidProfile("policies: name at least one, such as fair,tls")
    chosen = choose_profiles(names, own_profiles(profiles), (PORTFOLIO,))
    drawn = (seeds,) if isinstance(seeds, int) else tuple(seeds)
    if not drawn:
        raise InvalidRecord("seeds: give at least one, such as 0")
    # Before anything is read: a wrong setting is cheaper to find than a large trace.
    common = Settings(
        estimates or USUAL_ESTIMATES,
        drawn[0],
        slow_start,
        by_tenant,
        make_conditions(conditions, demo),
    )
    runs: list[SeedRun] = []
    for number, seed in enumerate(drawn):
        source = find_source(workload, generate, demo, nodes, seed, trace)
        settings = replace(common, seed=seed, estimates=estimates or source.usual_estimates)
        hears = _part_of(on_progress, number, len(drawn))
        runs.append(_run(source, chosen, settings, hears))
    return Comparison(runs)


def _names(given: str | Iterable[str]) -> list[str]:
    parts = [given] if isinstance(given, str) else given
    return [name.strip() for part in parts for name in part.split(",") if name.strip()]


def _run(
    source: Source,
    profiles: Mapping[str, Profile],
    settings: Settings,
    on_progress: OnProgress | None,
) -> SeedRun:
    """Every policy on the workload of one seed."""
    load = source.workload
    if settings.by_tenant:
        profiles = settle_tenants(profiles, load.tenants)
    alone_s = times_alone(load, settings)
    each, total = len(load.arrivals), len(load.arrivals) * len(profiles)

    def hearing(name: str, before: int) -> Callable[[int], None] | None:
        if on_progress is None:
            return None
        on_progress(Progress(name, before, total))
        return lambda ended: on_progress(Progress(name, before + min(ended, each), total))

    results = [
        run_policy(load, name, profile, settings, alone_s, hearing(name, number * each))
        for number, (name, profile) in enumerate(profiles.items())
    ]
    recorded = as_recorded(source.trace, alone_s) if source.trace is not None else []
    references = (*recorded, *ideals(load, alone_s))
    return SeedRun(source, settings, tuple(results), references)


def _part_of(on_progress: OnProgress | None, number: int, runs: int) -> OnProgress | None:
    """The progress of one seed as that of all."""
    if on_progress is None or runs == 1:
        return on_progress

    def hears(step: Progress) -> None:
        before = number * step.queries
        on_progress(replace(step, ended=before + step.ended, queries=step.queries * runs))

    return hears

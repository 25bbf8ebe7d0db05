"""The one place where the command line meets the simulator, the metrics and the figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from queryard.core.errors import InvalidProfile, InvalidRecord, unknown_name
from queryard.core.journal import Journal
from queryard.core.model import MAP, REDUCE, Kind, Tenant
from queryard.figures import (
    Choice,
    FigureRun,
    RecordedTimes,
    check_figure_path,
    save_figure,
    save_trace_figure,
)
from queryard.metrics import Summary, read_run, summarise
from queryard.policies import catalogue, for_tenants, load_profiles, resolve_profile
from queryard.portfolio import (
    Decision,
    PortfolioSettings,
    Schedule,
    Workers,
    by_themselves,
    parse_portfolio,
    schedule_of,
    simulate_portfolio,
)
from queryard.sim import Conditions, alone_times, simulate
from queryard.sim.estimates import estimate_source
from queryard.sim.references import IDEALS, demands_of
from queryard.workload import Workload
from queryard.workload.alone import capacity_slots
from queryard.workload.traces import Trace

from .scores import Nodes, Scores, nodes_of, scores_of_reference

ALL = "all"
RECORDED = "as recorded"
PORTFOLIO = "portfolio"
# S³'s cost of riders, a remote read a third slower, a cache that holds a few splits a node.
DEMO_CONDITIONS = {
    "noise": 0.1,
    "remote_penalty": 0.3,
    "memory_gain": 0.3,
    "memory_cache_bytes": 2e9,
    "task_start_s": 0.2,
    "rider_cost": 0.0283,
}
# From here on it pays to try a portfolio's candidates out in processes of their own.
MANY_TASKS = 20_000
Profile = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """What all runs of a comparison have in common."""

    estimates: str
    seed: int
    slow_start: float
    by_tenant: bool
    conditions: Conditions


def make_settings(
    *,
    estimates: str,
    seed: int,
    slow_start: float,
    by_tenant: bool,
    demo: bool,
    more: Sequence[str],
    **conditions: float | None,
) -> Settings:
    """Settings from options; `more` are further conditions as NAME=VALUE.

    What is not given is as in an ideal world, or, for the demo, as in a plausible one.
    """
    estimate_source(estimates)  # complains about a wrong name before anything is simulated
    given = {name: value for name, value in conditions.items() if value is not None}
    known = [field.name for field in fields(Conditions)]
    for pair in more:
        name, _, value = (part.strip() for part in pair.partition("="))
        if name not in known:
            raise InvalidRecord(f"--condition: {unknown_name('condition', name, known)}")
        try:
            given[name] = float(value)
        except ValueError as error:
            problem = f"--condition {pair}: expected a number, as in {name}=0.1"
            raise InvalidRecord(problem) from error
    usual = DEMO_CONDITIONS if demo else {}
    return Settings(estimates, seed, slow_start, by_tenant, Conditions(**{**usual, **given}))


@dataclass(frozen=True, slots=True)
class Result:
    """A policy's run and what it was like."""

    name: str
    profile: Profile
    summary: Summary
    journal: Journal
    tasks: int
    wall_s: float
    schedule: Schedule
    nodes: Nodes
    decisions: tuple[Decision, ...] = ()
    magnitudes: Mapping[str, float] = field(default_factory=dict)


def choose_profiles(
    names: Sequence[str], file: Path | None, others: Sequence[str] = ()
) -> dict[str, Profile]:
    """Profiles by name, in the order asked for; those of the user's file come first to mind.

    `all` stands for every built-in profile. If no profile of the file is named, all of them join. A
    portfolio brings its candidates. `others` are names that the caller knows besides.
    """
    own = load_profiles(file) if file else {}
    built_in = [info.name for info in catalogue()]
    chosen: dict[str, Profile] = {}
    for name in names:
        if name == ALL:
            chosen |= {known: resolve_profile(known) for known in built_in}
        elif name in own:
            chosen[name] = own[name]
        elif name in built_in:
            chosen[name] = resolve_profile(name)
        elif name.partition(":")[0] == PORTFOLIO and PORTFOLIO in others:
            name = name.rstrip(":")  # nothing after a colon is what is usual
            # Its candidates run by themselves, too: one of them is the best in hindsight.
            portfolio = parse_portfolio(name, own)
            chosen = {**by_themselves(name, own), **chosen, name: {PORTFOLIO: portfolio}}
        else:
            if name.partition(":")[0] == PORTFOLIO:
                raise InvalidProfile(
                    f"--policy {name}: a portfolio runs beside its candidates; "
                    f"write `queryard compare … --policy {name}`"
                )
            known = [*built_in, *own, *others, ALL]
            raise InvalidProfile(unknown_name("policy", name, known))
    if own.keys().isdisjoint(chosen):
        chosen |= own
    return chosen


def settle_tenants(
    profiles: Mapping[str, Profile], workload: Workload, settings: Settings
) -> Mapping[str, Profile]:
    """The profiles as they are, or inside the shares of the workload's tenants."""
    if not settings.by_tenant:
        return profiles
    return {name: _settled(profile, workload.tenants) for name, profile in profiles.items()}


def _settled(profile: Profile, tenants: Sequence[Tenant]) -> Profile:
    if PORTFOLIO not in profile:
        return for_tenants(profile, tenants)
    portfolio: PortfolioSettings = profile[PORTFOLIO]
    inside = {name: for_tenants(part, tenants) for name, part in portfolio.candidates.items()}
    return {PORTFOLIO: replace(portfolio, candidates=inside)}


def run_policy(
    workload: Workload,
    name: str,
    profile: Profile,
    settings: Settings,
    alone_s: Mapping[str, float],
    on_progress: Callable[[int], None] | None = None,
) -> Result:
    """Simulate one policy, or a portfolio; `on_progress` hears how many queries have ended."""
    decisions: tuple[Decision, ...] = ()
    magnitudes: Mapping[str, float] = {}
    given: dict[str, Any] = {
        "conditions": settings.conditions,
        "estimates": settings.estimates,
        "seed": settings.seed,
        "slow_start": settings.slow_start,
        "on_progress": on_progress,
    }
    if PORTFOLIO in profile:
        with nullcontext() if workload.tasks < MANY_TASKS else Workers() as workers:
            if workers is not None:
                given["trials"] = workers
            found = simulate_portfolio(workload, workload.nodes, profile[PORTFOLIO], **given)
        run, decisions, magnitudes = found.run, found.decisions, found.magnitudes
    else:
        run = simulate(workload, workload.nodes, profile, **given)
    rows = read_run(run.journal)
    return Result(
        name=name,
        profile=profile,
        summary=summarise(rows, alone_s=alone_s, size_bins=size_bins(workload)),
        journal=run.journal,
        tasks=run.tasks,
        wall_s=run.wall_s,
        schedule=schedule_of(rows),
        nodes=nodes_of(rows),
        decisions=decisions,
        magnitudes=magnitudes,
    )


def size_bins(workload: Workload) -> dict[str, str]:
    """The bin of every query that has one, from the bin with the least work a query up."""
    work_s: dict[str, list[float]] = {}
    for arrival in workload.arrivals:
        work_s.setdefault(arrival.size_bin, []).append(arrival.work_s)
    rank = {name: sum(works) / len(works) for name, works in work_s.items()}
    ranked = sorted(workload.arrivals, key=lambda arrival: rank[arrival.size_bin])
    return {arrival.query.id: arrival.size_bin for arrival in ranked if arrival.size_bin}


def times_alone(workload: Workload, settings: Settings) -> Mapping[str, float]:
    return alone_times(
        workload,
        workload.nodes,
        settings.conditions,
        slow_start=settings.slow_start,
        seed=settings.seed,
    )


@dataclass(frozen=True, slots=True)
class Ideal:
    """A reference on the same arrivals: the response of every query, and its scores."""

    scores: Scores
    responses_s: Mapping[str, float]


def ideals(workload: Workload, alone_s: Mapping[str, float]) -> list[Ideal]:
    slots = capacity_slots(workload.nodes)
    demands = demands_of(workload, alone_s)
    found = {name: ideal(demands, slots) for name, ideal in IDEALS.items()}
    return [
        Ideal(scores_of_reference(name, responses_s, workload, alone_s, slots), responses_s)
        for name, responses_s in found.items()
    ]


def as_recorded(trace: Trace, alone_s: Mapping[str, float]) -> list[Ideal]:
    """What the recorded responses were, where they are known."""
    responses_s = trace.responses_s
    if not responses_s:
        return []
    slots = capacity_slots(trace.workload.nodes)
    scores = scores_of_reference(RECORDED, responses_s, trace.workload, alone_s, slots)
    # It ran on the cluster of that day, which may be another.
    return [Ideal(replace(scores, utilisation=None), responses_s)]


def check_outputs(figures: Sequence[Path], journal: Path | None = None) -> None:
    """Complain about files that cannot be written before anything is simulated."""
    for file in figures:
        check_figure_path(str(file))
    for file in (*figures, *([journal] if journal else [])):
        if not file.absolute().parent.is_dir():
            raise InvalidRecord(f"{file}: there is no folder {str(file.parent)!r}; make it first")


def save_figures(
    files: Sequence[Path], title: str, results: Sequence[Result], references: Sequence[Ideal]
) -> None:
    if not files:
        return
    runs = [FigureRun(result.name, result.journal) for result in results]
    responses_s = {ideal.scores.name: ideal.responses_s for ideal in references}
    choices = {result.name: _choices(result) for result in results if PORTFOLIO in result.profile}
    for file in files:
        save_figure(str(file), runs, responses_s, title, choices)


def _choices(result: Result) -> list[Choice]:
    first_s = min((query.submit_s for query in result.schedule.queries), default=0.0)
    # What was in force until there was something to decide.
    choices = [Choice(first_s, d.before, {}) for d in result.decisions[:1]]
    return choices + [Choice(d.in_force_s, d.policy, d.scores) for d in result.decisions]


def save_trace_figures(files: Sequence[Path], trace: Trace) -> None:
    submits_s = [arrival.query.submit_s for arrival in trace.workload.arrivals]
    first_s = min(submits_s)
    kinds: tuple[Kind, ...] = (MAP, REDUCE)
    busy = {
        kind: [
            (task.start_s - first_s, task.start_s - first_s + task.seconds)
            for task in trace.tasks
            if task.kind == kind and task.start_s is not None
        ]
        for kind in kinds
    }
    spreads = {
        "responses": list(trace.responses_s.values()),
        **{f"{kind}s": [t.seconds for t in trace.tasks if t.kind == kind] for kind in kinds},
        "work of queries": [arrival.work_s for arrival in trace.workload.arrivals],
    }
    times = RecordedTimes(
        [submit_s - first_s for submit_s in submits_s],
        {kind: spans for kind, spans in busy.items() if spans},
        {name: values for name, values in spreads.items() if values},
    )
    for file in files:
        save_trace_figure(str(file), f"{trace.name} ({trace.format})", times)


def save_journal(file: Path, journal: Journal) -> None:
    with file.open("w", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in journal.to_lines())

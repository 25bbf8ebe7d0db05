"""One policy on one workload, simulated, and the references beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from queryard.core.journal import Journal
from queryard.metrics import Summary, read_run, summarise
from queryard.portfolio import (
    Decision,
    Schedule,
    Workers,
    schedule_of,
    simulate_portfolio,
)
from queryard.sim import alone_times, simulate
from queryard.sim.references import IDEALS, demands_of
from queryard.workload import Workload
from queryard.workload.alone import capacity_slots
from queryard.workload.traces import Trace

from .profiles import PORTFOLIO, Profile
from .scores import RECORDED, Nodes, Scores, nodes_of, scores_of_reference
from .settings import Settings

# From here on it pays to try a portfolio's candidates out in processes of their own.
MANY_TASKS = 20_000


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """A policy's run and what it was like: `summary` has every metric.

    `wall_s` is the time that the simulation took. `decisions` and `magnitudes` are a portfolio's.
    """

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


def run_policy(
    workload: Workload,
    name: str,
    profile: Profile,
    settings: Settings,
    alone_s: Mapping[str, float],
    on_progress: Callable[[int], None] | None = None,
) -> PolicyResult:
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
    return PolicyResult(
        name=name,
        profile=profile,
        summary=summarise(
            rows,
            alone_s=alone_s,
            size_bins=_size_bins(workload),
            work_s={arrival.query.id: arrival.work_s for arrival in workload.arrivals},
        ),
        journal=run.journal,
        tasks=run.tasks,
        wall_s=run.wall_s,
        schedule=schedule_of(rows),
        nodes=nodes_of(rows),
        decisions=decisions,
        magnitudes=magnitudes,
    )


def _size_bins(workload: Workload) -> dict[str, str]:
    """The bin of every query that has one, from the bin with the least work per query up."""
    work_s: dict[str, list[float]] = {}
    for arrival in workload.arrivals:
        work_s.setdefault(arrival.size_bin, []).append(arrival.work_s)
    rank = {name: sum(works) / len(works) for name, works in work_s.items()}
    ranked = sorted(workload.arrivals, key=lambda arrival: rank[arrival.size_bin])
    return {arrival.query.id: arrival.size_bin for arrival in ranked if arrival.size_bin}


def times_alone(workload: Workload, settings: Settings) -> Mapping[str, float]:
    """What every query takes by itself on the idle cluster."""
    return alone_times(
        workload,
        workload.nodes,
        settings.conditions,
        slow_start=settings.slow_start,
        seed=settings.seed,
    )


@dataclass(frozen=True, slots=True)
class Reference:
    """What no policy is, on the same arrivals: the response of every query, and its scores."""

    scores: Scores
    responses_s: Mapping[str, float]


def ideals(workload: Workload, alone_s: Mapping[str, float]) -> list[Reference]:
    slots = capacity_slots(workload.nodes)
    demands = demands_of(workload, alone_s)
    found = {name: ideal(demands, slots) for name, ideal in IDEALS.items()}
    return [
        Reference(scores_of_reference(name, responses_s, workload, alone_s, slots), responses_s)
        for name, responses_s in found.items()
    ]


def as_recorded(trace: Trace, alone_s: Mapping[str, float]) -> list[Reference]:
    """What the recorded responses were, where they are known."""
    responses_s = trace.responses_s
    if not responses_s:
        return []
    slots = capacity_slots(trace.workload.nodes)
    scores = scores_of_reference(RECORDED, responses_s, trace.workload, alone_s, slots)
    # It ran on the cluster of that day, which may be another.
    return [Reference(replace(scores, utilisation=None), responses_s)]


def save_figures(
    files: Sequence[Path | str],
    title: str,
    results: Sequence[PolicyResult],
    references: Sequence[Reference],
) -> None:
    """Draw runs side by side into every one of the files."""
    from queryard.figures import FigureRun, save_figure

    runs = [FigureRun(result.name, result.journal) for result in results]
    responses_s = {reference.scores.name: reference.responses_s for reference in references}
    choices = {result.name: _choices(result) for result in results if PORTFOLIO in result.profile}
    for file in files:
        save_figure(str(file), runs, responses_s, title, choices)


def _choices(result: PolicyResult) -> list[Any]:
    from queryard.figures import Choice

    first_s = min((query.submit_s for query in result.schedule.queries), default=0.0)
    # What was in force until there was something to decide.
    choices = [Choice(first_s, d.before, {}) for d in result.decisions[:1]]
    return choices + [Choice(d.in_force_s, d.policy, d.scores) for d in result.decisions]

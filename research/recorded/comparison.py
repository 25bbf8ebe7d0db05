"""Every main policy and the portfolio on one recorded workload, in numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from queryard.core.journal import Journal
from queryard.metrics import Summary, read_run, summarise
from queryard.policies import resolve_profile
from queryard.portfolio import (
    OBJECTIVES,
    Decision,
    PortfolioSettings,
    candidates_of,
    in_force,
    schedule_of,
    simulate_portfolio,
)
from queryard.sim.references import demands_of, processor_sharing, shortest_remaining_first
from queryard.workload.alone import alone_time_s, capacity_slots

from .workloads import Case

POLICIES = (
    *("fifo", "fair", "tls", "swrd", "srtf", "edf", "edls-sh", "edls-pr"),
    *("deadline-first", "marshal", "cost-of-delay"),
)
# Profiles that are not compared, and why.
LEFT_OUT: Mapping[tuple[str, ...], str] = {
    ("tumm", "h-tumm", "best-static", "static", "static-1-3", "static-3-1"): "a stage of Spark or "
    "Decima has tasks of one kind, and how many of Facebook's are reduces was made up from bytes",
    (
        "s3",
        "s3-pays",
        "mrshare",
        "tls-circular",
        "tls-circular-htumm",
    ): "no trace says which blocks of which table a task read; only Facebook's of 2010 names paths",
    ("locf",): "nor where blocks lay, so that it would be fifo",
    ("capacity", "hierarchical", "tenant-tls"): "a single tenant asks everything: one queue, in "
    "which single jobs are served as by fifo, and nothing to divide by tenant",
    ("relaqs", "online-tls", "online-rounds"): "no query is answered online",
    ("priority",): "no query has a priority",
    (
        *("query-fair", "largest-slowdown", "hlfet", "dfa", "lodfa", "tls-dfa"),
        "edls-sh-borrow",
    ): "for the sake of time: plainer relatives of those that are compared",
}
# What the portfolios choose from; the first is in force until there is something to choose.
CANDIDATES = (
    "cost-of-delay",
    *(name for name in POLICIES if name not in ("fifo", "cost-of-delay")),
)
CHOSEN_FROM = (
    f"{', '.join(CANDIDATES)}; in the portfolio all keep slots that long tasks may not take, as "
    f"{CANDIDATES[0]} does, unless another one is its first"
)
# There is a portfolio for each goal, and all runs are judged by each.
GOALS = ("response", "mixed")
# The goal for which another portfolio begins with another candidate.
OTHER_GOAL = "mixed"


def portfolio_name(goal: str, first: str | None = None) -> str:
    return f"portfolio ({goal})" + (f", {first} first" if first else "")


@dataclass(frozen=True, slots=True)
class Ran:
    """A policy on a workload; scores by goal, lower is better."""

    summary: Summary
    scores: Mapping[str, float]
    wall_s: float
    launches: int
    decisions: tuple[Decision, ...] = ()
    usage: Mapping[str, float] | None = None

    @property
    def mean_s(self) -> float:
        return self.summary.response_s.mean or 0.0

    @property
    def missed(self) -> float:
        """The share of deadlines that were missed."""
        due = self.summary.deadlines
        return due.missed / due.queries if due.queries else 0.0


@dataclass(frozen=True, slots=True)
class Compared:
    """All that ran on a case, and what ideals would have reached: mean response in seconds."""

    case: Case
    runs: Mapping[str, Ran]
    ideals: Mapping[str, float]

    @property
    def fixed(self) -> dict[str, Ran]:
        return {name: self.runs[name] for name in POLICIES if name in self.runs}

    def hindsight(self, goal: str) -> tuple[str, float]:
        """The fixed policy that was best, which is not known beforehand."""
        best = min(self.fixed, key=lambda name: (self.fixed[name].scores[goal], name))
        return best, self.fixed[best].scores[goal]


def left_out() -> str:
    """A sentence on the profiles that are not compared."""
    parts = (f"{', '.join(names)} ({why})" for names, why in LEFT_OUT.items())
    return f"Left out of the comparison: {'; '.join(parts)}"


def compare(case: Case, tell: Callable[[str], None]) -> Compared:
    """Run all policies and a portfolio for every goal."""
    setting = case.setting
    alone_s = times_alone_s(case)
    runs: dict[str, Ran] = {}
    for name in POLICIES:
        tell(f"{case.title}: {name}")
        began = time.perf_counter()
        run = setting.simulate(resolve_profile(name), case.seed)
        wall_s = time.perf_counter() - began
        runs[name] = _ran(case, run.journal, alone_s, wall_s, run.tasks)
    portfolios: list[tuple[str, str | None]] = [(goal, None) for goal in GOALS]
    if case.other_first is not None:
        portfolios.append((OTHER_GOAL, case.other_first))
    for goal, first in portfolios:
        names = dict.fromkeys((first, *CANDIDATES) if first else CANDIDATES)
        settings = PortfolioSettings(
            candidates_of(tuple(names)), OBJECTIVES[goal], share=case.share
        )
        name = portfolio_name(goal, first)
        tell(f"{case.title}: {name}")
        began = time.perf_counter()
        found = simulate_portfolio(
            setting.workload, setting.nodes, settings, **setting.given(case.seed)
        )
        wall_s = time.perf_counter() - began
        setting.check_ended(found.run, name)
        journal = found.run.journal
        ran = _ran(case, journal, alone_s, wall_s, found.run.tasks, found.decisions)
        runs[name] = ran if found.decisions else replace(ran, usage={next(iter(names)): 1.0})
    slots = capacity_slots(setting.nodes)
    demands = demands_of(setting.workload, alone_s)
    ideals = {}
    for name, rule in (("PS", processor_sharing), ("SRPT", shortest_remaining_first)):
        responses = rule(demands, slots)
        ideals[name] = sum(responses.values()) / len(responses)
    return Compared(case, runs, ideals)


def times_alone_s(case: Case) -> dict[str, float]:
    """What every query takes alone: by arithmetic, which is exact where tasks are all alike."""
    setting = case.setting
    if not case.is_alike:
        return setting.alone_s(case.seed)
    slots = capacity_slots(setting.nodes)
    return {arrival.query.id: alone_time_s(arrival, slots) for arrival in setting.workload.arrivals}


def _ran(
    case: Case,
    journal: Journal,
    alone_s: Mapping[str, float],
    wall_s: float,
    launches: int,
    decisions: tuple[Decision, ...] = (),
) -> Ran:
    bins = {arrival.query.id: arrival.size_bin for arrival in case.setting.workload.arrivals}
    run = read_run(journal)
    schedule = schedule_of(run)
    scores = {goal: OBJECTIVES[goal].score(OBJECTIVES[goal].vector(schedule)) for goal in GOALS}
    summary = summarise(run, alone_s=alone_s, size_bins=bins)
    usage = in_force(decisions, run.closed_s, run.first_submit_s) if decisions else None
    return Ran(summary, scores, wall_s, launches, decisions, usage)

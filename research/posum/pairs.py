"""Pairs of an allocation and a provisioning rule, and what they are worth with their lease cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from queryard.policies import resolve_profile
from queryard.portfolio import METRICS, Objective
from queryard.portfolio.settings import PROVISIONINGS
from research.outcome import Interval

from .schedulers import Played, gap

HOUR_S = 3600.0
# Half and twice the published cluster.
LEAST_NODES, MOST_NODES = 4, 16
MAX_SLOWDOWN = 0.2
# Eight nodes for an hour then weigh as much as either part of the published score, about 400.
COST_WEIGHT = 50.0

Runs = Mapping[str, Sequence[Played]]


def pairs(allocations: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """Each allocation with each provisioning, between the same bounds.

    >>> list(pairs(("srtf",)))
    ['srtf +x', 'srtf -x', 'srtf dlx', 'srtf maxbsd']
    """
    found: dict[str, Mapping[str, Any]] = {}
    for allocation in allocations:
        for name in PROVISIONINGS:
            part = {"name": name, "minimum": LEAST_NODES, "maximum": MOST_NODES}
            if name == "maxbsd":
                part["max_slowdown"] = MAX_SLOWDOWN
            found[f"{allocation} {name}"] = {**resolve_profile(allocation), "provisioning": part}
    return found


def objective(weight: float) -> Objective:
    """The mixed objective and what a begun node-hour weighs beside it."""
    return Objective("with cost", {"slowdown": 100.0, "violation": 1.0, "cost": weight})


def scored(run: Played, weight: float = COST_WEIGHT) -> float:
    judged = objective(weight)
    return judged.score(judged.vector(run.schedule))


def begun_hours(run: Played) -> float:
    return METRICS["cost"](run.schedule)


def node_hours(run: Played) -> float:
    return math.fsum(run.schedule.leases_s) / HOUR_S


def best_pair(runs: Runs, names: Iterable[str], weight: float = COST_WEIGHT) -> str:
    """The pair that was best in hindsight; ties by the order of names."""
    return min(names, key=lambda name: sum(scored(run, weight) for run in runs[name]))


def against(runs: Runs, ours: str, theirs: str) -> Interval | None:
    """How far one is above another, over the runs that both have."""
    count = min(len(runs[ours]), len(runs[theirs]))
    first, second = ([scored(run) for run in runs[name][:count]] for name in (ours, theirs))
    return gap(first, second)

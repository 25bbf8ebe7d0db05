"""What a schedule is worth: metrics over the ends of queries, and their weights. Lower is better.

POSUM's vector is (violation, slowdown, cost): Σ_D max(0, r - d)² / |D| over queries with deadlines,
Σ_B r / max(e, MinE) over queries without one, and the cost of nodes by whole units of lease. r is
the response, d the response until the deadline, e the sum of task times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from queryard.core.errors import InvalidProfile, unknown_name

MIN_E_S = 1.0
LEASE_UNIT_S = 3600.0


class QueryEnd(NamedTuple):
    """A query and when it ends, or is expected to."""

    id: str
    submit_s: float
    end_s: float
    task_s: float
    deadline_s: float | None = None

    @property
    def response_s(self) -> float:
        return self.end_s - self.submit_s


@dataclass(frozen=True, slots=True)
class Schedule:
    """The ends of some queries, and for how long each node was leased."""

    queries: tuple[QueryEnd, ...]
    leases_s: tuple[float, ...] = ()


def violation(schedule: Schedule) -> float:
    """The mean square of how late queries with a deadline are, in s².

    >>> late = QueryEnd("a", 0.0, 13.0, 1.0, deadline_s=10.0)
    >>> violation(Schedule((late, late._replace(end_s=8.0))))
    4.5
    """
    due = [query for query in schedule.queries if query.deadline_s is not None]
    late = (max(0.0, query.end_s - (query.deadline_s or 0.0)) ** 2 for query in due)
    return math.fsum(late) / len(due) if due else 0.0


def slowdown(schedule: Schedule) -> float:
    """The sum of the bounded slowdowns of queries without a deadline.

    >>> slowdown(Schedule((QueryEnd("a", 5.0, 15.0, 40.0), QueryEnd("b", 0.0, 3.0, 0.1))))
    3.25
    """
    return math.fsum(
        query.response_s / max(query.task_s, MIN_E_S)
        for query in schedule.queries
        if query.deadline_s is None
    )


def cost(schedule: Schedule) -> float:
    """Units of lease that were begun."""
    # A hair less, so that the rounding of floats does not begin another.
    return float(sum(math.ceil(lease_s / LEASE_UNIT_S - 1e-9) for lease_s in schedule.leases_s))


def makespan(schedule: Schedule) -> float:
    """From the first submission to the last end."""
    if not schedule.queries:
        return 0.0
    first_s = min(query.submit_s for query in schedule.queries)
    return max(query.end_s for query in schedule.queries) - first_s


def response(schedule: Schedule) -> float:
    """The mean response."""
    if not schedule.queries:
        return 0.0
    return math.fsum(query.response_s for query in schedule.queries) / len(schedule.queries)


Metric = Callable[[Schedule], float]
METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "violation": violation,
        "slowdown": slowdown,
        "cost": cost,
        "makespan": makespan,
        "response": response,
    }
)

# Before weights given by the user: each metric is divided by its usual magnitude.
BALANCED = "balanced+"


@dataclass(frozen=True, slots=True)
class Objective:
    """Metrics and what one unit of each weighs.

    With `scaled`, each metric is divided by its usual magnitude, which the portfolio measures as it
    decides: a weight then says how much a metric counts, whatever its unit. `own` metrics are added
    to those of `METRICS`, or replace them.

    >>> def longest(schedule):
    ...     return max((query.response_s for query in schedule.queries), default=0.0)
    >>> objective = Objective("longest", {"longest": 1.0}, own={"longest": longest})
    >>> objective.vector(Schedule((QueryEnd("a", 5.0, 15.0, 40.0),)))
    {'longest': 10.0}
    """

    name: str
    weights: Mapping[str, float]
    scaled: bool = False
    own: Mapping[str, Metric] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, weight in self.weights.items():
            if name not in self.metrics:
                raise InvalidProfile(f"objective: {unknown_name('metric', name, self.metrics)}")
            if not 0 <= weight < math.inf:
                problem = f"objective: the weight of {name} must be at least 0, got {weight!r}"
                raise InvalidProfile(problem)
        if not any(self.weights.values()):
            raise InvalidProfile("objective: no metric has a weight above 0")

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """All metrics that may have a weight."""
        return {**METRICS, **self.own}

    def vector(self, schedule: Schedule) -> dict[str, float]:
        """Every metric with a weight."""
        metrics = self.metrics
        return {name: metrics[name](schedule) for name, weight in self.weights.items() if weight}

    def score(self, vector: Mapping[str, float], usual: Mapping[str, float] | None = None) -> float:
        """The weighted sum; `usual` has the magnitudes of metrics, for a scaled objective."""
        total = 0.0
        for name, value in vector.items():
            magnitude = (usual or {}).get(name, 1.0) if self.scaled else 1.0
            total += self.weights[name] * value / (magnitude or 1.0)
        return total


# POSUM §5.4.3: batch, deadline and mixed.
OBJECTIVES: Mapping[str, Objective] = MappingProxyType(
    {
        objective.name: objective
        for objective in (
            Objective("mixed", {"slowdown": 100.0, "violation": 1.0}),
            Objective("batch", {"slowdown": 1000.0, "violation": 1e-6}),
            Objective("deadline", {"slowdown": 1e-6, "violation": 1000.0}),
            # An hour of one node weighs as much as one query that takes as long as its work.
            Objective("priced", {"slowdown": 100.0, "violation": 1.0, "cost": 100.0}),
            Objective("response", {"response": 1.0}),
            Objective("makespan", {"makespan": 1.0}),
            Objective(
                "balanced",
                {"violation": 1.0, "slowdown": 1.0, "response": 1.0},
                scaled=True,
            ),
        )
    }
)


def objective_of(given: str | Mapping[str, float]) -> Objective:
    """By its name, or by weights of metrics.

    >>> objective_of("mixed").weights["slowdown"], objective_of({"makespan": 2}).name
    (100.0, 'makespan 2')
    >>> dict(objective_of("violation=2+makespan=0.1").weights)
    {'violation': 2.0, 'makespan': 0.1}
    >>> objective_of("balanced+violation=2+makespan=1").scaled
    True
    """
    scaled = False
    if isinstance(given, str) and "=" in given:
        scaled = given.startswith(BALANCED)
        given = _weights(given.removeprefix(BALANCED))
    if isinstance(given, Mapping):
        name = ", ".join(f"{name} {w:g}" for name, w in given.items())
        return Objective(f"balanced {name}" if scaled else name, dict(given), scaled)
    if given not in OBJECTIVES:
        raise InvalidProfile(unknown_name("objective", given, OBJECTIVES))
    return OBJECTIVES[given]


def _weights(text: str) -> dict[str, float]:
    """From `METRIC=WEIGHT+METRIC=WEIGHT`."""
    weights = {}
    for part in text.split("+"):
        name, _, weight = part.partition("=")
        try:
            weights[name.strip()] = float(weight)
        except ValueError as error:
            problem = f"objective {text!r}: write METRIC=WEIGHT, joined by +, got {part!r}"
            raise InvalidProfile(problem) from error
    return weights

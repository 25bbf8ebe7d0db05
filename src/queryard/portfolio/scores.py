"""What a schedule is worth: metrics over the ends of queries, and their weights. Lower is better.

POSUM's vector is (violation, slowdown, cost): Σ_D max(0, r - d)² / |D| over queries with deadlines,
Σ_B r / max(e, MinE) over queries without one, and the cost of nodes by whole units of lease. r is
the response, d the response until the deadline, e the sum of task times.

Objectives in plain words ("small queries fast") are over metrics that are means, so that they do
not grow with the queue, and that know queries of less than a second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from queryard.core.errors import InvalidProfile, unknown_name

MIN_E_S = 1.0
# What a query is taken to need at least, where queries of a moment count.
MIN_WORK_S = 0.1
LEASE_UNIT_S = 3600.0


class QueryEnd(NamedTuple):
    """A query and when it ends, or is expected to."""

    id: str
    submit_s: float
    end_s: float
    task_s: float
    deadline_s: float | None = None
    tenant: str = ""
    # Of an online query: from when on, how unsure its answer is, below 1.
    answers: tuple[tuple[float, float], ...] = ()

    @property
    def response_s(self) -> float:
        return self.end_s - self.submit_s

    @property
    def stretch(self) -> float:
        """The response over the work, with which a query of a moment counts as one of 0.1 s."""
        return self.response_s / max(self.task_s, MIN_WORK_S)

    @property
    def unsure_s(self) -> float:
        """The response, of which time with an answer counts by how unsure that is.

        >>> QueryEnd("a", 0.0, 10.0, 1.0, answers=((2.0, 0.5), (6.0, 0.25))).unsure_s
        5.0
        """
        total_s, at_s, unsure = 0.0, self.submit_s, 1.0
        for time_s, then in self.answers:
            if time_s >= self.end_s:
                break
            total_s += unsure * (time_s - at_s)
            at_s, unsure = time_s, then
        return total_s + unsure * (self.end_s - at_s)

    def ending(self, end_s: float) -> QueryEnd:
        """The same query with another end; its answers came as much earlier or later.

        >>> QueryEnd("a", 0.0, 10.0, 1.0, answers=((2.0, 0.5),)).ending(20.0).answers
        ((4.0, 0.5),)
        """
        by = (end_s - self.submit_s) / self.response_s if self.response_s > 0 else 1.0
        moved = tuple((self.submit_s + by * (at_s - self.submit_s), u) for at_s, u in self.answers)
        return self._replace(end_s=end_s, answers=moved)

    @property
    def late_s(self) -> float:
        """How long after its deadline it ends."""
        return 0.0 if self.deadline_s is None else max(0.0, self.end_s - self.deadline_s)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The ends of some queries, and for how long each node was leased."""

    queries: tuple[QueryEnd, ...]
    leases_s: tuple[float, ...] = ()

    def ended_by(self, time_s: float) -> Schedule:
        """The same queries, if each had ended by a time: what is lost then cannot be helped."""
        over = (q._replace(end_s=max(q.submit_s, min(q.end_s, time_s))) for q in self.queries)
        return Schedule(tuple(over))


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


def stretch(schedule: Schedule) -> float:
    """The mean of response over work, of all queries: small ones that wait weigh most.

    >>> stretch(Schedule((QueryEnd("a", 5.0, 15.0, 40.0), QueryEnd("b", 0.0, 3.0, 0.01))))
    15.125
    """
    return _mean([query.stretch for query in schedule.queries])


def tenant_stretch(schedule: Schedule) -> float:
    """The geometric mean over tenants of the mean stretch of each (proportional fairness).

    A tenant counts the same with many queries as with few. Half the stretch for one is worth twice
    the stretch for another.

    >>> one = QueryEnd("a", 0.0, 1.0, 1.0, tenant="web")
    >>> tenant_stretch(Schedule((one, one, one, QueryEnd("b", 0.0, 4.0, 1.0, tenant="lab"))))
    2.0
    """
    by_tenant: dict[str, list[float]] = {}
    for query in schedule.queries:
        by_tenant.setdefault(query.tenant, []).append(query.stretch)
    means = [_mean(found) for found in by_tenant.values()]
    if not means or min(means) <= 0:
        return 0.0
    return math.exp(_mean([math.log(mean) for mean in means]))


def missed(schedule: Schedule) -> float:
    """The share of queries with a deadline that end after it."""
    due = [query for query in schedule.queries if query.deadline_s is not None]
    return _mean([float(query.late_s > 0) for query in due])


def lateness(schedule: Schedule) -> float:
    """How late queries with a deadline are, in the mean, as a share of the time they had.

    >>> late = QueryEnd("a", 0.0, 15.0, 1.0, deadline_s=10.0)
    >>> lateness(Schedule((late, late._replace(end_s=8.0))))
    0.25
    """
    return _mean(_late_shares(schedule))


def _late_shares(schedule: Schedule) -> list[float]:
    """How late each query with a deadline is, as a share of the time it had."""
    return [
        query.late_s / max(query.deadline_s - query.submit_s, MIN_WORK_S)
        for query in schedule.queries
        if query.deadline_s is not None
    ]


def overdue(schedule: Schedule) -> float:
    """What queries with a deadline cost, in the mean: 1 in time, 3 if late by a tenth of the time
    they had, and 1 more for each further tenth.

    It does not jump at the deadline, so that a small error of estimates changes little.

    >>> late = QueryEnd("a", 0.0, 12.0, 1.0, deadline_s=10.0)
    >>> overdue(Schedule((late, late._replace(end_s=8.0))))
    2.5
    """
    tenths = [10.0 * share for share in _late_shares(schedule)]
    return 1.0 + _mean([late + min(1.0, late) for late in tenths]) if tenths else 0.0


def waited(schedule: Schedule) -> float:
    """The share of its response that a query waits, in the mean: from 0 to 1.

    As `stretch`, but bounded: it cannot outweigh what it stands beside.

    >>> waited(Schedule((QueryEnd("a", 0.0, 4.0, 1.0), QueryEnd("b", 0.0, 1.0, 2.0))))
    0.375
    """
    return _mean([max(0.0, 1.0 - 1.0 / max(query.stretch, 1e-9)) for query in schedule.queries])


def unsure(schedule: Schedule) -> float:
    """As `stretch`, but an online query counts by how unsure its answer is.

    It counts in full until the first answer, then half, and less as the error falls.

    >>> exact = QueryEnd("a", 0.0, 10.0, 1.0)
    >>> unsure(Schedule((exact, exact._replace(answers=((2.0, 0.5),)))))
    8.0
    """
    return _mean([query.unsure_s / max(query.task_s, MIN_WORK_S) for query in schedule.queries])


def leased(schedule: Schedule) -> float:
    """For how long nodes were leased, all together, in seconds."""
    return math.fsum(schedule.leases_s)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


Metric = Callable[[Schedule], float]
METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "violation": violation,
        "slowdown": slowdown,
        "cost": cost,
        "makespan": makespan,
        "response": response,
        "stretch": stretch,
        "tenant_stretch": tenant_stretch,
        "missed": missed,
        "lateness": lateness,
        "overdue": overdue,
        "waited": waited,
        "unsure": unsure,
        "leased": leased,
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


# The objective that is about the number of slots.
LOW_COST = "low cost"

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
            # In plain words.
            Objective("small queries fast", {"stretch": 1.0}),
            # The second part is bounded: it decides between policies that meet the same deadlines.
            Objective("deadlines first", {"overdue": 1.0, "waited": 0.1}),
            Objective("early answers", {"unsure": 1.0}),
            Objective("fair to tenants", {"tenant_stretch": 1.0}),
            # Queries per second: as soon as all are done; in the mean, if that is the same.
            Objective("throughput", {"makespan": 1.0, "response": 0.1}),
            # A slot-second is worth as much as one second of the mean response.
            Objective(LOW_COST, {"leased": 1.0, "response": 1.0}),
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

"""What to expect of statements that have a plan: work, its interval, memory, and useful slots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from queryard.core.speedup import Speedup

from .factors import USUAL, Factors
from .prices import Features, Part, Rates, bounded, doubt_of, operator_s, total_of
from .work import LEAST_S, QUANTILES, Prediction

# Memory that a query takes whatever it does, and how much more than the rows it holds.
BASE_BYTES = 16 << 20
HELD = 1.5
# Half of all errors lie within so many standard deviations.
HALF = QUANTILES.inv_cdf(0.75)


@dataclass(frozen=True, slots=True)
class Planned:
    """Core-seconds by part, the doubt in them, bytes held in memory, and how parallel it is.

    `planning_s` is the part of the start that was measured, and is another one each time.
    """

    parts: Mapping[Part, float]
    doubt: float
    memory_bytes: float
    speedup: Speedup
    planning_s: float = 0.0

    @property
    def work_s(self) -> float:
        """Core-seconds, before anything is learnt of this place."""
        return bounded(sum(self.parts.values()))

    @property
    def compared_s(self) -> float:
        """The same without what differs although plans are alike, to compare queries by."""
        return bounded(sum(self.parts.values()) - self.planning_s)


def planned(features: Sequence[Features], rates: Rates) -> Planned:
    """What some statements do, one after another."""
    held = max((sum(one.held_bytes for one in plan.operators) for plan in features), default=0.0)
    return Planned(
        total_of(features, rates),
        max((doubt_of(plan) for plan in features), default=0.0),
        BASE_BYTES + HELD * held,
        speedup_of(features, rates),
        sum(plan.planning_s for plan in features),
    )


def speedup_of(features: Sequence[Features], rates: Rates) -> Speedup:
    """The serial share of some plans: the start, and operators over less than two row groups.

    The most slots of use is what operators can use on average, by their work.
    """
    works, used = 0.0, 0.0
    serial = sum(total_of(features, rates)[part] for part in ("start", "answer"))
    total = serial
    for plan in features:
        for operator in plan.operators:
            work_s = operator_s(operator, rates)
            total += work_s
            lanes = min(operator.lanes, 1024.0)
            if lanes < 2:
                serial += work_s * (2 - lanes)
            works += work_s / lanes
            used += work_s
    most = used / works if works > 0 else 1.0
    return Speedup(min(1.0, serial / total) if total > 0 else 1.0, max(1.0, most))


def predicted(plan: Planned, factors: Factors[Part]) -> Prediction:
    """A prediction by plans, with what was learnt from ended queries."""
    work_s = bounded(factors.work(plan.parts))
    variance = USUAL.noise + factors.variance(plan.parts) + plan.doubt
    spread = math.exp(HALF * math.sqrt(variance))
    memory = math.ceil(plan.memory_bytes)
    part = max(plan.parts, key=lambda one: plan.parts[one])
    return Prediction(max(LEAST_S, work_s), memory, "plan", spread, plan.speedup, part)

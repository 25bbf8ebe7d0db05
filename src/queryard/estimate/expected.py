"""What is expected of a query and of each of its operators, with the interval it lies within.

Errors of sizes and of times are factors, so an interval is a factor to both sides: the logarithm of
what comes is taken as normal around that of what is expected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .factors import USUAL, Factors
from .planned import BASE_BYTES, HELD
from .prices import (
    START_S,
    Features,
    OperatorFeatures,
    Part,
    Rates,
    by_part,
)
from .work import QUANTILES, SAFETY, Prediction

SHARE = 0.9
"""Of all that is expected, so much lies within its interval."""

# The squared error of the logarithm of memory, where its rows are known: how DuckDB lays rows out
# is not in a plan. A judgement, not a fit.
HELD_DOUBT = math.log(1.5) ** 2
# No interval is wider to either side: beyond, it says no more than "not known".
MOST_FACTOR = 1e6


@dataclass(frozen=True, slots=True)
class Expected:
    """A figure, and the interval in which it is expected to be in 90 of 100 cases."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> Expected:
        """All of it, multiplied."""
        return Expected(self.value * factor, self.low * factor, self.high * factor)

    def off_by(self, actual: float) -> float:
        """The factor between what was expected and what came, 1 at best.

        >>> Expected(10.0, 5.0, 20.0).off_by(40.0), Expected(10.0, 5.0, 20.0).off_by(5.0)
        (4.0, 2.0)
        """
        least = 1e-9
        ratio = max(actual, least) / max(self.value, least)
        return max(ratio, 1 / ratio)

    def holds(self, actual: float) -> bool:
        """Whether what came is within the interval."""
        return self.low <= actual <= self.high


def around(value: float, variance: float, least: float = 0.0) -> Expected:
    """An interval, given the expected squared error of the logarithm.

    >>> around(100.0, 0.0)
    Expected(value=100.0, low=100.0, high=100.0)
    >>> [round(end) for end in (around(100.0, 0.25).low, around(100.0, 0.25).high)]
    [44, 228]
    """
    reach = QUANTILES.inv_cdf((1 + SHARE) / 2) * math.sqrt(max(0.0, variance))
    factor = math.exp(min(reach, math.log(MOST_FACTOR)))
    return Expected(value, max(min(value, least), value / factor), value * factor)


def expected_work(prediction: Prediction) -> Expected:
    """The core-seconds of a query."""
    return Expected(prediction.work_s, *prediction.interval(SHARE))


class ExpectedOperator(NamedTuple):
    """What is expected of one operator; `seconds` are core-seconds, `memory` what it holds."""

    rows: Expected
    bytes: Expected
    seconds: Expected
    memory: Expected


def expected_operators(
    features: Features, rates: Rates, factors: Factors[Part], work_s: float
) -> list[ExpectedOperator]:
    """What is expected of the operators of a plan, if all of it takes so many core-seconds.

    Each has its share of the work; what is left is the start of the query.
    """
    priced = factors.work(by_part(features, rates))
    scale = work_s / priced if priced > 0 else 1.0
    found = []
    for operator in features.operators:
        parts = _parts(operator, rates)
        variance = USUAL.noise + factors.variance(parts) + operator.doubt
        held = HELD * operator.held_bytes
        found.append(
            ExpectedOperator(
                around(operator.rows, operator.doubt, 1.0),
                around(operator.bytes, operator.doubt),
                around(scale * factors.work(parts), variance),
                around(held, operator.doubt + HELD_DOUBT),
            )
        )
    return found


def expected_memory(prediction: Prediction, features: Sequence[Features]) -> Expected | None:
    """The memory of a query: what its template took before, else what its operators hold."""
    if prediction.by == "template" and prediction.memory_bytes is not None:
        seen = prediction.memory_bytes / SAFETY
        factor = prediction.interval(SHARE)[1] / prediction.work_s
        return Expected(seen, seen / factor, max(seen * factor, float(prediction.memory_bytes)))
    held = [operator for plan in features for operator in plan.operators]
    if not held:
        return None
    total = sum(operator.held_bytes for operator in held)
    shares = (operator.held_bytes * math.sqrt(operator.doubt) for operator in held)
    doubt = (sum(shares) / total) ** 2 if total > 0 else 0.0
    return around(BASE_BYTES + HELD * total, doubt + HELD_DOUBT)


def _parts(operator: OperatorFeatures, rates: Rates) -> dict[Part, float]:
    """Core-seconds of an operator by what it does."""
    parts = by_part(Features(operator.amounts, operators=(operator,)), rates)
    parts["start"] -= START_S * rates.computing
    return parts

"""Student's t: how many standard errors an interval reaches."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_STEPS = 200
_CLOSE = 1e-12


@lru_cache(maxsize=4096)
def student_t(confidence: float, freedom: int) -> float:
    """The two-sided quantile.

    >>> [round(student_t(0.95, n), 3) for n in (1, 4, 9, 99)]
    [12.706, 2.776, 2.262, 1.984]
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
    if freedom < 1:
        raise ValueError(f"degrees of freedom must be 1 or more, got {freedom!r}")
    outside = 1 - confidence
    low, high = 0.0, NormalDist().inv_cdf(1 - outside / 2)
    while _tails(high, freedom) > outside:
        low, high = high, high * 2
    while high - low > _CLOSE * high:
        middle = (low + high) / 2
        if _tails(middle, freedom) > outside:
            low = middle
        else:
            high = middle
    return high


def _tails(t: float, freedom: int) -> float:
    """The probability beyond -t and t."""
    return _incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    log_front += a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) / a / _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, from its far end."""
    value = 1.0
    for step in range(_STEPS, 0, -1):
        m = step // 2
        if step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        value = 1 + term / value
    return value

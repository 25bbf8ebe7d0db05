"""How much of the first answer's error is left, seen from a later answer."""

from __future__ import annotations

import math
from collections.abc import Iterable

# The mean distance of a normal value from its mean, in standard deviations.
_MEAN = math.sqrt(2 / math.pi)


def error_left(values: Iterable[tuple[float, float, float]], read: int, fraction: float) -> float:
    """The error that is expected now over that of the first answer, from 0 to 1.

    Each value of the answer has its first estimate, its newest, and the variance of estimates from
    one part; `read` parts were read, which are a `fraction` of the rows. Parts are a random sample:
    so the newest estimate is about normal around the exact value. The error of the first answer is
    known the better, the more was read: it is as far from the newest as it is, and that is off a
    little. Errors are relative, and their mean over the values counts.

    >>> round(error_left([(110.0, 100.0, 25.0)], 5, 0.2), 2)
    0.16
    >>> error_left([(110.0, 100.0, 25.0)], 100, 1.0), error_left([(100.0, 100.0, 25.0)], 1, 0.01)
    (0.0, 1.0)
    """
    if read < 2:
        return 1.0
    now = first = 0.0
    for value, newest, variance in values:
        sd = math.sqrt(variance * max(0.0, 1.0 - fraction) / read)
        by = abs(newest) or 1.0
        now += _MEAN * sd / by
        first += _distance(value - newest, sd) / by
    return min(1.0, now / first) if first > 0 else 0.0


def _distance(mean: float, sd: float) -> float:
    """The mean distance of a normal value from 0.

    >>> round(_distance(0.0, 1.0), 4), _distance(-3.0, 0.0)
    (0.7979, 3.0)
    """
    if sd <= 0:
        return abs(mean)
    far = mean / sd
    return sd * _MEAN * math.exp(-far * far / 2) + mean * math.erf(far / math.sqrt(2))

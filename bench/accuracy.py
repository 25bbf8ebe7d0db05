"""Errors of repeated runs, beside how good predictions are."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from queryard.estimate.accuracy import Accuracy, accuracy, ranks, share_below, spearman

__all__ = [
    "Accuracy",
    "accuracy",
    "ranks",
    "relative_error",
    "repeat_error",
    "share_below",
    "spearman",
]


def repeat_error(times: Sequence[float]) -> float:
    """How far a single run is from the median of all, on average, relative to it.

    >>> repeat_error([1.0, 1.2, 0.9])
    0.1
    """
    middle = statistics.median(times)
    return round(statistics.fmean(abs(time - middle) for time in times) / middle, 6)


def relative_error(predicted: Sequence[float], actual: Sequence[float]) -> float:
    """The mean of |predicted - actual| / actual; not a number without any."""
    errors = [abs(p - a) / a for p, a in zip(predicted, actual, strict=True)]
    return statistics.fmean(errors) if errors else math.nan

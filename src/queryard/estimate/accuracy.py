"""How good predictions were: rank correlation and factors of error."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Accuracy(NamedTuple):
    """Of many predictions. A factor is the larger of p/a and a/p; `bias` is the median p/a."""

    correlation: float
    median: float
    ninth_decile: float
    worst: float
    bias: float


def accuracy(predicted: Sequence[float], actual: Sequence[float]) -> Accuracy:
    """How good predictions of positive amounts were.

    >>> accuracy([1.0, 2.0, 6.0], [1.0, 1.0, 2.0])._asdict()["worst"]
    3.0
    """
    over = [p / a for p, a in zip(predicted, actual, strict=True)]
    factors = [max(one, 1 / one) for one in over]
    return Accuracy(
        spearman(predicted, actual),
        statistics.median(factors),
        share_below(factors, 0.9),
        max(factors),
        statistics.median(over),
    )


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """The rank correlation; not a number where all values of a side are alike.

    >>> spearman([1, 2, 3], [10, 20, 900]), spearman([1, 2, 3], [3, 2, 1])
    (1.0, -1.0)
    """
    if len(set(one)) < 2 or len(set(other)) < 2:
        return math.nan
    return statistics.correlation(ranks(one), ranks(other))


def ranks(values: Sequence[float]) -> list[float]:
    """The place of each in order; equal values share the mean of their places.

    >>> ranks([5.0, 1.0, 5.0])
    [1.5, 0.0, 1.5]
    """
    places: dict[float, list[int]] = {}
    for place, value in enumerate(sorted(values)):
        places.setdefault(value, []).append(place)
    return [statistics.fmean(places[value]) for value in values]


def share_below(values: Sequence[float], share: float) -> float:
    """The least of the values that at least such a share of them do not exceed.

    >>> share_below([4, 1, 3, 2], 0.5), share_below([4, 1, 3, 2], 0.9)
    (2, 4)
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]

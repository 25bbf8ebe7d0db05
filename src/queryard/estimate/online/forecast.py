"""How the error goes on, when reading may stop, and what may hide in what is not read."""

from __future__ import annotations

import math

from .intervals import FEW_FILES, unseen_share
from .sample import Sample


def error_after(error: float, fraction: float, later: float) -> float:
    """The relative error after a larger share of the data, by that of now: sqrt((1-f) / f).

    >>> round(error_after(0.05, 0.1, 0.5), 4)
    0.0167
    """
    _check(fraction, "fraction")
    _check(later, "later")
    if later >= 1 or fraction >= 1:
        return 0.0
    return error * math.sqrt((1 - later) / later * fraction / (1 - fraction))


def fraction_for(error: float, fraction: float, wanted: float) -> float:
    """The share of the data after which the error is as small as wanted.

    >>> round(fraction_for(0.05, 0.1, 0.0167), 2), fraction_for(0.05, 0.1, 0.0)
    (0.5, 1.0)
    """
    _check(fraction, "fraction")
    if error <= wanted or fraction >= 1:
        return fraction
    if wanted <= 0 or math.isinf(error):
        return 1.0
    k = error * error * fraction / (1 - fraction)
    return k / (k + wanted * wanted)


def may_stop(error: float | None, wanted: float, sample: Sample) -> bool:
    """Whether the interval is narrow enough, and rests on enough files to be believed.

    >>> [may_stop(0.005, 0.01, Sample(n, 100, float(n), 100.0)) for n in (4, 5)]
    [False, True]
    """
    if sample.complete:
        return True
    return error is not None and error <= wanted and sample.files >= FEW_FILES


def rows_hidden(sample: Sample, confidence: float = 0.95) -> float:
    """How many rows a group may have of which none was read.

    >>> round(rows_hidden(Sample(10, 100, 10_000.0, 100_000.0)))
    27
    """
    return unseen_share(sample, confidence) * sample.rows_total


def _check(fraction: float, name: str) -> None:
    if not 0 < fraction <= 1:
        raise ValueError(f"{name} must be above 0 and at most 1, got {fraction!r}")

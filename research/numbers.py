"""Numbers as tables and findings show them, and how far a mean of few runs may be off."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

TIMES = "{:.2f}x".format
ROUNDED = "{:,.0f}".format
HUNDREDTHS = "{:.2f}".format

# Student's t by two-sided confidence in percent, for 1, 2, … degrees of freedom; the last value is
# that of the normal distribution and serves for all larger samples.
_STUDENT: Mapping[int, tuple[float, ...]] = {
    90: (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.645),
    95: (
        *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
        *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 1.960),
    ),
}


def margin(values: Sequence[float], confidence: int) -> float:
    """Half the confidence interval of a mean, at 90 or 95 %; 0 for a single value.

    >>> round(margin([640.0, 700.0, 760.0, 824.0], 90)), round(margin([1.0, 2.0, 3.0], 95), 1)
    (93, 2.5)
    """
    if len(values) < 2:
        return 0.0
    table = _STUDENT[confidence]
    t = table[min(len(values) - 2, len(table) - 1)]
    return t * statistics.stdev(values) / math.sqrt(len(values))


def as_percent(change: float) -> str:
    """A change, with its sign.

    >>> as_percent(-0.4394), as_percent(0.2)
    ('-43.9 %', '+20.0 %')
    """
    return f"{100 * change:+.1f} %"


def as_share(share: float) -> str:
    """A part of a whole.

    >>> as_share(0.654)
    '65 %'
    """
    return f"{100 * share:.0f} %"


def short(value: float) -> str:
    """Three digits or so.

    >>> short(1234.5), short(2.345), short(-0.0)
    ('1,234', '2.35', '0')
    """
    # What is added makes 0 of -0.
    return ROUNDED(value) if abs(value) >= 1000 else f"{value + 0.0:.3g}"

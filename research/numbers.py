"""Numbers as tables and findings show them, and how far a mean of few runs may be off."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from queryard.estimate.online import student_t

TIMES = "{:.2f}x".format
ROUNDED = "{:,.0f}".format
HUNDREDTHS = "{:.2f}".format


def margin(values: Sequence[float], confidence: int) -> float:
    """Half the confidence interval of a mean, at so many per cent; 0 for a single value.

    >>> round(margin([640.0, 700.0, 760.0, 824.0], 90)), round(margin([1.0, 2.0, 3.0], 95), 1)
    (93, 2.5)
    """
    if len(values) < 2:
        return 0.0
    t = student_t(confidence / 100, len(values) - 1)
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

"""How errors of online answers really fell: medians of the true error by the share that was read.

TPC-H (SF 5, lineitem in 100 parts, 200 runs each): the mean over groups and columns, in files of a
shuffled copy and in blocks of neighbouring rows. Made tables (2 million rows, 100 parts, 2,000
runs): a sum over the tenth of the rows that pass a filter, of normal values, of values with a heavy
tail (Pareto, index 1.5), of values that drift with the place of the row, in blocks; and over
blocks of which only a window of 5 % has any row that passes.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping

# (share read, error), by share.
Points = tuple[tuple[float, float], ...]

_SHARES = (0.01, 0.02, 0.05, 0.1, 0.25)
_MORE_SHARES = (*_SHARES, 0.5, 0.75)


def _percent(*errors: float) -> Points:
    return tuple((share, error / 100) for share, error in zip(_SHARES, errors, strict=True))


def _made(*errors: float) -> Points:
    return tuple(zip(_MORE_SHARES, errors, strict=True))


ERROR_CURVES: Mapping[str, Points] = {
    "q1": _percent(0.56, 0.38, 0.24, 0.17, 0.10),
    "q1 blocks": _percent(0.55, 0.47, 0.26, 0.19, 0.11),
    "q3": _percent(2.0, 1.3, 0.80, 0.58, 0.32),
    "q3 blocks": _percent(3.4, 2.6, 1.7, 1.1, 0.65),
    "q5": _percent(11.3, 7.6, 4.7, 3.3, 1.8),
    "q5 blocks": _percent(10.9, 8.5, 5.0, 3.7, 2.0),
    "q6": _percent(1.0, 0.80, 0.48, 0.32, 0.19),
    "q6 blocks": _percent(1.1, 0.81, 0.52, 0.34, 0.21),
    "q12": _percent(3.7, 2.7, 1.7, 1.1, 0.67),
    "q12 blocks": _percent(4.0, 3.1, 2.0, 1.4, 0.76),
    "q14": _percent(2.6, 1.9, 1.2, 0.84, 0.45),
    "q14 blocks": _percent(3.3, 2.6, 1.4, 1.0, 0.58),
    "q19": _percent(32.0, 25.0, 16.0, 12.0, 5.9),
    "q19 blocks": _percent(34.0, 26.0, 14.0, 9.7, 5.0),
    "normal": _made(0.0146, 0.0099, 0.0062, 0.0045, 0.0026, 0.0015, 0.0008),
    "heavy tail": _made(0.0610, 0.0468, 0.0301, 0.0245, 0.0153, 0.0090, 0.0050),
    "drifting blocks": _made(0.241, 0.138, 0.0889, 0.0594, 0.0344, 0.0203, 0.0114),
    "window blocks": _made(1.0, 1.0, 1.0, 1.0, 0.599, 0.200, 0.200),
}


def error_at(points: Points, share: float) -> float:
    """The error after a share of the data, between and beyond the measured ones.

    What is interpolated, over the logarithm of the share, is the factor by which the error differs
    from sqrt((1 - f) / f), the law of independent rows.

    >>> curve = ERROR_CURVES["q6"]
    >>> round(error_at(curve, 0.05), 4), round(error_at(curve, 0.5), 5), error_at(curve, 1.0)
    (0.0048, 0.0011, 0.0)
    """
    if share >= 1.0:
        return 0.0
    place = bisect_right(points, (share, math.inf))
    low, high = points[max(0, place - 1)], points[min(len(points) - 1, place)]
    if share == low[0]:
        return low[1]
    factor = math.log(max(low[1], 1e-12) / _law(low[0]))
    if high[0] > low[0]:
        other = math.log(max(high[1], 1e-12) / _law(high[0]))
        part = math.log(share / low[0]) / math.log(high[0] / low[0])
        factor += (other - factor) * min(1.0, max(0.0, part))
    error = math.exp(factor) * _law(share)
    # Between two measured errors it never rises, whatever the law does.
    return min(low[1], max(high[1], error)) if low[0] < share < high[0] else error


def _law(share: float) -> float:
    return math.sqrt((1.0 - share) / share)

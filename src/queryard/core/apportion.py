"""Whole slots from shares of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

# So that a quota meant to be a whole number is not rounded down below it.
ROUNDING = 1e-9


def apportion(quotas: Sequence[float]) -> list[int]:
    """Whole numbers that add up to the sum of the quotas, by the largest remainder.

    Every quota is rounded down; what is left over goes, one each, to the quotas from which most was
    cut, the earlier of equal ones first. A sum that is no whole number is rounded down.

    >>> apportion([2.5, 2.5, 2.5, 2.5]), apportion([2.8, 1.2]), apportion([3.5, 1.5])
    ([3, 3, 2, 2], [3, 1], [4, 1])
    >>> apportion([2.8, 0.4])
    [3, 0]
    """
    whole = [math.floor(quota + ROUNDING) for quota in quotas]
    over = math.floor(math.fsum(quotas) + ROUNDING) - sum(whole)
    by_remainder = sorted(range(len(whole)), key=lambda i: (round(whole[i] - quotas[i], 9), i))
    for index in by_remainder[: max(0, over)]:
        whole[index] += 1
    return whole

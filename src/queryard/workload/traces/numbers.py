"""Numbers of traces, which were 64 bits wide where they were written.

JSON has infinite ones and ones of any length, and neither is a time or a size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

LARGEST = 2**63 - 1


def whole(data: Mapping[str, Any], key: str) -> int:
    """The whole number of a key that must be there.

    >>> whole({"Timestamp": 1500}, "Timestamp")
    1500
    """
    try:
        number = int(data[key])
    except OverflowError:
        number = LARGEST + 1
    if abs(number) > LARGEST:
        raise ValueError(f"{key} is larger than 64 bits can hold")
    return number


def amount(data: Mapping[str, Any], key: str) -> float:
    """A number of bytes or the like; 0 where there is none.

    >>> amount({"Bytes Read": 20}, "Bytes Read"), amount({}, "Bytes Read")
    (20.0, 0.0)
    """
    number = data.get(key) or 0
    if not math.isfinite(number) or not 0 <= number <= LARGEST:
        raise ValueError(f"{key} must be a number from 0 to 2^63, got {number!s:.40}")
    return float(number)

"""Checks of the settings of parts; `compose` adds where the wrong value stands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from queryard.core.errors import unknown_name

Word = TypeVar("Word", bound=str)


def above_zero(name: str, value: object) -> float:
    """A finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{name} must be a number above 0, got {value!r}")
    return value


def at_least(name: str, value: object, least: float) -> float:
    """A finite number of at least `least`."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not least <= value < math.inf
    ):
        raise ValueError(f"{name} must be a number of at least {least:g}, got {value!r}")
    return value


def share(name: str, value: object, below: float | None = None) -> float:
    """A number between 0 and 1, or from 0 to below another."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"{name} must be a number between 0 and {below or 1:.3g}, got {value!r}")
    if below is not None and value >= below:
        raise ValueError(f"{name} must be below {below:.3g}, got {value!r}")
    return value


def whole(name: str, value: object, least: int) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return value


def one_of(name: str, value: Word, valid: Sequence[Word]) -> Word:
    """One of some words."""
    if value not in valid:
        raise ValueError(unknown_name(name, str(value), valid))
    return value

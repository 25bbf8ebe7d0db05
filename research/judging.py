"""What is said of a number of ours beside a printed one."""

from __future__ import annotations

from .outcome import Interval

TIMES = "{:.2f}x".format
CHANCE = "may be chance: the interval reaches to the other side"
SMALLER = "less than half of what was printed"
LARGER = "more than twice what was printed"
# Sizes that differ by more than this factor are worth a remark.
FACTOR = 2.0


def verdict(is_so: bool, ours: Interval, *bounds: float) -> bool | None:
    """Whether it is so; None where a bound of the claim lies in the interval: chance decides.

    >>> verdict(True, Interval(0.9, 0.8, 1.1, 5), 1.0), verdict(True, Interval(3.0, 2.0, 4.0, 5), 1)
    (None, True)
    """
    return None if ours.reaches(*bounds) else is_so


def same_side(printed: float, ours: Interval, neutral: float = 0.0) -> bool | None:
    """Whether ours is on the printed side of what would be no difference."""
    return verdict((ours.mean < neutral) == (printed < neutral), ours, neutral)


def remark(printed: float, ours: Interval, neutral: float = 0.0) -> str:
    """What a reader should know beside a direction that agrees or not."""
    if ours.reaches(neutral):
        return CHANCE
    if (ours.mean < neutral) != (printed < neutral):
        return ""
    size, printed_size = abs(ours.mean - neutral), abs(printed - neutral)
    if size * FACTOR < printed_size:
        return SMALLER
    return LARGER if size > FACTOR * printed_size else ""

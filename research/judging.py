"""The verdict on a number of ours beside a printed one: one rule for all papers.

A result *agrees* if its direction is the printed one and its size is within a factor of `FACTOR`
of the printed size. A size is the distance from what would be no difference: 0 of a change, 1 of a
ratio. Where the paper gives a size in words, `SLIGHTLY`, `FAR` or a bound of the experiment stands
for it; where it gives a direction only, the direction alone is judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .outcome import Finding, Interval, Verdict

CHANCE = "may be chance: the interval reaches to the other side"
# How far a size may be from the printed one to agree.
FACTOR = 1.5
# Sizes in words, as (least, most) distance from no difference.
SLIGHTLY = (0.0, 0.2)
FAR = (0.5, math.inf)

Sizes = tuple[float, float]


def whether(is_so: bool) -> Verdict:
    """On a claim that is either true or not."""
    return Verdict.AGREES if is_so else Verdict.DIFFERS


def target(is_reached: bool) -> Verdict:
    """On a goal that was set here, not by a paper."""
    return Verdict.REACHED if is_reached else Verdict.MISSED


def direction(is_so: bool, ours: Interval, *bounds: float) -> Verdict | None:
    """On a claim without a size; None where a bound of it lies in the interval: chance decides.

    >>> direction(True, Interval(0.9, 0.8, 1.1, 5), 1.0)
    >>> direction(True, Interval(3.0, 2.0, 4.0, 5), 1.0).value
    'agrees'
    """
    return None if ours.reaches(*bounds) else whether(is_so)


def around(size: float) -> Sizes:
    """The sizes that agree with a printed one."""
    return size / FACTOR, size * FACTOR


def with_size(found: Verdict | None, size: float, sizes: Sizes) -> Verdict | None:
    """A verdict on a direction, corrected by a size that is not among those that agree."""
    least, most = sizes
    if found is Verdict.AGREES and not least <= size <= most:
        return Verdict.OTHER_SIZE
    return found


def judge(printed: float, ours: Interval, neutral: float = 0.0) -> Verdict | None:
    """On a printed number: its direction from `neutral`, and its size.

    >>> judge(3.8, Interval(1.02, 1.01, 1.03, 5), neutral=1.0).value
    'same direction, other size'
    """
    same_side = (ours.mean < neutral) == (printed < neutral)
    found = direction(same_side, ours, neutral)
    return with_size(found, abs(ours.mean - neutral), around(abs(printed - neutral)))


def remark(printed: float, ours: Interval, neutral: float = 0.0) -> str:
    """What a reader should know beside a verdict: chance, or by how much the size differs."""
    if ours.reaches(neutral):
        return CHANCE
    if (ours.mean < neutral) != (printed < neutral):
        return ""
    return times_printed(abs(ours.mean - neutral), abs(printed - neutral))


def times_printed(size: float, printed: float) -> str:
    """By how much a size differs from the printed one, if it does not agree.

    >>> times_printed(0.02, 2.8), times_printed(0.2, 0.19)
    ('0.0071 times the printed size', '')
    """
    least, most = around(printed)
    return "" if least <= size <= most else f"{size / printed:.2g} times the printed size"


def beside(
    what: str,
    printed: float,
    ours: Interval,
    write: Callable[[float], str],
    neutral: float = 0.0,
) -> Finding:
    """A printed number and ours, with the verdict and the remark."""
    return Finding(
        what,
        write(printed),
        ours.text(write),
        judge(printed, ours, neutral),
        remark(printed, ours, neutral),
    )

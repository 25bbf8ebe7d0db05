"""How findings are worded."""

from __future__ import annotations

from ..outcome import Interval

TIMES = "{:.2f}x".format
CHANCE = "may be chance: the interval reaches to the other side"
SMALLER = "less than half of what was printed"


def remark(printed: float, ours: Interval, neutral: float = 0.0) -> str:
    """What a reader should know beside a direction that agrees or not."""
    if ours.seeds > 1 and ours.low <= neutral <= ours.high:
        return CHANCE
    same_side = (ours.mean < neutral) == (printed < neutral)
    if same_side and abs(ours.mean - neutral) < abs(printed - neutral) / 2:
        return SMALLER
    return ""

"""Slots by kind: a lane for maps, one for reduces, and divisible work in both."""

from __future__ import annotations

from queryard.core.parts import SlotSplit

MAPS, REDUCES = 0, 1
ONLY_MAPS = (MAPS,)
ONLY_REDUCES = (REDUCES,)
BOTH_MAPS_FIRST = (MAPS, REDUCES)
BOTH_REDUCES_FIRST = (REDUCES, MAPS)


class SplitByKind(SlotSplit):
    """Whether a free slot serves maps or reduces."""

    lanes = 2
    map_bits = 1 << MAPS
    reduce_bits = 1 << REDUCES
    lease_bits = map_bits | reduce_bits

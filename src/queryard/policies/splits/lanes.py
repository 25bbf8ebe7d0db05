"""The lanes of a split by kind, and the answers `serve` can give."""

from __future__ import annotations

MAPS, REDUCES = 0, 1
ONLY_MAPS = (MAPS,)
ONLY_REDUCES = (REDUCES,)
BOTH_MAPS_FIRST = (MAPS, REDUCES)
BOTH_REDUCES_FIRST = (REDUCES, MAPS)

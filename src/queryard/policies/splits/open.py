"""Slots without a kind."""

from __future__ import annotations

from queryard.core.parts import SlotSplit


class Open(SlotSplit):
    """Any slot runs anything; of one job, maps before reduces."""

    name = "open"
    citation = "YARN containers (POSUM §2)"

"""Segments of tables read once for many queries, and what was parsed kept for later ones."""

from .store import SegmentStore
from .text import Stop

__all__ = ["SegmentStore", "Stop"]

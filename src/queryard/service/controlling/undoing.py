"""Which changes can be undone, and why others cannot."""

from __future__ import annotations

from ..problems import Conflict, UnknownName
from .overlay import Overlay
from .record import FILE, RESET, Change, Record


def undoable(number: int, record: Record, overlay: Overlay) -> Change:
    """The change of a number; raises if there is none, or if it cannot be undone."""
    change = record.find(number)
    if change is None:
        raise UnknownName(f"unknown change {number}; GET /v1/controls lists all")
    if change.undone_by is not None:
        raise Conflict(f"change {number} was undone already, by change {change.undone_by}")
    if change.undoes is not None:
        raise Conflict(
            f"change {number} undid change {change.undoes}; make that change again instead"
        )
    if change.what == RESET:
        raise Conflict(
            f"change {number} cannot be undone: what was learnt before a reset is kept until the "
            "next one only"
        )
    if not change.settings or change.what == FILE:
        raise Conflict(f"change {number} cannot be undone: {change.text}")
    above = overlay.above(number)
    if above is not None:
        found = record.find(above)
        by = "" if found is None else f" (by {found.by}: {found.text})"
        raise Conflict(
            f"change {number} cannot be undone: change {above}{by} came later; undo that first"
        )
    if not overlay.on_top(number):
        raise Conflict(f"change {number} holds no more: the settings have changed since")
    return change

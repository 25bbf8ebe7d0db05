"""Where work has failed that may succeed elsewhere."""

from __future__ import annotations

from typing import NamedTuple

# For so long after a failure work waits for another place; then it may run where it failed. Every
# other place may be busy with what cannot end, such as reduces that wait for this very work.
AVOIDED_S = 30.0


class FailedAt(NamedTuple):
    """The nodes at which a task has failed, or the hosts at which divisible work has.

    Others are preferred until then.
    """

    places: tuple[str, ...]
    until_s: float


def failed_at(before: FailedAt | None, place: str, now: float) -> FailedAt:
    """What is known after one more failure."""
    known = () if before is None else before.places
    return FailedAt((*known, place) if place not in known else known, now + AVOIDED_S)

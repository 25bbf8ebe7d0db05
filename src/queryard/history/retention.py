"""How much of a history is kept."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import HistoryError


@dataclass(frozen=True, slots=True)
class Retention:
    """How much is kept: sessions of the last `days`, and no more than about `max_bytes`.

    What the queries of a template took is kept beyond that (see `tidying.py`).
    """

    days: float = 30.0
    max_bytes: int = 1_000_000_000

    def __post_init__(self) -> None:
        for name, value in (("days", self.days), ("max_bytes", self.max_bytes)):
            if not value > 0:
                raise HistoryError(f"retention: {name} must be a number above 0, got {value!r}")

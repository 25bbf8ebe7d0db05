"""What a user wants of an online query."""

from __future__ import annotations

from dataclasses import dataclass

from queryard.core.errors import QueryardError


@dataclass(frozen=True, slots=True)
class OnlineWish:
    """When to stop, and how often to answer.

    A query stops once every interval is within `stop_at` of its value, at this `confidence`, or
    after `within_s`; without both it goes on to the exact answer. `columns` are those by which its
    error and its progress are measured, all estimated ones if none is named.
    """

    stop_at: float | None = None
    confidence: float = 0.95
    every_s: float = 0.5
    within_s: float | None = None
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.stop_at is not None and not (_is_number(self.stop_at) and 0 < self.stop_at < 1):
            raise QueryardError(
                f"stop_at: must be a relative error between 0 and 1, as 0.01, got {self.stop_at!r}"
            )
        if not (_is_number(self.confidence) and 0.5 <= self.confidence < 1):
            raise QueryardError(
                f"confidence: must be at least 0.5 and below 1, as 0.95, got {self.confidence!r}"
            )
        for name in self.columns:
            told: object = name
            if not isinstance(told, str):
                raise QueryardError(f"columns: must be names of columns, got {told!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

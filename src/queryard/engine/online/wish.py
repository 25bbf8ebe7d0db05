"""What a user wants of an online query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from queryard.core.errors import QueryardError
from queryard.results.errors import QueryTimedOut


@dataclass(frozen=True, slots=True)
class OnlineWish:
    """When to stop, and how often to answer.

    A query stops once every interval is within `stop_at` of its value, at this `confidence`, or
    after `within_s`; without both it goes on to the exact answer.

    Its error and its progress are measured by the `columns` and the `groups` that are named, all if
    none is. A group is a value, or a tuple with one per group column. `measure` makes a number of
    the rows that count (a table of Arrow's): progress is how far that moves.
    """

    stop_at: float | None = None
    confidence: float = 0.95
    every_s: float = 0.5
    within_s: float | None = None
    columns: tuple[str, ...] = ()
    groups: tuple[Any, ...] = ()
    measure: Callable[[Any], float] | None = None

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
        for group in self.groups:
            values = group if isinstance(group, tuple) else (group,)
            if any(isinstance(value, list | tuple | dict | set) for value in values):
                raise QueryardError(
                    "groups: must be values of the group column, or tuples with a value per group "
                    f"column, got {group!r}"
                )
        if self.measure is not None and not callable(self.measure):
            raise QueryardError(f"measure: must be a function of the rows, got {self.measure!r}")

    def no_answer(self, reason: str) -> QueryTimedOut:
        """The error of a query that runs exactly, for a reason, and has taken too long."""
        why = reason.removeprefix("runs exactly: ")
        return QueryTimedOut(
            f"no answer within {self.within_s:g} s: the query runs exactly, as {why}; give it more "
            "time, or leave out within"
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)

"""Limits on waiting queries, of the whole session and of single tenants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from queryard.core.errors import QueryardError, unknown_name

from ..amounts import as_bytes, as_seconds

FIELDS = ("waiting", "wait", "memory")


class Refused(QueryardError):
    """A query that was not admitted, with the limit, and when to try again.

    `retry_after_s` is None where waiting does not help.
    """

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class AlreadyRan(QueryardError):
    """A statement with side effects that has run under its idempotency key.

    It is not run again. `query` is the query that has run it; what it returned is not kept.
    """

    def __init__(self, message: str, query: str) -> None:
        super().__init__(message)
        self.query = query


class MayHaveRun(QueryardError):
    """A statement with side effects that was begun under its idempotency key, with an unknown end.

    It is not run again. `query` is the query that has begun it.
    """

    def __init__(self, message: str, query: str) -> None:
        super().__init__(message)
        self.query = query


def came_with_another(key: str) -> QueryardError:
    """The error of an idempotency key that came with another statement before."""
    return QueryardError(
        f"idempotency_key {key!r}: came with another statement or other parameters before; use a "
        "key of its own for each statement"
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on waiting queries, on the expected wait, and on the memory of one query."""

    waiting: int | None = None
    wait_s: float | None = None
    memory_bytes: int | None = None

    def check(self, owner: str, wait_s: float, memory_bytes: int) -> None:
        """Raise `Refused` if a query exceeds a limit, with when to try again."""
        if self.memory_bytes is not None and memory_bytes > self.memory_bytes:
            raise Refused(
                f"{owner}: the query would reserve {memory_bytes / 1e6:,.0f} MB, and the limit is "
                f"{self.memory_bytes / 1e6:,.0f} MB; ask for less with memory="
            )
        if self.waiting == 0:
            raise Refused(f"{owner}: the limit of waiting queries is 0, so every query is refused")
        if self.wait_s is not None and wait_s > self.wait_s:
            over_s = wait_s - self.wait_s
            raise Refused(
                f"{owner}: a wait of about {_seconds(wait_s)} is to be expected, and the limit is "
                f"{_seconds(self.wait_s)}; try again in about {_seconds(over_s)}",
                over_s,
            )

    def refuse_waiting(self, owner: str, waiting: int, next_s: float) -> None:
        """Refuse a query because too many wait; `next_s` is when one of them will start."""
        queries = "1 query is" if waiting == 1 else f"{waiting} queries are"
        raise Refused(
            f"{owner}: {queries} waiting, and the limit is {self.waiting}; "
            f"room for another is expected in about {_seconds(next_s)}",
            next_s,
        )


def read_limits(given: object, where: str) -> Limits:
    """Limits from a table, as TOML or a caller gives it.

    >>> read_limits({"waiting": 100, "wait": "5 min"}, "limits")
    Limits(waiting=100, wait_s=300.0, memory_bytes=None)
    """
    if isinstance(given, Limits):
        return given
    if not isinstance(given, Mapping):
        raise QueryardError(f"{where}: must be a table such as {{waiting = 100}}, got {given!r}")
    for key in given:
        if key not in FIELDS:
            raise QueryardError(f"{where}: {unknown_name('limit', str(key), FIELDS)}")
    waiting: Any = given.get("waiting")
    if waiting is not None and (
        isinstance(waiting, bool) or not isinstance(waiting, int) or waiting < 0
    ):
        raise QueryardError(f"{where}.waiting: must be a whole number, at least 0, got {waiting!r}")
    wait, memory = given.get("wait"), given.get("memory")
    return Limits(
        waiting,
        None if wait is None else as_seconds(wait, f"{where}.wait"),
        None if memory is None else as_bytes(memory, f"{where}.memory"),
    )


def _seconds(seconds: float) -> str:
    """A rough time.

    >>> _seconds(0.2), _seconds(12.3), _seconds(300)
    ('0.2 s', '12 s', '5 min')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"

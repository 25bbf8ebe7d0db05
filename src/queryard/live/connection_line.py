"""The line of queries that need the session's own connection, where one runs at a time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from .asked import Asked
from .record import Record


class _Turn(NamedTuple):
    record: Record
    asked: Asked


class ConnectionLine:
    """Everything here happens under the lock of its owner.

    `start` begins a query and says whether it holds the connection from then on; `concerns` says
    whether what a query leaves behind may matter to a later one.
    """

    def __init__(
        self,
        lock: threading.RLock,
        start: Callable[[Record, Asked], bool],
        concerns: Callable[[Asked, Asked], bool],
    ) -> None:
        self._start = start
        self._concerns = concerns
        self._turns: deque[_Turn] = deque()
        self._at_turn: _Turn | None = None
        self._turn_over = threading.Condition(lock)
        # Who wants to change the session's instance between two statements.
        self._changes = 0
        self._closed = False

    def concerns(self, asked: Asked) -> bool:
        """Whether a statement in line may leave something behind that a query would see."""
        return any(self._concerns(turn.asked, asked) for turn in self._all())

    @property
    def due_s(self) -> float:
        """Core-seconds of all in line."""
        return sum(turn.record.expected_s for turn in self._all())

    def _all(self) -> list[_Turn]:
        """Who is at its turn, and who comes after."""
        return [*([self._at_turn] if self._at_turn is not None else []), *self._turns]

    def join(self, record: Record, asked: Asked) -> None:
        self._turns.append(_Turn(record, asked))
        self._next()

    def left(self, record: Record) -> None:
        """A query has ended; if it held the connection, the next one has it."""
        if self._at_turn is not None and self._at_turn.record is record:
            self._at_turn = None
            self._turn_over.notify_all()
            self._next()

    def _next(self) -> None:
        """Start queries in line until one of them holds the connection."""
        while self._at_turn is None and self._turns and not self._changes:
            turn = self._turns.popleft()
            if self._start(turn.record, turn.asked):
                self._at_turn = turn

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Wait until no statement has the connection, and let none have it meanwhile."""
        with self._turn_over:
            self._changes += 1
            try:
                self._turn_over.wait_for(lambda: self._at_turn is None or self._closed)
                yield
            finally:
                self._changes -= 1
                self._next()

    def close(self) -> None:
        self._closed = True
        self._turn_over.notify_all()

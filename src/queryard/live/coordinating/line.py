"""The queue for a client's own connection, where one query runs at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import NamedTuple

from .entry import Entry


class Turn(NamedTuple):
    """A queued query, or a caller (`token`) that wants the connection for itself."""

    entry: Entry | None
    token: Hashable = None


class Line:
    """Entries in order of arrival (FIFO), and the one that holds the connection."""

    def __init__(self) -> None:
        self._turns: deque[Turn] = deque()
        self.at_turn: Turn | None = None

    def join(self, turn: Turn) -> None:
        self._turns.append(turn)

    def next(self) -> Turn | None:
        """The next entry, if the connection is free."""
        return self._turns.popleft() if self.at_turn is None and self._turns else None

    def concerns(self, later: Entry) -> bool:
        """Whether a queued query may have side effects that a later one would see."""
        return any(
            turn.entry.client.concerns(turn.entry.request, later.request)
            for turn in self._all()
            if turn.entry is not None
        )

    @property
    def due_s(self) -> float:
        """Core-seconds of all queued queries."""
        return sum(turn.entry.expected_s for turn in self._all() if turn.entry is not None)

    def leave(self, turn: Turn) -> bool:
        """Remove an entry; whether it held the connection."""
        if self.at_turn == turn:
            self.at_turn = None
            return True
        if turn in self._turns:
            self._turns.remove(turn)
        return False

    @property
    def empty(self) -> bool:
        return self.at_turn is None and not self._turns

    def _all(self) -> list[Turn]:
        return [*([self.at_turn] if self.at_turn is not None else []), *self._turns]

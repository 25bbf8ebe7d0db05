"""What rows on their way are charged to, where many readers share a machine."""

from __future__ import annotations

from typing import Protocol

from .errors import NoRoom


class Account(Protocol):
    """Counts the rows of all streams of one user; calls come from any thread, and are short."""

    def hold(self, size_bytes: int, *, in_memory: bool) -> None:
        """Rows are held, in memory or in a file."""

    def let_go(self, size_bytes: int, *, in_memory: bool) -> None:
        """Rows were read, or dropped."""

    @property
    def crowded(self) -> bool:
        """Whether a stream should hold no more in memory than its reader needs to go on."""

    def refusal(self) -> NoRoom | None:
        """Why no further rows may go to files; None if they may."""


class Unlimited:
    """The account of a program that reads its own rows."""

    crowded = False

    def hold(self, size_bytes: int, *, in_memory: bool) -> None: ...
    def let_go(self, size_bytes: int, *, in_memory: bool) -> None: ...
    def refusal(self) -> NoRoom | None:
        return None


UNLIMITED = Unlimited()

"""Resets of learnt models; what the last one has forgotten can be given back.

After a start the resets of the past are made again. What the history has from before the last one
can be given back then; what was only in the memory of the server is gone.
"""

from __future__ import annotations

from collections.abc import Callable

from queryard.live.session import Session

from .record import Change


class Resets:
    """Of one session; its caller has a lock. `last` is the reset that can be undone."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._give_back: Callable[[], None] | None = None
        self.last: int | None = None

    def make(self, change: Change) -> None:
        """Forget what a change says, and keep it in the place of what was kept before."""
        self._give_back = self._session.reset_models(change.after["models"], before=change.at)
        self.last = change.id

    def give_back(self) -> None:
        """Take the last reset back."""
        give_back, self._give_back, self.last = self._give_back, None, None
        if give_back is not None:
            give_back()

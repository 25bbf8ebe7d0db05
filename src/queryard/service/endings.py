"""Why connections that were found by a name have ended, for clients that come back."""

from __future__ import annotations

import threading
from collections import OrderedDict

KEPT = 10_000


class Endings:
    """The reasons of the newest ends, by name; calls come from any thread.

    >>> endings = Endings()
    >>> endings.note("a-1", "grants changed")
    >>> endings.why("a-1"), endings.why("a-2")
    ('grants changed', '')
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reasons: OrderedDict[str, str] = OrderedDict()

    def note(self, name: str, reason: str) -> None:
        """Remember why a connection has ended; the first reason counts."""
        with self._lock:
            self._reasons.setdefault(name, reason)
            if len(self._reasons) > KEPT:
                self._reasons.popitem(last=False)

    def why(self, name: str) -> str:
        """The reason; empty if it is not known, or not any more."""
        return self._reasons.get(name, "")

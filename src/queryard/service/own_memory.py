"""Memory for the instances that clients have of their own: temporary tables, settings, writes.

An instance is opened when a client first needs it, and what it may use stays taken until the client
leaves. So each takes a part of what is left: the first ones have much, and many find some.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from queryard.engine.instances.instance import MIN_MEMORY_BYTES

from .limits import TooMany

# Of what is left.
PART = 1 / 16


class OwnMemory:
    """Calls come from any thread; instances are opened and closed while queries run."""

    def __init__(self, total_bytes: int, relieve: Callable[[], None]) -> None:
        """`relieve` closes instances that hold nothing."""
        self.total_bytes = total_bytes
        self._relieve = relieve
        self._lock = threading.Lock()
        self._used_bytes = 0
        self._count = 0

    @property
    def used_bytes(self) -> int:
        return self._used_bytes

    def take(self) -> int:
        """The memory of a further instance; raises if there is none left.

        >>> memory = OwnMemory(100 << 20, lambda: None)
        >>> [memory.take() >> 20 for _ in range(3)]
        [32, 32, 32]
        >>> memory.take()
        Traceback (most recent call last):
        queryard.service.limits.TooMany: no memory is left for the temporary tables, settings and \
writes of a further client: 3 clients have 101 MB of 105 MB; close connections that made some, or \
give the server more memory
        """
        taken = self._taken()
        if not taken:
            self._relieve()
            taken = self._taken()
        if taken:
            return taken
        raise TooMany(
            "no memory is left for the temporary tables, settings and writes of a further client: "
            f"{self._count} clients have {self._used_bytes / 1e6:.0f} MB of "
            f"{self.total_bytes / 1e6:.0f} MB; close connections that made some, or give the "
            "server more memory"
        )

    def _taken(self) -> int:
        with self._lock:
            left = self.total_bytes - self._used_bytes
            if left < MIN_MEMORY_BYTES:
                return 0
            taken = max(MIN_MEMORY_BYTES, int(left * PART))
            self._used_bytes += taken
            self._count += 1
            return taken

    def give_back(self, memory_bytes: int) -> None:
        """An instance was closed."""
        with self._lock:
            self._used_bytes -= memory_bytes
            self._count -= 1

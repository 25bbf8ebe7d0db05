"""Times of the host's clock as seconds since 1970."""

from __future__ import annotations

import time
from collections.abc import Callable

# The system's clock may be set; smaller differences are the jitter of two readings.
SET_S = 1.0


class WallClock:
    """Every time of the host's clock has one Unix time, unless the system's clock is set.

    >>> clock = WallClock(now=lambda: 5.0, unix=lambda: 1005.0)
    >>> clock.at(2.0), clock.at(None), clock.time_s(1004.0)
    (1002.0, None, 4.0)
    """

    def __init__(self, now: Callable[[], float], unix: Callable[[], float] = time.time) -> None:
        self._now = now
        self._unix = unix
        self._began_at = unix() - now()

    @property
    def began_at(self) -> float:
        """When the host's clock was 0."""
        found = self._unix() - self._now()
        if abs(found - self._began_at) > SET_S:
            self._began_at = found
        return self._began_at

    def at(self, time_s: float | None) -> float | None:
        """A time of the host's clock as Unix time."""
        return None if time_s is None else round(self.began_at + time_s, 3)

    def time_s(self, at: float) -> float:
        """A Unix time on the host's clock."""
        return at - self.began_at

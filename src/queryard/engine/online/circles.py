"""Where online queries are in the samples they go through."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..sampling import Sample


class Circles:
    """The online queries that have begun and not ended, and where the circle of each sample is.

    Queries over one sample go round its parts in one circular order: a new query begins where the
    others are, so that all read the same files at about the same time. Parts are in random order,
    so any start is as good as another.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Per sample: the place of the next part, and how many queries go round.
        self._at: dict[tuple[str, str], tuple[int, int]] = {}
        self.active = 0

    def join(self, sample: Sample) -> int:
        """Where a new query begins."""
        with self._lock:
            self.active += 1
            at, riders = self._at.get(_key(sample), (0, 0))
            self._at[_key(sample)] = at, riders + 1
            return at

    def reads(self, sample: Sample, place: int) -> None:
        """A query reads the parts from a place on."""
        with self._lock:
            _, riders = self._at[_key(sample)]
            self._at[_key(sample)] = place % len(sample.parts), riders

    def leave(self, sample: Sample) -> None:
        with self._lock:
            self.active -= 1
            at, riders = self._at[_key(sample)]
            if riders > 1:
                self._at[_key(sample)] = at, riders - 1
            else:
                del self._at[_key(sample)]


def _key(sample: Sample) -> tuple[str, str]:
    return sample.table, sample.fingerprint

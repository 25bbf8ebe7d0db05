"""Which database files this process has attached, so that no two instances write to one.

DuckDB locks a file against other processes only; two instances of one process that both write
to it lose data.
"""

from __future__ import annotations

import threading
from pathlib import Path

from .errors import NotAllowed

_lock = threading.Lock()
# Resolved path -> whoever reads it, and whoever writes it.
_readers: dict[Path, set[int]] = {}
_writers: dict[Path, int] = {}


class Claims:
    """The files one instance has attached."""

    def __init__(self) -> None:
        self._held: set[Path] = set()

    def claim(self, path: str, writes: bool) -> None:
        """Enter that a file is about to be attached; an error if it is in use elsewhere."""
        place = Path(path).resolve()
        with _lock:
            others = _readers.get(place, set()) - {id(self)}
            if _writers.get(place, id(self)) != id(self) or (writes and others):
                use = "written" if place in _writers else "read"
                raise NotAllowed(
                    f"{place} is {use} by another session of this process, and two of them would "
                    "lose data; close that one first, or use it for this as well"
                )
            if writes:
                _writers[place] = id(self)
            _readers.setdefault(place, set()).add(id(self))
            self._held.add(place)

    def keep_only(self, paths: set[str]) -> None:
        """Enter which files are still attached."""
        self._release(self._held - {Path(path).resolve() for path in paths})

    def release(self) -> None:
        self._release(set(self._held))

    def _release(self, places: set[Path]) -> None:
        with _lock:
            for place in places:
                self._held.discard(place)
                _readers.get(place, set()).discard(id(self))
                if not _readers.get(place):
                    _readers.pop(place, None)
                if _writers.get(place) == id(self):
                    del _writers[place]

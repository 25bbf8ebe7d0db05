"""What was parsed of segments, as Parquet files within budgets of memory and disk.

A file is in use as long as it has leases, and is removed at the end of the last one if it was
dropped meanwhile. What was used least lately goes from memory to disk, and from disk away. Files in
use are not moved away: while many are in use, the budgets may be exceeded by those.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

from .places import MOST_IN_MEMORY, MemoryFile, Places, removed

RESERVE_BYTES = 256 * 2**20
"""What is left free on the disk."""


@dataclass(slots=True, eq=False)
class KeptFile:
    """Columns of one segment, as a Parquet file."""

    path: str
    columns: frozenset[str]
    rows: int
    bytes: int
    memory: MemoryFile | None
    is_lasting: bool = True
    """Whether its path is its own for good; otherwise it goes with its last reader."""
    leases: int = 0
    is_dropped: bool = False


class Kept:
    """Files by key. All methods may be called from any thread."""

    def __init__(self, memory_bytes: float, disk_bytes: float, places: Places) -> None:
        self.memory_bytes = memory_bytes
        self.disk_bytes = disk_bytes
        self._places = places
        self._lock = threading.RLock()
        self._files: OrderedDict[Hashable, KeptFile] = OrderedDict()
        self._used = {"memory": 0, "disk": 0}
        self.evicted = 0

    @property
    def used_bytes(self) -> tuple[int, int]:
        """In memory and on disk."""
        with self._lock:
            return self._used["memory"], self._used["disk"]

    @property
    def count(self) -> int:
        with self._lock:
            return len(self._files)

    def count_of(self, keys: Iterable[Hashable], columns: Iterable[str] = ()) -> int:
        """How many of these have a file with these columns."""
        wanted = frozenset(columns)
        with self._lock:
            files = (self._files.get(key) for key in keys)
            return sum(file is not None and file.columns >= wanted for file in files)

    def leased(self, key: Hashable, columns: Iterable[str] = ()) -> KeptFile | None:
        """The file of a key, if it has these columns; `release` it afterwards."""
        with self._lock:
            found = self._files.get(key)
            if found is None or not found.columns.issuperset(columns):
                return None
            self._files.move_to_end(key)
            found.leases += 1
            return found

    def all_leased(self, keys: Iterable[Hashable], columns: Iterable[str]) -> list[KeptFile] | None:
        """The files of all keys, or None and no lease at all if one is missing."""
        wanted = tuple(columns)
        held: list[KeptFile] = []
        with self._lock:
            for key in keys:
                found = self.leased(key, wanted)
                if found is None:
                    for file in held:
                        self.release(file)
                    return None
                held.append(found)
        return held

    def release(self, file: KeptFile) -> None:
        """A lease has ended."""
        with self._lock:
            file.leases -= 1
            if not file.leases and file.is_dropped:
                self._remove(file)
            elif not file.leases and not file.is_lasting:
                key = next(key for key, each in self._files.items() if each is file)
                self._drop(self._files.pop(key))
            self._make_room()

    def put(self, key: Hashable, file: KeptFile) -> None:
        """Keep a file, leased once, instead of what the key had before."""
        with self._lock:
            if (before := self._files.pop(key, None)) is not None:
                self._drop(before)
            file.leases += 1
            self._files[key] = file
            self._used[_where(file)] += file.bytes
            self._make_room()

    def drop(self, is_meant: Callable[[Hashable], bool]) -> None:
        """Drop the files of some keys; those in use stay until their readers are done."""
        with self._lock:
            for key in [key for key in self._files if is_meant(key)]:
                self._drop(self._files.pop(key))

    def abandon(self) -> None:
        """After a fork, in the child: the files are the parent's."""
        for file in self._files.values():
            if file.memory is not None:
                file.memory.close()

    def _make_room(self) -> None:
        in_memory = [(key, file) for key, file in self._files.items() if file.memory is not None]
        left = len(in_memory)
        for key, file in in_memory:
            if self._used["memory"] <= self.memory_bytes and left <= MOST_IN_MEMORY:
                break
            if not file.leases:
                self._to_disk(key, file)
                left -= 1
        if self._used["disk"] <= self.disk_bytes:
            return
        for key, file in list(self._files.items()):
            if self._used["disk"] <= self.disk_bytes:
                return
            if file.memory is None and not file.leases:
                self.evicted += 1
                self._drop(self._files.pop(key))

    def _to_disk(self, key: Hashable, file: KeptFile) -> None:
        """Move a file that is not in use out of memory, or drop it where there is no room."""
        assert file.memory is not None
        path = self._places.new_path() if file.bytes <= self.disk_bytes else None
        if path is not None and self._places.room_bytes() - file.bytes > RESERVE_BYTES:
            try:
                file.memory.copy_to(path)
            except OSError:  # a full or unwritable disk: what was parsed is parsed again
                removed(path)
            else:
                moved = KeptFile(path, file.columns, file.rows, file.bytes, None)
                self._files[key] = moved  # in the same place of the order
                self._used["disk"] += file.bytes
                self._drop(file)
                return
        self.evicted += 1
        self._drop(self._files.pop(key))

    def _drop(self, file: KeptFile) -> None:
        file.is_dropped = True
        if not file.leases:
            self._remove(file)

    def _remove(self, file: KeptFile) -> None:
        self._used[_where(file)] -= file.bytes
        removed(file.path)
        if file.memory is not None:
            file.memory.close()


def _where(file: KeptFile) -> str:
    return "disk" if file.memory is None else "memory"

"""Candidates sorted by a key."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import Self

Key = float | tuple[float, ...]


class Ranking:
    """Numbers sorted by (key, number); a change costs a binary search.

    >>> ranking = Ranking()
    >>> ranking.put(1, 5.0); ranking.put(2, 3.0); ranking.put(1, 1.0)
    >>> ranking.entries
    [(1.0, 1), (3.0, 2)]
    """

    __slots__ = ("changes", "entries", "keys")

    def __init__(self) -> None:
        # Goes up whenever the head may be another.
        self.changes = 0
        self.entries: list[tuple[Key, int]] = []
        self.keys: dict[int, Key] = {}

    def put(self, uid: int, key: Key) -> None:
        old = self.keys.get(uid)
        if old is not None:
            if old == key:
                return
            del self.entries[bisect_left(self.entries, (old, uid))]
        self.changes += 1
        self.keys[uid] = key
        insort(self.entries, (key, uid))

    def drop(self, uid: int) -> None:
        self.changes += 1
        key = self.keys.pop(uid)
        del self.entries[bisect_left(self.entries, (key, uid))]

    def refill(self, keys: Iterable[tuple[int, Key]]) -> None:
        self.changes += 1
        self.keys = dict(keys)
        self.entries = sorted((key, uid) for uid, key in self.keys.items())

    def fork(self) -> Self:
        copy = type(self)()
        copy.entries = self.entries.copy()
        copy.keys = self.keys.copy()
        return copy

    @property
    def is_sound(self) -> bool:
        """Whether the entries are those of the keys, in order (see `validate`)."""
        return self.entries == sorted((key, uid) for uid, key in self.keys.items())

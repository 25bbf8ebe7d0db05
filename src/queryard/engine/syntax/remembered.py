"""What was found out of texts, kept for when they come again: bounded by characters.

Clients choose how long their statements are, up to megabytes, so a number of texts bounds nothing.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")

MOST = 200_000
"""How many characters are kept together, unless something else is said."""
LONGEST = 20_000
"""A text that is longer is not kept: it would push out many that come more often."""
EACH = 100
"""What an entry counts beside its characters, so that there are not too many short ones."""


_all: weakref.WeakSet[Remembered[Any, Any]] = weakref.WeakSet()


class Remembered(Generic[Key, Found]):
    """Values by key; the least recently used are forgotten first. From any thread.

    >>> kept = Remembered[str, int](most=250, longest=40)
    >>> for number, text in enumerate(["a", "b" * 41, "c"]):
    ...     kept.put(text, len(text), number)
    >>> kept.get("a"), kept.get("b" * 41), kept.get("c")
    (0, None, 2)
    >>> kept.put("d", 1, 3)
    >>> kept.get("a"), kept.get("c"), kept.get("d"), kept.characters
    (None, 2, 3, 202)
    """

    def __init__(self, most: int = MOST, longest: int = LONGEST) -> None:
        self._most = most
        self._longest = min(longest, most - EACH)
        self._lock = threading.Lock()
        self._found: OrderedDict[Key, tuple[int, Found]] = OrderedDict()
        self.characters = 0
        _all.add(self)

    def get(self, key: Key) -> Found | None:
        with self._lock:
            found = self._found.get(key)
            if found is None:
                return None
            self._found.move_to_end(key)
            return found[1]

    def put(self, key: Key, characters: int, found: Found) -> None:
        """Keep a value; `characters` are those of its key, and of the value if it is long."""
        with self._lock:
            self._drop(key)
            if characters > self._longest:
                return
            self._found[key] = characters + EACH, found
            self.characters += characters + EACH
            while self.characters > self._most:
                self.characters -= self._found.popitem(last=False)[1][0]

    def drop(self, key: Key) -> None:
        """Forget one, if it is there."""
        with self._lock:
            self._drop(key)

    def clear(self) -> None:
        with self._lock:
            self._found.clear()
            self.characters = 0

    def __contains__(self, key: object) -> bool:
        return key in self._found

    def __len__(self) -> int:
        return len(self._found)

    def _drop(self, key: Key) -> None:
        if (old := self._found.pop(key, None)) is not None:
            self.characters -= old[0]


def _after_fork() -> None:
    """In a child a lock may be held by a thread that it has not: every one has a new lock."""
    for each in list(_all):
        each._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

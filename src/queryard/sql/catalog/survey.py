"""The places of a catalog: which of them are looked at now, and what was found at the others.

A look is for a statement. It concerns the places that the statement may name, and of these only
the ones that were not looked at since the statement was submitted. Threads that submit at the same
time so share looks, and none is served by a look that began before its statement was submitted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Set
from dataclasses import dataclass
from typing import Any, TypeVar

from .contents import Contents
from .listing import Listing
from .metadata import MetadataReader
from .open_files import redefinitions

T = TypeVar("T")
Clock = Callable[[], float]
Allowed = Callable[[float], float]
"""From the seconds that a look takes to the seconds for which what it found may be used."""


Look = Callable[[Listing], Contents]
"""Looks at one place, with the memory of earlier looks at it."""


def always_look(took_s: float) -> float:
    """What was found before the statement was submitted is never used."""
    return 0.0


@dataclass(frozen=True, slots=True)
class _Known:
    """What a look found."""

    began_s: float
    redefinitions: int
    took_s: float
    found: Any
    listing: Listing

    def serves(self, asked_s: float, allowed: Allowed) -> bool:
        """Whether it is young enough; what this process has changed since is seen at once."""
        is_same = self.redefinitions == redefinitions()
        return asked_s <= self.began_s + (allowed(self.took_s) if is_same else 0.0)


class Survey:
    """Looks at places for one catalog, one thread at a time."""

    def __init__(self, clock: Clock = time.monotonic, *, holds_file: bool = False) -> None:
        """With `holds_file`, the file that names the tables counts as it was read first."""
        self.clock = clock
        self._holds_file = holds_file
        self._file: Any = None
        self.metadata = MetadataReader()
        self.own = Listing()
        """The memory of what is looked at every time: the place of the catalog itself."""
        self._places: dict[Hashable, _Known] = {}
        self._visited: dict[Hashable, _Known] = {}
        self._names: Set[str] | None = None
        self._asked_s = 0.0
        self._allowed: Allowed = always_look

    def look(
        self,
        read: Callable[[], Contents],
        names: Set[str] | None,
        asked_s: float,
        allowed: Allowed,
    ) -> Contents:
        """Everything there is; places are looked at if `names` (None: all) may mean them."""
        self._names, self._asked_s, self._allowed = names, asked_s, allowed
        self._visited = {}
        found = read()
        self._places = self._visited  # those that are gone are forgotten
        return found

    def catalog_file(self, read: Callable[[], T]) -> T:
        """What the file says that names the tables: as it is now, or as it is held."""
        if not self._holds_file:
            return read()
        if self._file is None:
            self._file = read()
        return self._file  # type: ignore[no-any-return]

    def let_go(self) -> Any:
        """Read that file again at the next look; what is given back can be held again."""
        held, self._file = self._file, None
        return held

    def hold(self, file: Any) -> None:
        """Let that file count as it was when it was let go."""
        self._file = file

    def at(self, place: Hashable, name: str, look: Callable[[Listing], T]) -> T:
        """What lies at a place where all tables are called `name`, or `name.…`."""
        return self._seen(place, self._names is None or name.lower() in self._names, look)

    def around(self, place: Hashable, look: Callable[[Listing], T]) -> T:
        """What lies at a place that any name may mean, as a folder in which tables may appear."""
        return self._seen(place, True, look)

    def _seen(self, place: Hashable, is_meant: bool, look: Callable[[Listing], T]) -> T:
        known = self._places.get(place)
        due = is_meant and known is not None and not known.serves(self._asked_s, self._allowed)
        if known is None or due:
            listing = Listing() if known is None else known.listing
            before, began_s = redefinitions(), self.clock()
            found = look(listing)
            took_s = self.clock() - began_s
            if known is not None and found == known.found:
                found = known.found
            known = _Known(began_s, before, took_s, found, listing)
        self._visited[place] = known
        return known.found  # type: ignore[no-any-return]

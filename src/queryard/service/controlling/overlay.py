"""Which changes hold: of each setting, the changes that were made and not undone, the last on top.

It is pure, so that the record of changes, read again after a restart, gives the same. The later
word counts: a change holds until the file of settings says something else than it said when the
change was made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .steered import Key


class Setting(NamedTuple):
    """A setting that a change has set, and what the file said of it at that time."""

    key: Key
    value: Any
    of_file: Any


class _Held(NamedTuple):
    change: int
    value: Any
    of_file: Any


class Overlay:
    """What changes say beside the file of settings.

    >>> held = Overlay()
    >>> held.change(1, [Setting(("profile",), "fair", "fifo")])
    >>> held.change(2, [Setting(("profile",), "tls", "fifo")])
    >>> held.values(), held.on_top(1), held.on_top(2)
    ({('profile',): 'tls'}, False, True)
    >>> held.undo(2)
    >>> held.values(), held.on_top(1)
    ({('profile',): 'fair'}, True)
    """

    def __init__(self) -> None:
        self._held: dict[Key, list[_Held]] = {}
        # Of each change that may still be undone: what it has set.
        self._keys: dict[int, tuple[Key, ...]] = {}

    def change(self, number: int, settings: Iterable[Setting]) -> None:
        """A change sets some settings."""
        made = tuple(settings)
        for key, value, of_file in made:
            self._held.setdefault(key, []).append(_Held(number, value, of_file))
        self._keys[number] = tuple(setting.key for setting in made)

    def undo(self, number: int) -> None:
        """A change that is on top is taken back."""
        assert self.on_top(number)
        for key in self._keys.pop(number):
            self._held[key].pop()
            if not self._held[key]:
                del self._held[key]

    def forget(self, keys: Iterable[Key]) -> None:
        """The file counts again for some settings; only what else a change set can be undone."""
        for key in keys:
            for held in self._held.pop(key, ()):
                left = tuple(other for other in self._keys.get(held.change, ()) if other != key)
                self._keys[held.change] = left

    def on_top(self, number: int) -> bool:
        """Whether a change could be undone now: no later one has set what it has set."""
        keys = self._keys.get(number)
        return bool(keys) and all(
            key in self._held and self._held[key][-1].change == number for key in keys or ()
        )

    def above(self, number: int) -> int | None:
        """A later change that has set what this one has set."""
        for key in self._keys.get(number, ()):
            held = self._held.get(key)
            if held and held[-1].change != number:
                return held[-1].change
        return None

    def values(self) -> dict[Key, Any]:
        """What is set, by key."""
        return {key: held[-1].value for key, held in self._held.items()}

    def get(self, key: Key) -> Any:
        """What is set; None if nothing is."""
        held = self._held.get(key)
        return held[-1].value if held else None

    def outdated(self, of_file: Callable[[Key], Any]) -> list[Key]:
        """Settings of which the file says something else than when they were changed."""
        return [key for key, held in self._held.items() if held[-1].of_file != of_file(key)]

    def copy(self) -> Overlay:
        made = Overlay()
        made._held = {key: list(held) for key, held in self._held.items()}
        made._keys = dict(self._keys)
        return made

"""Turns at the databases that clients of a server write: many read, or one writes.

A database file is open in one instance that writes it, or in several that read it. So what names
such a database waits here for its turn, in order of arrival and without a slot. A statement holds
its turn until its end, a transaction until it is over.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple

Wants = Mapping[str, bool]
"""Databases, and whether they may be written."""


class _Claim(NamedTuple):
    owner: Hashable
    wants: Wants


class Turns:
    """Which owners hold which databases, and which wait.

    >>> turns = Turns()
    >>> turns.ask("a", "a", {"shop": False}), turns.ask("b", "b", {"shop": True})
    (True, False)
    >>> turns.ask("c", "c", {"shop": False})  # it came after one that writes
    False
    >>> turns.release("a")
    >>> turns.next(), turns.next()
    (['b'], [])
    """

    def __init__(self) -> None:
        self._held: dict[str, dict[Hashable, bool]] = {}
        self._waiting: dict[Hashable, _Claim] = {}

    def ask(self, token: Hashable, owner: Hashable, wants: Wants) -> bool:
        """Whether an owner has its turn at all of these now; else it waits under its token."""
        claim = _Claim(owner, self._missing(owner, wants))
        if self._may_have(claim, self._waiting.values()):
            self._take(claim)
            return True
        self._waiting[token] = claim
        return False

    def next(self) -> list[Hashable]:
        """The tokens of those that have their turn from now on, in order of arrival."""
        granted: list[Hashable] = []
        earlier: list[_Claim] = []
        for token, claim in list(self._waiting.items()):
            if self._may_have(claim, earlier):
                self._take(claim)
                del self._waiting[token]
                granted.append(token)
            else:
                earlier.append(claim)
        return granted

    def withdraw(self, token: Hashable) -> bool:
        """It waits no more; whether it did."""
        return self._waiting.pop(token, None) is not None

    def release(self, owner: Hashable) -> None:
        """An owner is done with all that it holds."""
        for key in [key for key, holders in self._held.items() if owner in holders]:
            del self._held[key][owner]
            if not self._held[key]:
                del self._held[key]

    def pass_on(self, owner: Hashable, heir: Hashable) -> None:
        """What an owner holds is another's from now on."""
        for holders in self._held.values():
            if owner in holders:
                holders[heir] = holders.pop(owner) or holders.get(heir, False)

    def locked(self, token: Hashable) -> bool:
        """Whether one that waits, and those that it waits for, wait for each other."""
        first = self._waiting[token]
        waits = {claim.owner: claim for claim in self._waiting.values()}
        seen: set[Hashable] = set()
        ahead = list(self._in_the_way(first))
        while ahead:
            owner = ahead.pop()
            if owner == first.owner:
                return True
            if owner not in seen and owner in waits:
                seen.add(owner)
                ahead.extend(self._in_the_way(waits[owner]))
        return False

    def waits_for(self, token: Hashable) -> str:
        """A database that is in use by others; empty if it does not wait."""
        claim = self._waiting.get(token)
        if claim is None:
            return ""
        taken = [
            key for key, writes in claim.wants.items() if self._others(key, claim.owner, writes)
        ]
        return (taken or list(claim.wants))[0]

    @property
    def empty(self) -> bool:
        return not self._held and not self._waiting

    def _missing(self, owner: Hashable, wants: Wants) -> Wants:
        """What an owner does not hold yet."""

        def has(key: str, writes: bool) -> bool:
            held = self._held.get(key, {}).get(owner)
            return held is not None and held >= writes

        return {key: writes for key, writes in wants.items() if not has(key, writes)}

    def _may_have(self, claim: _Claim, earlier: Iterable[_Claim]) -> bool:
        if next(self._in_the_way(claim), None) is not None:
            return False
        # One that holds something goes first: those that wait may be waiting for it.
        if any(claim.owner in holders for holders in self._held.values()):
            return True
        return not any(_collide(claim.wants, other.wants) for other in earlier)

    def _in_the_way(self, claim: _Claim) -> Iterator[Hashable]:
        for key, writes in claim.wants.items():
            yield from self._others(key, claim.owner, writes)

    def _others(self, key: str, owner: Hashable, writes: bool) -> list[Hashable]:
        holders = self._held.get(key, {})
        return [other for other, held in holders.items() if other != owner and (held or writes)]

    def _take(self, claim: _Claim) -> None:
        for key, writes in claim.wants.items():
            self._held.setdefault(key, {})[claim.owner] = writes


def _collide(one: Wants, other: Wants) -> bool:
    return any(key in other and (writes or other[key]) for key, writes in one.items())

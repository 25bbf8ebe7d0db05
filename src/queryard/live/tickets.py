"""The queries of a host by id: until their rows are read, are not wanted, or expire."""

from __future__ import annotations

import weakref

from .ticket import Ticket


class Tickets:
    """From any thread: each change is one step of a dictionary."""

    def __init__(self) -> None:
        # On their way, or with rows that are kept; and all that a handle may still be made of.
        self._held: dict[str, Ticket] = {}
        self._known: weakref.WeakValueDictionary[str, Ticket] = weakref.WeakValueDictionary()
        # When rows that are kept expire, on the host's clock.
        self._expire_s: dict[str, float] = {}

    def add(self, ticket: Ticket) -> None:
        self._held[ticket.id] = self._known[ticket.id] = ticket

    def held(self, query: str) -> Ticket | None:
        """A query that is active, or has rows that are kept."""
        return self._held.get(query)

    def find(self, query: str) -> Ticket | None:
        """A query with rows that a further handle can read, or with side effects to come."""
        return self._known.get(query) or self._held.get(query)

    def names(self) -> list[str]:
        return list(self._held)

    def active(self) -> list[Ticket]:
        return [ticket for ticket in list(self._held.values()) if not ticket.ended]

    def ended(self, ticket: Ticket, now_s: float) -> None:
        """Keep its rows for as long as was asked for."""
        if ticket.keep_s is None or ticket.is_read:
            self._held.pop(ticket.id, None)
        else:
            self._expire_s[ticket.id] = now_s + ticket.keep_s
        self.expire(now_s)

    def release(self, ticket: Ticket) -> None:
        """Its rows are read, or not wanted."""
        ticket.is_read = True
        self._known.pop(ticket.id, None)
        if self._expire_s.pop(ticket.id, None) is not None:
            self._held.pop(ticket.id, None)

    def expire(self, now_s: float) -> None:
        """Forget queries with expired rows."""
        over = [query for query, until_s in list(self._expire_s.items()) if until_s <= now_s]
        for query in over:
            self._expire_s.pop(query, None)
            ticket = self._held.get(query)
            self.drop(query)
            # A reader that has it keeps it; its rows go with the last handle.
            if ticket is not None and not ticket.wanted:
                ticket.output.discard()

    def drop(self, query: str) -> None:
        self._held.pop(query, None)
        self._known.pop(query, None)

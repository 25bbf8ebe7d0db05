"""A statement that a client of the server has submitted, for as long as it is active."""

from __future__ import annotations

import time
from typing import Literal, Unpack
from typing import Protocol as Protocols

from queryard.engine.native import Parameters
from queryard.live.client import Client
from queryard.live.handle import Handle
from queryard.live.options import QueryOptions
from queryard.live.ticket import Ticket

from .principal import Principal

Protocol = Literal["http", "postgres", "quack"]


class Owner(Protocols):
    """The client that a query was entered by."""

    @property
    def client(self) -> Client: ...

    def enter(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        asker: Principal | None = None,
        **options: Unpack[QueryOptions],
    ) -> Submitted:
        """Enter a further query there; it counts for the asker."""


class Submitted:
    """One query, the client that asked for it, and how to let it go.

    Its handle keeps the query alive; a listener that holds neither this nor the handle has lost
    interest, and a query that only reads is cancelled then.
    """

    def __init__(
        self,
        principal: Principal,
        owner: Owner,
        ticket: Ticket,
        protocol: Protocol,
        is_kept: bool = False,
    ) -> None:
        self.principal = principal
        self.owner = owner
        self.client = owner.client
        self.ticket = ticket
        self.protocol: Protocol = protocol
        # Whether its rows are kept after its end, and count until they are read.
        self.is_kept = is_kept
        # One item while it counts among the open results of its token.
        self._counts = [True]
        # Seconds since 1970; all other times are on the host's clock.
        self.asked_at = time.time()

    @property
    def id(self) -> str:
        return self.ticket.id

    @property
    def tenant(self) -> str:
        return self.ticket.request.tenant

    def take_count(self) -> bool:
        """Whether it counted among the open results; from now on it does not."""
        try:
            return self._counts.pop()
        except IndexError:
            return False

    def handle(self) -> Handle:
        """A handle of it: all of them share one interest in its rows."""
        return Handle(self.client, self.ticket)

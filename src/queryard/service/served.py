"""One client of the server: what its tenant may reach, and what runs for it."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol, Unpack

from queryard.core.errors import QueryardError
from queryard.engine.describing import Described
from queryard.engine.errors import NeedsSession, NotAllowed, QueryCancelled
from queryard.engine.native import Parameters
from queryard.engine.syntax.classify import Classified, classify
from queryard.engine.syntax.side_effects import state_left
from queryard.live.client import Client, check_types
from queryard.live.describing import describe
from queryard.live.handle import Handle
from queryard.live.options import QueryOptions, check_options
from queryard.live.request import Instead, OnlineRequest, checked_tenant
from queryard.live.ticket import Ticket
from queryard.sql.catalog import Catalog

from .principal import Principal
from .submitted import Protocol as ProtocolName
from .submitted import Submitted

# How long closing a client waits for its statements to stop.
CLOSE_S = 5.0
# How many clients are closed at the same time.
CLOSERS = 16


class Admission(Protocol):
    """What a client needs of the yard."""

    def admit(self, principal: Principal, sql: str, *, counted: bool = False) -> None:
        """Count a statement, unless it was; raises the reason if it is refused."""

    def count(self, principal: Principal, sql: str) -> None:
        """Count a statement that is looked at; raises the reason if it is refused."""

    def withdraw(self, principal: Principal) -> None:
        """A statement that was admitted has not become a query of its own."""

    def entered(self, submitted: Submitted) -> Submitted:
        """A query is active from now on; the one that is known, if it came before."""

    def left(self, client: ServedClient) -> None:
        """A client is closed."""

    def hidden(self, principal: Principal, error: QueryardError) -> None:
        """A statement that became no query has failed for a reason that its client is not told."""


class ServedClient:
    """Statements go in by `submit` and `enter`, from any thread, within the limits of its token.

    `stateless` clients are shared by requests that know nothing of each other.
    """

    def __init__(
        self,
        yard: Admission,
        principal: Principal,
        client: Client,
        *,
        label: str = "",
        protocol: ProtocolName = "http",
        stateless: bool = False,
    ) -> None:
        self.principal = principal
        self.client = client
        self.label = label
        self.protocol: ProtocolName = protocol
        self.stateless = stateless
        self.used_s = time.monotonic()
        self._yard = yard
        self._lock = threading.Lock()
        self._active: dict[str, Submitted] = {}
        # What has rows that only its own connection can read, as far as these are held.
        self._own: weakref.WeakSet[Ticket] = weakref.WeakSet()
        self._closed = ""
        # How many statements are being bound: the client's own instance is not freed meanwhile.
        self._binding = 0
        self._bound = threading.Condition()

    @property
    def tenant(self) -> str:
        return self.client.tenant

    @property
    def catalog(self) -> Catalog:
        """The tables that its tenant may read."""
        return self.client.catalog

    def catalog_now(self) -> Catalog:
        """The same after a look at the files, for what lists tables; it blocks."""
        self.client.host.look_around()
        return self.client.catalog

    @property
    def closed(self) -> bool:
        return bool(self._closed)

    @property
    def why_closed(self) -> str:
        """Empty while it is open."""
        return self._closed

    @property
    def active(self) -> list[Submitted]:
        """What was submitted and has not ended."""
        with self._lock:
            return list(self._active.values())

    # --- asking ----------------------------------------------------------------------------------

    def submit(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        instead: Instead | None = None,
        counted: bool = False,
        **options: Unpack[QueryOptions],
    ) -> Handle:
        """Enter a query, as `Session.submit`; it blocks for milliseconds.

        A tenant below the client's own may be named, and no other. What is run may be something
        else (`instead`) than the text that is shown. `count` may have `counted` it.
        """
        entered = self.enter(sql, parameters, instead=instead, counted=counted, **options)
        return entered.handle()

    def count(self, sql: str) -> None:
        """Count a statement that is bound, or answered without a query, within its token's rate."""
        self._yard.count(self.principal, sql)

    def enter(
        self,
        sql: str,
        parameters: Parameters = (),
        *,
        online: OnlineRequest | None = None,
        kept: bool = False,
        asker: Principal | None = None,
        instead: Instead | None = None,
        counted: bool = False,
        **options: Unpack[QueryOptions],
    ) -> Submitted:
        """Enter a query; what is given back holds no interest in its rows, its handles do.

        A `kept` one counts among the open results of its token until `Yard.settle` is called. It
        counts for `asker`, if that is not the client's own token.
        """
        payer = self.principal if asker is None else asker
        check_options(options, QueryOptions.__annotations__)
        check_types(sql, parameters)
        self._check_open()
        self.used_s = time.monotonic()
        check_text(options.get("tenant"), "tenant")
        check_text(options.get("idempotency_key"), "idempotency_key")
        if options.get("tenant") is not None:
            self._check_below(checked_tenant(options["tenant"]))
        if self.stateless:
            for statement in classify(sql):
                check_stateless(statement)
        self._yard.admit(payer, sql, counted=counted)
        try:
            ticket = self.client.submit(sql, parameters, online=online, instead=instead, **options)
        except BaseException:
            self._yard.withdraw(payer)
            raise
        made = Submitted(payer, self, ticket, self.protocol, kept)
        known = self._yard.entered(made)
        with self._lock:
            self._active[ticket.id] = known
            if known is made and not (kept or self.stateless):
                self._own.add(ticket)
        ticket.when_over(lambda: self._ended(ticket.id))
        if self._closed:  # meanwhile
            self.client.host.cancel(ticket.id, QueryCancelled(self._closed))
        return known

    def describe(self, sql: str, parameters: Parameters | None = None) -> Described:
        """The columns and parameters of a statement, which is bound and not run; it blocks."""
        with self._bound:
            self._check_open()
            self.used_s = time.monotonic()
            self._binding += 1
        try:
            return describe(self.client, sql, parameters)
        except QueryardError as error:
            self._yard.hidden(self.principal, error)
            raise
        finally:
            with self._bound:
                self._binding -= 1
                self._bound.notify_all()

    def roll_back(self) -> None:
        """Undo the open transaction, if there is one; it is never refused. It blocks."""
        if not self._closed:  # else it goes with the client
            self.client.roll_back()

    def narrow(self, tenant: str) -> None:
        """Act for a tenant below its own from now on; or for its token's own again.

        What it may reach stays what its token's tenant may.
        """
        check_text(tenant, "tenant")
        wanted = checked_tenant(tenant)
        if not self.principal.may_act_for(wanted):
            raise self._not_below(wanted, self.principal.tenant)
        self.client.tenant = wanted

    def _check_below(self, tenant: str) -> None:
        if tenant != self.tenant and not tenant.startswith(f"{self.tenant}/"):
            raise self._not_below(tenant, self.tenant)

    def _not_below(self, tenant: str, own: str) -> NotAllowed:
        return NotAllowed(
            f"tenant: {tenant!r} is not below {own!r}, for which token {self.principal.name!r} "
            f"acts; name one below it, as '{own}/reports', or leave it out"
        )

    # --- the end ---------------------------------------------------------------------------------

    def _ended(self, query: str) -> None:
        with self._lock:
            self._active.pop(query, None)
            self.used_s = time.monotonic()
            frees = bool(self._closed) and not self._active
        if frees:
            self.client.host.run_later(self._free)

    def _check_open(self) -> None:
        if self._closed:
            raise QueryardError(f"the connection is closed: {self._closed}; connect again")

    def close(self, reason: str = "its client has left") -> None:
        """Cancel what runs for it, and free everything; it waits for that, for some seconds."""
        self.begin_close(reason)()

    def begin_close(self, reason: str) -> Callable[[], None]:
        """Cancel what runs for it, at once; a call of what is given back waits, and frees it."""
        with self._lock:
            if self._closed:
                return lambda: None
            self._closed = reason
            active = list(self._active.values())
        for submitted in active:
            self.client.host.cancel(submitted.id, QueryCancelled(reason))
        self._drop_rows()
        self._yard.left(self)
        return partial(self._end, active, time.monotonic() + CLOSE_S)

    def _end(self, active: Sequence[Submitted], until_s: float) -> None:
        for submitted in active:
            submitted.ticket.over.wait(max(0.0, until_s - time.monotonic()))
        if not active:
            self._free()  # else the end of the last query does

    def _drop_rows(self) -> None:
        """Free the rows of ended queries: else they stay until all that refers to them is gone.

        What still runs is cancelled, and loses its rows by that.
        """
        with self._lock:
            own = [ticket for ticket in self._own if ticket.ended or ticket.output.complete]
        for ticket in own:
            ticket.output.discard()
            self.client.host.release(ticket)

    def close_unused(self) -> None:
        """Close its own instance if that holds nothing: the memory is wanted elsewhere."""
        with self._bound:
            if not self._binding:
                self.client.instance.close_unused()

    def _free(self) -> None:
        self._drop_rows()
        with self._bound:
            self._bound.wait_for(lambda: not self._binding, CLOSE_S)
            self.client.close()

    def __enter__(self) -> ServedClient:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def close_all(clients: Sequence[ServedClient], reason: Callable[[Principal], str]) -> None:
    """Close clients: what runs for any of them is cancelled before one is waited for."""
    if not clients:
        return
    ends = [client.begin_close(reason(client.principal)) for client in clients]
    with ThreadPoolExecutor(CLOSERS, thread_name_prefix="queryard-close") as threads:
        for end in ends:
            threads.submit(end)


def check_text(text: object, what: str) -> None:
    """Refuse a text that cannot be written down: the history of all would miss it.

    >>> check_text("sales/\\ud800", "tenant")
    Traceback (most recent call last):
    queryard.core.errors.QueryardError: tenant: 'sales/\\ud800' is no valid text
    """
    try:
        str(text).encode()
    except UnicodeEncodeError:
        raise QueryardError(f"{what}: {text!r} is no valid text") from None


def check_stateless(statement: Classified) -> None:
    """Refuse what a later statement would rely on.

    >>> check_stateless(classify("SELECT 1")[0])
    >>> check_stateless(classify("BEGIN")[0])
    Traceback (most recent call last):
    queryard.engine.errors.NeedsSession: BEGIN changes the state of a session, which later \
requests do not share; open a session and name it, or send the statement over PostgreSQL
    """
    if what := state_left(statement):
        raise NeedsSession(
            f"{what} changes the state of a session, which later requests do not share; open a "
            "session and name it, or send the statement over PostgreSQL"
        )

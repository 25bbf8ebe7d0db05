"""What all listeners of a server share: its session, its clients and their limits.

Calls come from any thread. Those that block say so; listeners run them in threads.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from queryard.core.errors import QueryardError
from queryard.engine.errors import NotAllowed
from queryard.engine.sealing.hiding import whole_reason
from queryard.live.client import Client
from queryard.live.session import Session

from .config import ServiceConfig
from .controlling.controls import Controls
from .controlling.record import NAME as CONTROLS
from .controlling.whatif import WhatIfs
from .limits import Draining, TooManyConnections, Usage
from .logs import log
from .own_memory import OwnMemory
from .principal import Principal
from .problems import UnknownQuery
from .served import ServedClient, close_all
from .submitted import Protocol as ProtocolName
from .submitted import Submitted
from .tokens import TokenStore
from .watchers import Watcher, Watchers

# Rows that wait for their readers, of all clients together: beyond it queries pause early.
WAITING_SHARE = 1 / 8
# How often revoked tokens, expired rows and idle clients are looked for.
SWEEP_S = 1.0
# How many kinds of clients without a connection are kept open.
SHARED_KEPT = 256
KEYS_KEPT = 10_000
_log = logging.getLogger(__name__)


class Yard:
    """The host of a session, for the clients of a server."""

    def __init__(self, session: Session, config: ServiceConfig, tokens: TokenStore) -> None:
        self.session = session
        self.tokens = tokens
        history = session.host.history_file
        beside = tokens.path if history is None else history
        # Where files of the server lie, which no client may replace.
        self._private = frozenset({tokens.path.parent, beside.parent, session.host.temp})
        self.config = self._with_private(config)
        self.usage = Usage(config.limits, waiting_bytes=int(session.memory_bytes * WAITING_SHARE))
        # The part of the session's own instance, which a server does not use itself.
        self.own_memory = OwnMemory(session.own_bytes, self._close_unused)
        self._lock = threading.Lock()
        self._active: dict[str, Submitted] = {}
        self._clients: set[ServedClient] = set()
        # Clients whose requests know nothing of each other, by their principal.
        self._shared: OrderedDict[Principal, ServedClient] = OrderedDict()
        # Those of other grants: what runs for them goes on, and nothing new comes.
        self._retired: set[ServedClient] = set()
        # Queries that came with a key: they may be asked for again.
        self._keyed: OrderedDict[str, None] = OrderedDict()
        self.watchers = Watchers()
        # Each closes a connection that was left alone, if it has one.
        self.making_way: list[Callable[[Principal], bool]] = []
        self._sweeps: list[Callable[[], None]] = [
            self._look_at_tokens,
            self._close_retired,
            self.usage.forget_idle,
        ]
        self._stopping = ""
        self._over = threading.Event()
        self.controls = Controls(session, beside.with_name(CONTROLS), tokens)
        self.whatifs = WhatIfs()
        self._share_databases(config)
        if config.redact:
            session.host.redact_history()
        self._sweeper = threading.Thread(target=self._sweep, name="queryard-yard", daemon=True)
        self._sweeper.start()

    # --- clients ---------------------------------------------------------------------------------

    def open(
        self, principal: Principal, *, label: str = "", protocol: ProtocolName = "postgres"
    ) -> ServedClient:
        """A client for one connection, with the grants of its tenant; close it at the end."""
        if not principal.may_query:
            raise NotAllowed(
                f"token {principal.name!r} has the role metrics, and may read /metrics only; use a "
                "user's token for queries"
            )
        self._check_admission()
        try:
            self.usage.connect(principal.name)
        except TooManyConnections:
            if not self.make_way(principal):
                raise
            self.usage.connect(principal.name)
        try:
            client = self._client(principal, label, protocol, stateless=False)
        except BaseException:
            self.usage.disconnect(principal.name)
            raise
        with self._lock:
            self._clients.add(client)
            is_current = self._is_current(client)
        if not is_current:  # the settings were read again meanwhile
            client.close(_changed(principal))
        return client

    def make_way(self, principal: Principal) -> bool:
        """Close a connection that was left alone, for another of a principal; it blocks."""
        return any(make(principal) for make in self.making_way)

    def shared(self, principal: Principal) -> ServedClient:
        """The client of requests that know nothing of each other; it is never closed by them."""
        with self._lock:
            found = self._shared.get(principal)
            if found is not None:
                self._shared.move_to_end(principal)
                return found
        made = self._client(principal, "", "http", stateless=True)
        with self._lock:
            # The settings were read again meanwhile: it counts as a request from before.
            if not self._is_current(made):
                self._retired.add(made)
                return made
            client = self._shared.setdefault(principal, made)
            idle = [] if len(self._shared) <= SHARED_KEPT else self._idle()
        for other in idle:
            other.close("it was idle")
        return client

    def _is_current(self, client: ServedClient) -> bool:
        """Whether a client reaches what its tenant is granted now; the lock is held."""
        return client.client.reach.access == self.config.access(client.principal.tenant)

    def _all(self) -> list[ServedClient]:
        with self._lock:
            return [*self._clients, *self._shared.values(), *self._retired]

    def _idle(self) -> list[ServedClient]:
        """Shared clients for which nothing runs, the oldest first, to be closed."""
        found = [who for who, client in self._shared.items() if not client.active]
        return [self._shared.pop(who) for who in found[: len(self._shared) - SHARED_KEPT]]

    def _client(
        self, principal: Principal, label: str, protocol: ProtocolName, *, stateless: bool
    ) -> ServedClient:
        session = self.session
        access = self.config.access(principal.tenant)
        client = Client.open(
            session.host,
            memory_bytes=self.own_memory,
            tenant=principal.tenant,
            plan=session.plan,
            access=access,
            account=self.usage.account(principal.name),
        )
        return ServedClient(
            self, principal, client, label=label, protocol=protocol, stateless=stateless
        )

    def clients(self, principal: Principal) -> list[ServedClient]:
        """The connections that a principal may see."""
        with self._lock:
            return [client for client in self._clients if principal.may_see(client.tenant)]

    def _close_unused(self) -> None:
        """Close instances of clients that hold nothing: memory is wanted."""
        for client in self._all():
            client.close_unused()

    def left(self, client: ServedClient) -> None:
        """A client was closed."""
        with self._lock:
            counted = client in self._clients
            self._clients.discard(client)
            self._retired.discard(client)
            if self._shared.get(client.principal) is client:
                del self._shared[client.principal]
        if counted:
            self.usage.disconnect(client.principal.name)

    def hidden(self, principal: Principal, error: QueryardError) -> None:
        """Log why a statement that became no query has failed, where its client is not told."""
        reason = "" if self.config.redact else whole_reason(error)
        if reason:
            log(
                "statement failed",
                tenant=principal.tenant,
                token=principal.name,
                error=str(error).partition("\n")[0],
                reason=reason,
            )

    # --- queries ---------------------------------------------------------------------------------

    def admit(self, principal: Principal, sql: str, *, counted: bool = False) -> None:
        """Count a statement that becomes a query; raises the reason if it is refused.

        One that was `counted` when it was looked at is not counted again.
        """
        if counted:
            self._check_admission()
        else:
            self.count(principal, sql)
        self.usage.open_result(principal.name)

    def count(self, principal: Principal, sql: str) -> None:
        """Count a statement that is looked at; raises the reason if it is refused."""
        self._check_admission()
        if len(sql) > self.config.limits.request_bytes // 4:  # else it cannot be too long
            self.usage.check_size(len(sql.encode(errors="replace")))
        self.usage.count_statement(principal.name)

    def withdraw(self, principal: Principal) -> None:
        """A statement that was admitted has not become a query of its own."""
        self.usage.close_result(principal.name)

    def settle(self, submitted: Submitted) -> None:
        """A query does not run any more, and has no rows that are to be read."""
        if submitted.take_count():
            self.withdraw(submitted.principal)

    def entered(self, submitted: Submitted) -> Submitted:
        """A query is active from now on; the one that is known, if it came before."""
        key = submitted.ticket.request.idempotency_key
        with self._lock:
            known = self._active.get(submitted.id, submitted)
            if known is not submitted or (key and submitted.id in self._keyed):
                again = True
            else:
                again = False
                self._active[submitted.id] = submitted
            if key:
                self._keyed[submitted.id] = None
                if len(self._keyed) > KEYS_KEPT:
                    self._keyed.popitem(last=False)
        if again:
            self.settle(submitted)
            return known
        self.watchers.began(submitted)
        submitted.ticket.when_over(lambda: self._ended(submitted))
        return submitted

    def _ended(self, submitted: Submitted) -> None:
        with self._lock:
            self._active.pop(submitted.id, None)
        if not submitted.is_kept:
            self.settle(submitted)
        self.watchers.ended(submitted)

    def submitted(self, principal: Principal, query: str) -> Submitted:
        """An active query that a principal may see; all others are unknown to it."""
        with self._lock:
            found = self._active.get(query)
        if found is None or not principal.may_see(found.tenant):
            raise unknown_query(query)
        return found

    def cancel(self, principal: Principal, query: str) -> None:
        """Stop an active query that a principal may see."""
        self.submitted(principal, query)
        self.session.cancel(query)

    def active(self) -> list[Submitted]:
        """All active queries of the server."""
        with self._lock:
            return list(self._active.values())

    def watch(self, watcher: Watcher, *, prompt: bool = False) -> None:
        """Tell a watcher of every query from now on; of ends a moment later, or `prompt`."""
        self.watchers.add(watcher, prompt=prompt)

    def every_second(self, look: Callable[[], None]) -> None:
        """Call something about once per second, in a thread of the yard's own."""
        self._sweeps.append(look)

    # --- the end ---------------------------------------------------------------------------------

    @property
    def draining(self) -> bool:
        """Whether no further queries are taken."""
        return bool(self.closed)

    @property
    def closed(self) -> str:
        """Why no further queries are taken; empty while they are."""
        return self._stopping or self.controls.closed

    def stop_admission(self, reason: str = "the server is about to stop") -> None:
        """Take no further queries; what runs goes on."""
        self._stopping = reason

    def _check_admission(self) -> None:
        if closed := self.closed:
            raise Draining(f"{closed}; connect again in a while")

    def reload(self, config: ServiceConfig) -> None:
        """Follow other settings. Connections whose grants have changed are closed; it blocks.

        A request that runs goes on, and the next one has a client with the new grants.
        """
        self._share_databases(config)
        config = self._with_private(config)
        with self._lock:
            self.config = config
            self.usage.limits = config.limits
            for client in list(self._shared.values()):
                if not self._is_current(client):
                    self._retired.add(self._shared.pop(client.principal))
            changed = [client for client in self._clients if not self._is_current(client)]
        close_all(changed, _changed)
        used = {client.client.reach.access for client in self._all()}
        self.session.host.keep_reaches(used.union(config.grants.values()))

    def follow_tables(self) -> None:
        """Look at all tables again, with the file that names them; it blocks."""
        self.session.catalog.reread()
        self._share_databases(self.config)

    def _with_private(self, config: ServiceConfig) -> ServiceConfig:
        """The settings with grants that leave out the server's own files."""
        grants = {
            tenant: access if access.output is None else replace(access, private=self._private)
            for tenant, access in config.grants.items()
        }
        return replace(config, grants=grants)

    def _share_databases(self, config: ServiceConfig) -> None:
        """Databases that some tenant may write are used in turns from the first query on."""
        host = self.session.host
        host.wait_for_turns(config.limits.lock_s)
        for access in config.grants.values():
            # A grant that makes no sense is told to the clients of its tenant.
            with contextlib.suppress(QueryardError):
                host.reach(access).seal()

    def close(self) -> None:
        """Close all clients; the session is its owner's to close. It blocks."""
        self.stop_admission("the server is closed")
        self._over.set()
        close_all(self._all(), lambda principal: "the server is closed")
        if self._sweeper is not threading.current_thread():
            self._sweeper.join()
        self.watchers.close()
        self.whatifs.close()
        self.controls.close()

    # --- in the background -----------------------------------------------------------------------

    def _sweep(self) -> None:
        failed: set[Callable[[], None]] = set()
        while not self._over.wait(SWEEP_S):
            for look in list(self._sweeps):
                try:
                    look()
                    failed.discard(look)
                except (QueryardError, OSError):
                    pass  # a file that cannot be read now, or a session that closes
                except Exception:  # the other looks go on, and the next one may do better
                    if look not in failed:
                        _log.exception("%s failed, and is tried again", look.__qualname__)
                    failed.add(look)

    def _look_at_tokens(self) -> None:
        """Close the clients of tokens that were revoked, have expired, or belong to others now."""
        clients = self._all()
        valid = {who: self.tokens.holds(who) for who in {client.principal for client in clients}}
        close_all([client for client in clients if not valid[client.principal]], _revoked)

    def _close_retired(self) -> None:
        """Close clients of other grants for which nothing runs any more."""
        with self._lock:
            done = [client for client in self._retired if not client.active]
        close_all(done, _changed)


def _changed(principal: Principal) -> str:
    return f"grants changed: tenant {principal.tenant!r} may reach other tables or files now"


def _revoked(principal: Principal) -> str:
    return f"token {principal.name!r} was revoked or changed"


def unknown_query(query: str) -> UnknownQuery:
    """The same for queries that never were, have expired, or belong to other tenants."""
    return UnknownQuery(
        f"unknown query {query!r}: it was never submitted, has expired, or is another tenant's; "
        "a list of queries shows those that are there, the history those that have ended"
    )

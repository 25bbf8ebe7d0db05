"""What the routes share: the yard, the results it keeps, named sessions, and threads."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from starlette.requests import Request

from queryard.core.errors import QueryardError

from ..endings import Endings
from ..kept_rows import KeptRows
from ..principal import Principal
from ..problems import NotAdmin, UnknownName
from ..results import KeptResult, Results
from ..served import ServedClient
from ..submitted import Submitted
from ..yard import Yard

T = TypeVar("T")
P = ParamSpec("P")
# A session that was idle for so long makes way for another connection.
MAKES_WAY_S = 60.0
# Threads for what blocks: entering statements, encoding rows, asking the scheduler.
THREADS = 16


class Context:
    """One per application."""

    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        self.results = Results(yard)
        self.sessions = Sessions(yard)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="queryard-http")
        # Further ones for what may wait for a query: as many as there are requests, if need be.
        self._patient = ThreadPoolExecutor(
            yard.config.limits.connections, thread_name_prefix="queryard-look"
        )
        # Taken by threads that wait for a moment.
        self.moments = threading.Semaphore(THREADS // 2)

    async def run(self, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """Run something that blocks in a thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: work(*given, **named))

    async def run_long(self, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """Run something that may wait for a query in a thread that no other request needs."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._patient, lambda: work(*given, **named))

    def client(self, principal: Principal, session: str | None) -> ServedClient:
        """The client of a request: that of a named session, or the one all requests share."""
        if session is None:
            return self.yard.shared(principal)
        return self.sessions.find(principal, session)

    def submitted(self, principal: Principal, query: str) -> tuple[Submitted, KeptResult | None]:
        """A query that a principal may see: one of HTTP's, or an active one of any listener."""
        with contextlib.suppress(QueryardError):
            result = self.results.find(principal, query)
            return result.submitted, result
        return self.yard.submitted(principal, query), None

    def close(self) -> None:
        """Drop all results and sessions."""
        self.sessions.close()
        self.results.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._patient.shutdown(wait=False, cancel_futures=True)


class Sessions:
    """Clients with a state of their own, found by a name that cannot be guessed."""

    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        self._by_id: dict[str, ServedClient] = {}
        self._endings = Endings()
        yard.every_second(self.expire)
        yard.making_way.append(self._make_way)

    def open(self, principal: Principal, label: str) -> tuple[str, ServedClient]:
        client = self._yard.open(principal, label=label, protocol="http")
        name = uuid.uuid4().hex
        self._by_id[name] = client
        return name, client

    def find(self, principal: Principal, name: str) -> ServedClient:
        """A session of the same token."""
        client = self._by_id.get(name)
        if client is None or client.principal != principal or client.closed:
            is_own = client is not None and client.principal == principal
            why = client.why_closed if client is not None and is_own else self._endings.why(name)
            why = why or "it was closed, was idle for too long, or belongs to another token"
            raise UnknownName(f"unknown session {name!r}: {why}; open one with POST /v1/sessions")
        client.used_s = time.monotonic()
        return client

    def all(self, principal: Principal) -> list[tuple[str, ServedClient]]:
        """Those of a token."""
        found = list(self._by_id.items())
        return [(name, client) for name, client in found if client.principal == principal]

    def drop(self, principal: Principal, name: str) -> None:
        """Close a session; it waits for what runs there."""
        self.find(principal, name).close("its session was closed")
        self._by_id.pop(name, None)

    def _make_way(self, principal: Principal) -> bool:
        """Close a session that was idle for long, one that holds nothing first.

        A client says nothing when it is killed. Those of other tokens make way where the server has
        no room, if they hold nothing: their clients open another, and lose nothing.
        """
        usage, limits = self._yard.usage, self._yard.config.limits
        own_only = usage.connections_of(principal.name) >= limits.connections_per_token
        since_s = time.monotonic() - MAKES_WAY_S
        idle = [
            (client.client.instance.holds, client.used_s, name, client)
            for name, client in list(self._by_id.items())
            if client.used_s < since_s and not (client.active or client.client.in_transaction)
        ]
        able = [
            each for each in idle if each[3].principal == principal or not (each[0] or own_only)
        ]
        if not able:
            return False
        *_, name, client = min(able, key=lambda each: each[:3])
        client.close("it was idle, and made way for another connection")
        self._endings.note(name, client.why_closed)
        self._by_id.pop(name, None)
        return True

    def expire(self) -> None:
        """Close those in which nothing has happened for long, and others may wait for."""
        limits = self._yard.config.limits
        for name, client in list(self._by_id.items()):
            is_open = client.client.in_transaction
            most_s = min(limits.idle_s, limits.transaction_s) if is_open else limits.idle_s
            if not client.active and time.monotonic() - client.used_s > most_s:
                what = "its transaction" if is_open else "it"
                client.close(f"{what} was idle for {most_s:g} s")
            if client.closed:
                self._endings.note(name, client.why_closed)
                self._by_id.pop(name, None)

    def close(self) -> None:
        for client in list(self._by_id.values()):
            client.close("the server is closed")
        self._by_id.clear()


def context_of(request: Request) -> Context:
    """The context of the application that a request came to."""
    found = request.app.state.context
    assert isinstance(found, Context)
    return found


def principal_of(request: Request) -> Principal:
    """The client of a request: the guard has checked its token."""
    found = request.scope["state"]["principal"]
    assert isinstance(found, Principal)
    return found


def admin_of(request: Request) -> Principal:
    """The same, which must be an admin's."""
    found = principal_of(request)
    if found.role != "admin":
        raise NotAdmin(f"token {found.name!r} is a user's; use an admin's")
    return found


def figures_of(request: Request) -> Principal:
    """The same, which may see the figures of all tenants."""
    found = principal_of(request)
    if not found.may_see_figures:
        raise NotAdmin(
            f"token {found.name!r} is a user's; use one with the role metrics (`queryard token add "
            "NAME --role metrics`), or an admin's"
        )
    return found


Tell = Callable[[Callable[[], None]], Callable[[], None]]
"""Makes a call once something has happened; what it gives back withdraws that."""


async def told(tell: Tell, timeout_s: float | None) -> bool:
    """Wait until something that tells by a call, from any thread, has told; False if it has not."""
    loop = asyncio.get_running_loop()
    happened = asyncio.Event()

    def set_it() -> None:
        # The event loop may be closed by the time: then nothing waits.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(happened.set)

    withdraw = tell(set_it)
    try:
        async with asyncio.timeout(timeout_s):
            await happened.wait()
    except TimeoutError:
        pass
    finally:
        # Else each client that asks again leaves a call behind until the query ends.
        withdraw()
    return happened.is_set()


async def ready(rows: KeptRows, within_s: float) -> Any:
    """The schema of rows, once it is known; None if it is not in time. Raises the query's error."""
    if (schema := rows.schema) is None:
        await told(rows.when_ready, within_s)
        schema = rows.schema
    return schema

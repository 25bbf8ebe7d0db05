"""Listens for PostgreSQL clients, and owns their connections."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import ssl
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from queryard.engine.errors import NotAllowed

from ..config import Address
from ..principal import Principal
from ..served import ServedClient
from ..yard import Yard
from . import replies
from .bridge import Bridge
from .catalogs import Catalogs
from .errors import FatalError, PostgresError
from .login import Login, log_in
from .plain_templates import PlainTemplates
from .problems import as_postgres
from .session import Ended, Session
from .setting_values import SERVER_VERSION, seconds_of
from .settings import Settings, startup_settings
from .startup import CancelRequest, same_key
from .wire import Gone, Wire

_log = logging.getLogger(__name__)

# Connections that have not logged in, beside those that are allowed.
STRANGERS = 100
LOOK_S = 0.5
STOPS = "terminating connection due to administrator command: the server stops"
VERSION = f"PostgreSQL {SERVER_VERSION} (Queryard, DuckDB)"


class PostgresListener:
    """PostgreSQL's protocol for the clients of a yard; `start` first, `close` at the end."""

    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        self._catalogs = Catalogs(redacts=yard.config.redact)
        self.plain = PlainTemplates()
        self._server: asyncio.Server | None = None
        self._context: ssl.SSLContext | None = None
        self._connections: set[_Connection] = set()
        self._by_process: dict[int, _Connection] = {}
        self._executor = ThreadPoolExecutor(
            yard.config.limits.connections + 16, thread_name_prefix="queryard-postgres"
        )
        self._looking: asyncio.Task[None] | None = None
        self._closing = False
        self._zone: str | None = None

    async def start(self, address: Address, context: ssl.SSLContext | None = None) -> int:
        """Listen; the port, which was chosen by the system if it was 0."""
        self._context = context
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            self._wire, address.host, address.port, backlog=1024
        )
        self._looking = asyncio.create_task(self._look())
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def _wire(self) -> Wire:
        limits = self._yard.config.limits
        return Wire(limits.request_bytes, limits.stall_s, self._connected)

    def _connected(self, wire: Wire) -> None:
        connection = _Connection(self, wire)
        self._connections.add(connection)
        connection.begin()

    async def _look(self) -> None:
        """Close connections that stall."""
        while True:
            await asyncio.sleep(LOOK_S)
            self._close_stalled()

    def _close_stalled(self) -> None:
        limit_s = self._yard.config.limits.stall_s
        for connection in list(self._connections):
            if connection.wire.stalls(limit_s):
                connection.wire.abort()

    async def close(self, grace_s: float = 0.0) -> None:
        """Take no further connections; those that are idle are closed, others after a while."""
        self._closing = True
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.end_when_idle()
        tasks = [connection.task for connection in self._connections if connection.task]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=max(grace_s, 0.1))
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        if self._looking is not None:
            self._looking.cancel()
        await asyncio.get_running_loop().run_in_executor(None, self._free)

    def _free(self) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._catalogs.close()

    # --- for connections -------------------------------------------------------------------------

    def check_room(self) -> None:
        """Refuse a connection beyond those that the server can look at."""
        most = self._yard.config.limits.connections + STRANGERS
        if len(self._connections) > most:
            raise FatalError("53300", "sorry, too many clients already")
        if self._closing:
            raise FatalError("57P03", "the server is about to stop")

    def left(self, connection: _Connection, process: int) -> None:
        self._connections.discard(connection)
        self._by_process.pop(process, None)

    def enter(self, connection: _Connection) -> int:
        """A number for cancel requests that no other connection has."""
        while (process := secrets.randbelow(2**31 - 1) + 1) in self._by_process:
            pass
        self._by_process[process] = connection
        return process

    def cancel(self, request: CancelRequest) -> None:
        """Stop what runs for a connection, if the key is the connection's."""
        connection = self._by_process.get(request.process)
        if connection is not None and same_key(connection.key, request.key):
            connection.cancel()

    async def call(self, function: Any, *arguments: Any) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, function, *arguments)

    async def zone(self, client: ServedClient) -> str:
        """The time zone of DuckDB's clients, before they set one."""
        if self._zone is None:

            def ask() -> str:
                answer = client.submit("SELECT current_setting('TimeZone')").result()
                return str(answer.fetchall()[0][0])

            self._zone = await self.call(ask)
        return self._zone

    @property
    def connections(self) -> int:
        """How many there are, with those that have not logged in."""
        return len(self._connections)

    @property
    def yard(self) -> Yard:
        return self._yard

    @property
    def context(self) -> ssl.SSLContext | None:
        return self._context

    @property
    def catalogs(self) -> Catalogs:
        return self._catalogs

    @property
    def executor(self) -> ThreadPoolExecutor:
        return self._executor


class _Connection:
    """One client, from its first byte to its last."""

    def __init__(self, listener: PostgresListener, wire: Wire) -> None:
        self.wire = wire
        self.key = b""
        self.task: asyncio.Task[None] | None = None
        self._listener = listener
        self._process = 0
        self._session: Session | None = None
        self._client: ServedClient | None = None
        self._waiting = False
        self._must_end = False
        wire.on_lost = self._lost

    def begin(self) -> None:
        self.task = asyncio.create_task(self._run())

    def cancel(self) -> None:
        if self._session is not None:
            self._session.cancel()

    def end_when_idle(self) -> None:
        """End the session as soon as it waits for a message."""
        self._must_end = True
        if self._waiting and self.task is not None:
            self.task.cancel()

    def _lost(self) -> None:
        # A statement that runs for a client that has left is of no use; a task that waits for a
        # message learns of it by itself.
        if not self._waiting and self.task is not None:
            self.task.cancel()

    async def _run(self) -> None:
        try:
            await self._talk()
        except (Gone, Ended, ConnectionError):
            pass
        except asyncio.CancelledError:
            if self._must_end:
                self.wire.send(replies.error(FatalError("57P01", STOPS)))
        except Exception as error:
            problem = as_postgres(error)
            if not problem.fatal:
                problem = _fatal(problem)
            self.wire.send(replies.error(problem))
        finally:
            self._listener.left(self, self._process)
            self.wire.close()
            await asyncio.shield(self._free())

    async def _free(self) -> None:
        """Free what the connection holds now: the garbage collector might come much later."""
        session, self._session = self._session, None
        if session is not None:
            with contextlib.suppress(Exception):
                await session.close()
        if self._client is not None:
            with contextlib.suppress(Exception):
                await self._listener.call(self._client.close)

    async def _talk(self) -> None:
        listener = self._listener
        listener.check_room()
        yard = listener.yard
        try:
            async with asyncio.timeout(yard.config.limits.login_s):
                login = await log_in(self.wire, yard.tokens, listener.context, listener.cancel)
        except TimeoutError:
            raise FatalError("08006", "the login was not finished in time") from None
        if login is not None:
            self._session = await self._open(login)
            await self._serve(self._session)

    async def _open(self, login: Login) -> Session:
        listener, principal = self._listener, login.principal
        startup = login.startup
        label = startup.parameters.get("application_name", "")
        self._client = client = await listener.call(
            lambda: listener.yard.open(principal, label=label, protocol="postgres")
        )
        zone = await listener.zone(client)
        settings = Settings(
            startup_settings(startup.parameters),
            user=principal.name,
            zone=zone,
            may_set=lambda name, value: check_own(principal, name, value),
        )
        self._process = listener.enter(self)
        self.key = secrets.token_bytes(32 if startup.agreed_minor >= 2 else 4)
        identity = {
            "user": principal.name,
            "database": login.database,
            "pid": str(self._process),
            "version": VERSION,
        }
        bridge = Bridge(
            client,
            listener.executor,
            listener.catalogs,
            settings,
            identity,
            listener.yard.config.limits,
            zone,
            listener.plain,
        )
        session = Session(self.wire, bridge)
        self.wire.send(replies.AUTHENTICATED)
        for name, value in settings.reported().items():
            self.wire.send(replies.setting(name, value))
        self.wire.send(replies.cancel_key(self._process, self.key))
        await session.ready()
        return session

    async def _serve(self, session: Session) -> None:
        while True:
            if self._must_end:
                raise FatalError("57P01", STOPS)
            self._waiting = True
            try:
                async with asyncio.timeout(self._patience_s(session)):
                    frame = await self.wire.receive()
            except TimeoutError:
                raise _idle(session) from None
            finally:
                self._waiting = False
            if self._client is not None and self._client.closed:
                reason = self._client.why_closed
                raise FatalError("57P01", f"terminating connection: {reason}; connect again")
            await session.handle(frame)

    def _patience_s(self, session: Session) -> float:
        """How long a client may say nothing."""
        limits = self._listener.yard.config.limits
        idle_s = limits.idle_s
        inside = "idle_in_transaction_session_timeout"
        name = inside if session.block.open else "idle_session_timeout"
        if own_s := seconds_of(name, session.settings[name]):
            idle_s = min(idle_s, own_s)
        return min(idle_s, limits.transaction_s) if session.block.real else idle_s


def _idle(session: Session) -> FatalError:
    if session.block.open:
        return FatalError("25P03", "terminating connection due to idle-in-transaction timeout")
    return FatalError("57P05", "terminating connection due to idle-session timeout")


def _fatal(problem: PostgresError) -> FatalError:
    return FatalError(problem.sqlstate, str(problem), detail=problem.detail, hint=problem.hint)


def check_own(principal: Principal, name: str, value: str) -> None:
    """A client may act for a tenant below its own, and for no other.

    >>> check_own(Principal("ann", "sales"), "queryard.tenant", "sales/emea")
    """
    if name == "queryard.tenant" and value and not principal.may_act_for(value):
        raise NotAllowed(
            f"queryard.tenant: {value!r} is not below {principal.tenant!r}, for which token "
            f"{principal.name!r} acts; name one below it"
        )

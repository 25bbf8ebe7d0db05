"""Listeners on one event loop, and the end of a server: asked to stop, it lets queries end."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import uvicorn

from queryard.core.errors import QueryardError

from .config import Address, ServiceConfig
from .http.application import create_app
from .http.protocol import bounded_protocol
from .logs import log
from .own_cpu import is_listener
from .postgres.listener import PostgresListener
from .problems import Stopped
from .quack.listener import Application, QuackListener, beside
from .tls import server_context, take_certificate
from .yard import Yard

BACKLOG = 1024
# How long a connection without a request is kept: clients that poll need not connect again.
KEEP_ALIVE_S = 75
# How often a server that is about to stop looks whether queries run.
LOOK_S = 0.05
# How long HTTP connections may take to send what they have begun, once no query runs.
LAST_WORDS_S = 2.0
# How long rows of queries that have ended may still be read.
UNREAD_S = 5.0
STOPPING = "the server is about to stop"
PAUSED = (
    "the server stops while it is paused, so that the query would never start; send it again when "
    "the server is back"
)
STOPPED = (
    "the server stops, and the grace time for queries that run is over: the query was cancelled; "
    "send it again when the server is back"
)


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the listeners are, with the ports they were given; None: not at all."""

    http: Address | None
    postgres: Address | None
    quack: Address | None
    tls: bool

    @property
    def url(self) -> str | None:
        """The address of HTTP as clients write it."""
        if self.http is None:
            return None
        return f"{'https' if self.tls else 'http'}://{reachable(self.http)}"


class Listeners:
    """HTTP, PostgreSQL and Quack for the clients of a yard; `open` first, `close` at the end."""

    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        self._context: ssl.SSLContext | None = None
        # Servers of HTTP, with the tasks that they run in.
        self._http: list[tuple[_HttpServer, asyncio.Task[None]]] = []
        self._postgres: PostgresListener | None = None
        self._quack: QuackListener | None = None

    async def open(self, config: ServiceConfig) -> Addresses:
        """Listen; an address that cannot be had is an error, and then nothing listens."""
        is_listener()
        self._context = None if config.tls is None else server_context(config.tls)
        try:
            http, postgres, quack = await self._open_all(config)
        except BaseException:
            await self.close(0.0)
            raise
        return Addresses(http, postgres, quack, self._context is not None)

    async def _open_all(
        self, config: ServiceConfig
    ) -> tuple[Address | None, Address | None, Address | None]:
        http = postgres = quack = None
        if isinstance(config.quack, Address) or (config.quack == "http" and config.http):
            self._quack = QuackListener(self._yard)
        if config.postgres is not None:
            postgres = await self._open_pg(config.postgres)
        if isinstance(config.quack, Address) and self._quack is not None:
            quack = await self._open_http("quack", config.quack, self._quack)
        # Last: `/readyz` says that the server takes queries, over every protocol.
        if config.http is not None:
            app: Application = create_app(self._yard)
            is_shared = self._quack is not None and config.quack == "http"
            if self._quack is not None and is_shared:
                app = beside(self._quack, app)
            http = await self._open_http("http", config.http, app)
            quack = http if is_shared else quack
        return http, postgres, quack

    async def _open_http(self, what: str, address: Address, app: Application) -> Address:
        with _binding(what, address):
            bound = _bind(address)
        settings = uvicorn.Config(
            app,
            http=bounded_protocol(self._yard),
            ws="none",
            loop="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=int(min(KEEP_ALIVE_S, self._yard.config.limits.idle_s)),
            timeout_graceful_shutdown=int(LAST_WORDS_S),
            h11_max_incomplete_event_size=self._yard.config.limits.request_bytes,
        )
        settings.load()
        settings.ssl = self._context
        server = _HttpServer(settings)
        task = asyncio.create_task(server.serve(sockets=[bound]))
        self._http.append((server, task))
        while not server.started:
            if task.done():
                task.result()
                raise QueryardError(f"{what}: the listener on {address} did not start")
            await asyncio.sleep(LOOK_S / 10)
        return replace(address, port=bound.getsockname()[1])

    async def _open_pg(self, address: Address) -> Address:
        self._postgres = PostgresListener(self._yard)
        with _binding("postgres", address):
            port = await self._postgres.start(address, self._context)
        return replace(address, port=port)

    def renew_certificate(self, config: ServiceConfig) -> None:
        """Show the certificate that is in the files now."""
        if config.tls is not None and self._context is not None:
            take_certificate(self._context, config.tls)

    async def drain(self, grace_s: float, hurry: asyncio.Event) -> int:
        """Take no further queries, and let those that run go on for a while; how many are left."""
        yard = self._yard
        yard.stop_admission(STOPPING)
        until_s = time.monotonic() + grace_s
        if yard.controls.paused:
            # They would never start: their clients need not wait for the end of the grace time.
            for query in yard.active():
                if query.ticket.facts.started_s is None:
                    yard.session.host.cancel(query.id, Stopped(PAUSED))
        await _wait_while(lambda: bool(yard.active()), until_s, hurry)
        left = len(yard.active())
        if not left:
            # What has just ended can be read, too; but a client that never reads holds nothing up.
            until_s = min(until_s, time.monotonic() + UNREAD_S)
            await _wait_while(lambda: yard.usage.open_results > 0, until_s, hurry)
        return left

    async def close(self, grace_s: float) -> None:
        """Tell clients that the server stops, and close their connections."""
        # Clients that wait for them are told why, before their connections are cut.
        for query in self._yard.active():
            self._yard.session.host.cancel(query.id, Stopped(STOPPED))
        until_s = time.monotonic() + LAST_WORDS_S
        await _wait_while(lambda: bool(self._yard.active()), until_s, asyncio.Event())
        if self._postgres is not None:
            await self._postgres.close(grace_s)
            self._postgres = None
        for server, task in self._http:
            server.should_exit = True
            try:
                await task
            except Exception as error:  # the end goes on
                log("the HTTP listener did not end well", error=repr(error))
        self._http = []
        if self._quack is not None:
            await asyncio.to_thread(self._quack.close)
            self._quack = None


async def _wait_while(is_so: Callable[[], bool], until_s: float, hurry: asyncio.Event) -> None:
    """Wait as long as something is so, until a time at most, or until there is hurry."""
    while is_so() and not hurry.is_set() and (left_s := until_s - time.monotonic()) > 0:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(hurry.wait(), min(LOOK_S, left_s))


class _HttpServer(uvicorn.Server):
    """Signals belong to the process, which has other listeners."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def reachable(address: Address) -> Address:
    """An address to connect to, where a listener listens on all."""
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}
    return replace(address, host=everywhere.get(address.host, address.host))


def _bind(address: Address) -> socket.socket:
    family, kind, proto, _, place = socket.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, proto)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(place)
        bound.listen(BACKLOG)
        bound.setblocking(False)
    except BaseException:
        bound.close()
        raise
    return bound


@contextlib.contextmanager
def _binding(what: str, address: Address) -> Iterator[None]:
    """What the system says of an address, with what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise QueryardError(
            f"{what}: {address} cannot be listened on ({reason}); choose another with --{what}, "
            f"or end the program that holds it"
        ) from error

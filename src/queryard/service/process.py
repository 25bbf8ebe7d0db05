"""The process of a server: one event loop, its signals, and the order in which things end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pyarrow as pa

from queryard.core.errors import QueryardError
from queryard.core.readable import several
from queryard.live.session import Session

from .config import ServiceConfig
from .logs import log
from .query_log import QueryLog
from .serving import Addresses, Listeners
from .sources import Settings, Sources, tell_of_grants
from .supervisor import notify
from .tls import server_context
from .tokens import TokenStore
from .yard import Yard

# Settings that hold from the start of a server to its end.
_FIXED = ("http", "postgres", "quack", "tokens", "redact", "log")


class Server:
    """A session, served until a signal asks for the end."""

    def __init__(
        self,
        session: Session,
        config: ServiceConfig,
        tokens: TokenStore,
        sources: Sources,
    ) -> None:
        """`sources` are read again at SIGHUP."""
        self.session = session
        self.config = config
        self.tokens = tokens
        self._sources = sources
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._reloads: set[asyncio.Task[None]] = set()
        # One after another: else older settings might be the last to be followed.
        self._reloading = asyncio.Lock()

    async def run(self, announce: Callable[[Addresses], None]) -> None:
        """Serve; `announce` is called once clients can connect."""
        yard = Yard(self.session, self.config, self.tokens)
        queries = QueryLog(self.config.redact)
        yard.watch(queries)
        self.session.host.tell_problems(queries.problem)
        listeners = Listeners(yard)
        try:
            addresses = await listeners.open(self.config)
            with self._signals(yard, listeners):
                announce(addresses)
                log(
                    "started",
                    http=addresses.http,
                    postgres=addresses.postgres,
                    quack=addresses.quack,
                )
                notify("READY=1")
                await self._stop.wait()
                notify("STOPPING=1")
                active = several(len(yard.active()), "query")
                log("stopping", active=active, grace_s=self.config.grace_s)
                left = await listeners.drain(self.config.grace_s, self._hurry)
                if left:
                    log("grace time is over", logging.WARNING, cancelled=left)
                await listeners.close(0.0)
        finally:
            await asyncio.to_thread(yard.close)
        log("stopped")

    def stop(self) -> None:
        """End after the grace time; at once if it is called again."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    @contextlib.contextmanager
    def _signals(self, yard: Yard, listeners: Listeners) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        handlers: dict[int, Callable[[], object]] = {
            signal.SIGTERM: self.stop,
            signal.SIGINT: self.stop,
        }
        if hasattr(signal, "SIGHUP"):
            handlers[signal.SIGHUP] = lambda: self._start_reload(yard, listeners)
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number in handlers:
                loop.remove_signal_handler(number)

    def _start_reload(self, yard: Yard, listeners: Listeners) -> None:
        task = asyncio.ensure_future(self._reload(yard, listeners))
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)

    async def _reload(self, yard: Yard, listeners: Listeners) -> None:
        """Follow the files as they are now; if something in them is wrong, nothing changes."""
        async with self._reloading:
            await self._follow(yard, listeners)

    async def _follow(self, yard: Yard, listeners: Listeners) -> None:
        try:
            settings = await asyncio.to_thread(self._checked)
            await asyncio.to_thread(self._sources.follow, yard.controls, settings)
        except (QueryardError, OSError) as error:
            log("not reloaded: the settings stay as they were", logging.ERROR, error=error)
            return
        new = settings.service
        fixed = [name for name in _FIXED if getattr(new, name) != getattr(self.config, name)]
        if (new.tls is None) != (self.config.tls is None):
            fixed.append("tls")
        self.config = new
        # Grants before tables: a table that is new is never there under the grants from before.
        await asyncio.to_thread(yard.reload, new)
        try:
            await asyncio.to_thread(yard.follow_tables)
            listeners.renew_certificate(new)
        except (QueryardError, OSError) as error:  # a file has changed since it was checked
            log("not all was reloaded", logging.ERROR, error=error)
        tell_of_grants(self.session.catalog, settings.grants)
        tables, tokens = len(self.session.tables()), len(self.tokens.list())
        log("reloaded", tables=tables, tokens=tokens)
        if fixed:
            log("some settings change with a restart only", logging.WARNING, settings=fixed)

    def _checked(self) -> Settings:
        """The settings as they are now, if nothing is wrong with them and what they name."""
        settings = self._sources.read()
        if settings.service.tls is not None and self.config.tls is not None:
            server_context(settings.service.tls)
        self.tokens.reload()
        self.session.catalog.check()
        return settings


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run the main function of a server on the fastest event loop there is."""
    _return_memory()
    # What was imported stays: the collector of garbage need not look at it again and again.
    gc.collect()
    gc.freeze()
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if sys.platform != "win32":
        with contextlib.suppress(ImportError):
            import uvloop

            factory = uvloop.new_event_loop
    try:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(main)
    finally:
        gc.unfreeze()  # so that all of it can be freed at the end


def _return_memory() -> None:
    """Let Arrow give memory back to the system.

    Rows are made by one thread and freed by another. Arrow's usual allocator keeps what was freed
    so for the first thread, be it idle for hours; this one returns it within about a second.
    """
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        with contextlib.suppress(NotImplementedError):  # it is not in every build
            pa.set_memory_pool(pa.jemalloc_memory_pool())

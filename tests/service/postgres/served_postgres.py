"""A PostgreSQL listener on a thread with an event loop of its own, over a yard on small data."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from queryard.service.config import Address, ServiceLimits
from queryard.service.postgres.listener import PostgresListener
from tests.service.yard_ground import NO_OTHER_LIMITS, Ground, a_ground


class Served:
    """Where the server is, and how clients log in."""

    def __init__(self, ground: Ground, listener: PostgresListener, port: int) -> None:
        self.ground = ground
        self.listener = listener
        self.port = port
        self.data = Path()

    def dsn(self, user: str = "ann", **more: str) -> str:
        """For libpq and all that speak its language."""
        words = {
            "host": "127.0.0.1",
            "port": str(self.port),
            "user": user,
            "password": self.ground.secrets[user],
            "dbname": "yard",
            **more,
        }
        return " ".join(f"{name}='{value}'" for name, value in words.items())

    def url(self, user: str = "ann", scheme: str = "postgresql") -> str:
        return f"{scheme}://{user}:{self.ground.secrets[user]}@127.0.0.1:{self.port}/yard"


@contextmanager
def a_server(
    folder: Path,
    *,
    limits: ServiceLimits = NO_OTHER_LIMITS,
    context: ssl.SSLContext | None = None,
    session: Mapping[str, Any] = {},
    **config: Any,
) -> Iterator[Served]:
    with a_ground(folder, limits=limits, session=session, **config) as ground:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="listener")
        thread.start()

        def call(work: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(work, loop).result(30)

        listener = PostgresListener(ground.yard)
        try:
            port = call(listener.start(Address("127.0.0.1", 0), context))
            yield Served(ground, listener, port)
        finally:
            call(listener.close(0.0))
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

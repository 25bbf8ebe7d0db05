"""A PostgreSQL listener on a thread with an event loop of its own, over a yard on small data."""

from __future__ import annotations

import asyncio
import ssl
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from queryard.service.config import Address, ServiceLimits
from queryard.service.postgres.listener import PostgresListener
from tests.service.yard_ground import NO_OTHER_LIMITS, Ground, a_ground


class Login:
    """How clients log in."""

    def __init__(self, port: int, secrets: Mapping[str, str], data: Path = Path()) -> None:
        self.port = port
        self.secrets = secrets
        self.data = data

    def dsn(self, user: str = "ann", **more: str) -> str:
        """For libpq and all that speak its language."""
        words = {
            "host": "127.0.0.1",
            "port": str(self.port),
            "user": user,
            "password": self.secrets[user],
            "dbname": "yard",
            **more,
        }
        return " ".join(f"{name}='{value}'" for name, value in words.items())

    def url(self, user: str = "ann", scheme: str = "postgresql") -> str:
        return f"{scheme}://{user}:{self.secrets[user]}@127.0.0.1:{self.port}/yard"


class Served(Login):
    """A server in this process."""

    def __init__(self, ground: Ground, listener: PostgresListener, port: int, data: Path) -> None:
        super().__init__(port, ground.secrets, data)
        self.ground = ground
        self.listener = listener


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
            yield Served(ground, listener, port, folder / "data")
        finally:
            call(listener.close(0.0))
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


if __name__ == "__main__":
    # A server for clients of another process, until there is no more to read.
    with a_server(Path(sys.argv[1])) as served:
        print(served.port, served.secrets["ann"], flush=True)
        sys.stdin.read()

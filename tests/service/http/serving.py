"""A real server on a free port of this machine, for the time of a test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from waiting import wait_until

from queryard.service.http.application import create_app
from queryard.service.http.protocol import bounded_protocol
from service.yard_ground import Ground, a_ground


class Server(Ground):
    """The ground with an address."""

    url: str
    app: Any
    uvicorn: uvicorn.Server

    def client(self, name: str | None = "ann", **options: Any) -> httpx.Client:
        """A client with the token of a name."""
        headers = {} if name is None else {"Authorization": f"Bearer {self.secrets[name]}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, **options)

    def cut_connections(self) -> None:
        """Cut all that are open, as a network that fails does; others can be opened."""

        def cut() -> None:
            for connection in list(self.uvicorn.server_state.connections):
                connection.transport.abort()

        self.uvicorn.servers[0].get_loop().call_soon_threadsafe(cut)


@contextmanager
def a_server(folder: Path, *, port: int = 0, **options: Any) -> Iterator[Server]:
    """A server on a free port, or on one that was free before."""
    with a_ground(folder, **options) as ground:
        app = create_app(ground.yard)
        config = uvicorn.Config(
            app,
            http=bounded_protocol(ground.yard),
            host="127.0.0.1",
            port=port,
            log_level="warning",
            timeout_graceful_shutdown=2,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            wait_until(lambda: server.started or not thread.is_alive())
            assert server.started
            there = server.servers[0].sockets[0].getsockname()[1]
            made = Server(ground.yard, ground.secrets)
            made.url, made.app, made.uvicorn = f"http://127.0.0.1:{there}", app, server
            yield made
        finally:
            server.should_exit = True
            thread.join()

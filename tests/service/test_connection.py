"""Clients whose machines are gone are noticed, whatever protocol they speak."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from waiting import wait_until

from queryard.service.config import Address
from queryard.service.connection import keep_alive
from queryard.service.postgres.listener import PostgresListener
from queryard.service.serving import Listeners
from tests.service.yard_ground import a_ground

ANY = Address("127.0.0.1", 0)
CONNECTIONS = Path("/proc/net/tcp")
ESTABLISHED, KEEPS_ALIVE = "01", "02"


class Transport:
    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection

    def get_extra_info(self, name: str) -> socket.socket:
        assert name == "socket"
        return self.connection


@pytest.mark.parametrize(("stall_s", "most_ms"), [(1.0, 60_000), (90.0, 90_000)])
def test_the_system_asks_for_signs_of_life(stall_s, most_ms):
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as connection,
    ):
        keep_alive(Transport(connection), stall_s)
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        options = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
        numbers = [getattr(socket, name, None) for name in options]
        if None not in numbers:
            found = [connection.getsockopt(socket.IPPROTO_TCP, number) for number in numbers]
            assert found == [30, 10, 3, most_ms]


def timers(port: int) -> list[str]:
    """Which timers the connections of a listener have, as Linux tells."""
    lines = [line.split() for line in CONNECTIONS.read_text().splitlines()[1:]]
    own = f":{port:04X}"
    return [line[5][:2] for line in lines if line[1].endswith(own) and line[3] == ESTABLISHED]


@pytest.mark.skipif(not CONNECTIONS.is_file(), reason="Linux tells of the timers of connections")
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_all_listeners_ask_their_clients(tmp_path, loop):
    make = None if loop == "asyncio" else pytest.importorskip("uvloop").new_event_loop
    with a_ground(tmp_path) as ground:
        config = replace(ground.yard.config, http=ANY, postgres=ANY, quack=ANY)

        async def main() -> None:
            listeners = Listeners(ground.yard)
            addresses = await listeners.open(config)
            try:
                for address in (addresses.http, addresses.postgres, addresses.quack):
                    with socket.create_connection(("127.0.0.1", address.port)):
                        port = address.port
                        await asyncio.to_thread(
                            wait_until, lambda port=port: timers(port) == [KEEPS_ALIVE]
                        )
            finally:
                await listeners.close(0.0)

        with asyncio.Runner(loop_factory=make) as runner:
            runner.run(main())


def test_http_listens_last_so_that_ready_means_all_listeners(tmp_path, monkeypatch):
    opened: list[str] = []
    plain_start, plain_http = PostgresListener.start, Listeners._open_http

    async def start(self, *given):
        port = await plain_start(self, *given)
        opened.append("postgres")
        return port

    async def open_http(self, what, *given):
        address = await plain_http(self, what, *given)
        opened.append(what)
        return address

    monkeypatch.setattr(PostgresListener, "start", start)
    monkeypatch.setattr(Listeners, "_open_http", open_http)
    with a_ground(tmp_path) as ground:
        config = replace(ground.yard.config, http=ANY, postgres=ANY, quack=ANY)

        async def main() -> None:
            listeners = Listeners(ground.yard)
            await listeners.open(config)
            await listeners.close(0.0)

        asyncio.run(main())
    assert opened == ["postgres", "quack", "http"]

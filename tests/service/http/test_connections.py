"""Connections that send nothing, half a request or too much of it are closed."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import httpx
import pytest
from waiting import wait_until

from queryard.service.config import ServiceLimits
from service.http.serving import a_server


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    limits = ServiceLimits(login_s=0.6, stall_s=0.4, connections=6)
    with a_server(tmp_path_factory.mktemp("strict"), limits=limits) as made:
        yield made


def connected(server) -> socket.socket:
    host, _, port = server.url.removeprefix("http://").partition(":")
    connection = socket.create_connection((host, int(port)))
    connection.settimeout(20)
    return connection


def rest(connection: socket.socket) -> bytes:
    """All that comes until the server hangs up."""
    found = b""
    while part := connection.recv(65536):
        found += part
    return found


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"", b"no whole request came within 0.6 s"),
        (b"GET /healthz HT", b"no whole request came within 0.4 s"),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: ", b"no whole request came within 0.4 s"),
        (b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 100_000, b"more than 65,536 bytes"),
        (b"nonsense\r\n\r\n", b"400 Bad Request"),
        (b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", b'"status": "ok"'),
    ],
)
def test_what_stalls_is_closed(strict, sent, said):
    with connected(strict) as connection:
        connection.sendall(sent)
        assert said in rest(connection)


def test_a_later_request_on_a_connection_may_not_stall_either(strict):
    with connected(strict) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200 OK" in connection.recv(65536)
        connection.sendall(b"GET /heal")
        assert b"no whole request came" in rest(connection)


def test_there_are_only_so_many_connections(strict):
    with ExitStack() as stack:
        for _ in range(6):
            stack.enter_context(connected(strict)).sendall(b"GET /healthz HTTP/1.1\r\n")
        with connected(strict) as connection:
            refused = rest(connection)
        assert b"429 Too Many Requests" in refused
        assert b"6 connections" in refused
    wait_until(lambda: httpx.get(f"{strict.url}/healthz").status_code == 200)

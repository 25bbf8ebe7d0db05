"""The end of connections over Quack: clients that vanish, are cut off, or are left alone."""

from __future__ import annotations

import contextlib
import logging
import random
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from waiting import wait_until

from queryard.service.config import ServiceLimits
from queryard.service.quack import sessions as sessions_module
from service.fuzzing import fuzz
from tests.service.quack.plain_client import Refused, fetch, prepare
from tests.service.quack.served_quack import a_server
from tests.service.quack.test_codec import malformed, samples
from tests.service.quack.test_listener import SLOW


@contextlib.contextmanager
def begun(server, message: bytes):
    """A request whose reply is not read, by a client that has little room."""
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.connect(("127.0.0.1", server.port))
        head = f"POST /quack HTTP/1.1\r\nHost: x\r\nContent-Length: {len(message)}\r\n\r\n"
        raw.sendall(head.encode() + message)
        yield raw


def vanish(server, message: bytes) -> None:
    """Send a message, and leave as soon as the server works on it."""
    with begun(server, message):
        wait_until(lambda: server.yard.active())
        time.sleep(0.2)


def test_a_client_that_vanishes_takes_its_query_along(server):
    client = server.client()
    vanish(server, prepare(client.id, SLOW))
    wait_until(lambda: not server.yard.active())
    wait_until(lambda: not server.yard.clients(server.principal("root")))
    with pytest.raises(Refused, match="Invalid connection id"):
        client.prepare("SELECT 1")
    wait_until(lambda: server.yard.usage.open_results == 0)


def test_a_client_that_vanishes_while_it_waits_for_more_rows(server):
    client = server.client()
    # Rows that are more than DuckDB gathers before it hands the first of them on, then none.
    many = "SELECT i FROM range(1_000_000_000_000) r(i) WHERE i < 10_000_000 OR i % 1000003 < 0"
    reply = client.prepare(many)
    assert reply.more
    client.http.sock.settimeout(1.0)
    message = fetch(client.id, reply.result)
    with contextlib.suppress(TimeoutError):
        while client.raw(message):
            pass
    assert server.yard.active()
    client.http.close()
    wait_until(lambda: not server.yard.active())
    wait_until(lambda: not server.yard.clients(server.principal("root")))
    assert not len(server.listener.sessions)


@pytest.mark.parametrize("width", [10, 400])
def test_a_client_that_vanishes_while_it_is_sent_rows(server, width):
    """Those that fit into the buffers of the system, and those that do not."""
    client = server.client()
    message = prepare(client.id, f"SELECT repeat('x', {width}) FROM range(1_000_000)")
    with begun(server, message) as raw:
        assert raw.recv(1000)
    wait_until(lambda: not server.yard.clients(server.principal("root")))
    assert not len(server.listener.sessions)
    wait_until(lambda: server.yard.usage.open_results == 0)


def test_a_client_that_takes_no_rows_is_cut_off(tmp_path):
    with a_server(tmp_path, limits=replace(ServiceLimits(), stall_s=0.3)) as server:
        client = server.client()
        message = prepare(client.id, "SELECT repeat('x', 400) FROM range(1_000_000)")
        with begun(server, message) as raw:
            assert raw.recv(1000)
            wait_until(lambda: not server.yard.clients(server.principal("root")))
            assert not len(server.listener.sessions)


def test_a_client_may_come_back_over_another_tcp_connection(client):
    reply = client.prepare("SELECT i FROM range(100_000) r(i)")
    client.http.close()
    assert client.fetch(reply.result).rows
    client.http.close()
    assert client.rows("SELECT 1") == [(1,)]


def test_an_operator_cancels_a_query(server, client):
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.rows, SLOW)
        wait_until(lambda: server.yard.active())
        (query,) = server.yard.active()
        server.yard.cancel(server.principal("root"), query.id)
        with pytest.raises(Refused, match="cancelled"):
            asked.result()
    assert client.rows("SELECT 1") == [(1,)]


def test_a_revoked_token_ends_its_connections(tmp_path):
    with a_server(tmp_path) as server:
        client = server.client("ben")
        assert client.rows("SELECT 1") == [(1,)]
        server.yard.tokens.revoke("ben")
        wait_until(lambda: not server.yard.clients(server.principal("root")))
        with pytest.raises(Refused, match="Invalid connection id: token 'ben' was revoked"):
            client.rows("SELECT 1")
        wait_until(lambda: not len(server.listener.sessions))
        with pytest.raises(Refused, match="Invalid connection id: token 'ben' was revoked"):
            client.rows("SELECT 1")


def test_a_connection_whose_grants_change_is_closed(tmp_path):
    with a_server(tmp_path) as server:
        client = server.client("ben")
        server.yard.reload(replace(server.yard.config, grants={}))
        with pytest.raises(Refused, match="Invalid connection id: grants changed"):
            client.rows("SELECT 1")
        assert server.client("ben").rows("SELECT 1") == [(1,)]


def test_connections_that_are_left_alone_end(tmp_path):
    limits = replace(ServiceLimits(), result_ttl_s=0.2, idle_s=2.0, transaction_s=0.2)
    with a_server(tmp_path, limits=limits) as server:
        reading, writing = server.client(), server.client()
        reply = reading.prepare("SELECT i FROM range(10_000_000) r(i)")
        writing.rows("BEGIN TRANSACTION")
        wait_until(lambda: len(server.listener.sessions) == 1)
        with pytest.raises(Refused, match="Invalid connection id"):
            writing.rows("COMMIT")
        wait_until(lambda: not server.yard.active())
        wait_until(lambda: not len(server.listener.sessions))
        with pytest.raises(Refused):
            reading.fetch(reply.result)


def test_a_connection_that_was_idle_for_long_makes_way(tmp_path, monkeypatch):
    """A client that was killed says nothing: without this its token would be locked out."""
    limits = replace(ServiceLimits(), connections_per_token=2)
    with a_server(tmp_path, limits=limits) as server:
        first, _second = server.client(), server.client()
        with pytest.raises(Refused, match="2 connections, and 2 are allowed"):
            server.client()
        monkeypatch.setattr(sessions_module, "MAKES_WAY_S", 0.0)
        third = server.client()
        assert third.rows("SELECT 1") == [(1,)]
        with pytest.raises(Refused, match="Invalid connection id"):
            first.rows("SELECT 1")


def test_a_message_that_is_too_large(tmp_path):
    limits = replace(ServiceLimits(), request_bytes=20_000)
    with a_server(tmp_path, limits=limits) as server:
        client = server.client()
        with pytest.raises(Refused, match="20,000 are allowed"):
            client.rows(f"SELECT '{'x' * 30_000}'")


@pytest.mark.parametrize("number", [60, pytest.param(30_000, marks=pytest.mark.long)])
def test_malformed_messages_leave_nothing_behind(server, number, caplog):
    chance, right = random.Random(number), samples()
    client = server.client()
    placeholder = b"8301DB45E465DF67E5E7D85F48942E75"
    right = [data.replace(placeholder, client.id.encode()) for data in right]
    threads = threading.active_count()
    with caplog.at_level(logging.ERROR):
        found = fuzz((malformed(chance, right) for _ in range(number)), number, client.raw)
    print(found)
    found.check_server()
    assert not [record for record in caplog.records if record.exc_info], caplog.text
    wait_until(lambda: not server.yard.active())
    assert threading.active_count() < threads + 20
    other = server.client()
    assert other.rows("SELECT 1") == [(1,)]
    other.close()
    for session in list(server.listener.sessions._by_id.values()):
        server.listener.sessions.leave(session, "the test is over")

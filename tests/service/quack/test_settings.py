"""Settings of connections over Quack: how their queries are scheduled."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from waiting import wait_until

from tests.service.quack.plain_client import Refused
from tests.service.quack.test_listener import SLOW


def test_a_connection_says_how_its_queries_are_scheduled(server, client):
    reply = client.prepare("SET queryard.priority = 3; set session queryard.deadline to '1 h';")
    assert (reply.names, reply.rows, reply.more) == (["Success"], [], False)
    client.prepare("SET queryard.time_limit = '5 min'")
    assert client.rows("SHOW queryard.deadline") == [("1 h",)]
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.rows, SLOW)
        wait_until(server.yard.active)
        (query,) = server.yard.active()
        request = query.ticket.request
        assert (request.priority, request.time_limit_s, request.tenant) == (3.0, 300.0, "sales")
        assert request.deadline_s is not None
        server.yard.session.host.cancel(query.id)
        with pytest.raises(Refused):
            asked.result()
    client.prepare("RESET queryard.deadline")
    assert client.rows("SHOW queryard.deadline") == [("",)]


def test_settings_before_a_statement_hold_for_it(client):
    before = "SET queryard.priority = 1; SET queryard.plan = native;"
    assert client.rows(f"{before} SELECT 42") == [(42,)]
    with pytest.raises(Refused, match="50 ms"):
        client.rows(f"SET queryard.time_limit = '50 ms'; {SLOW}")


def test_a_connection_acts_for_a_tenant_below_its_own(client):
    client.prepare("SET queryard.tenant = 'sales/emea'")
    assert client.rows("SELECT 1") == [(1,)]
    with pytest.raises(Refused, match="not below 'sales'"):
        client.prepare("SET queryard.priority = 9; SET queryard.tenant = 'web'")
    shown = [client.rows(f"SHOW queryard.{name}") for name in ("tenant", "priority")]
    assert shown == [[("sales/emea",)], [("",)]]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SET queryard.priority = 'high'", "allowed is a finite number"),
        ("SET queryard.deadlin = '5 s'", "deadline"),
        ("SET queryard.deadline = 'soon'", "allowed is a time from now"),
    ],
)
def test_settings_that_are_not_possible(client, sql, words):
    with pytest.raises(Refused, match=words):
        client.prepare(sql)

"""Clients of a server: own queries, grants of tenants, limits, and what a client leaves behind."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from waiting import wait_until

from queryard.core.errors import QueryardError
from queryard.engine.errors import NotAllowed
from queryard.engine.sealing.access import Access
from queryard.history import HistoryReader
from queryard.results.errors import QueryCancelled
from queryard.service.config import ServiceLimits
from queryard.service.limits import Draining, TooLarge, TooMany, TooManyConnections, Usage
from queryard.service.problems import UnknownQuery, problem_of
from queryard.service.served import close_all
from service.yard_ground import ROWS, a_ground

LONG = "SELECT count(*) FROM range(100000000) a, range(1000) b"
ONLY_SMALL = {"sales": Access(frozenset({"small"}), sealed=True)}
MANY = "SELECT a.n, b.n AS m, repeat('x', 200) AS t FROM numbers a, numbers b"


@pytest.fixture
def ground(tmp_path):
    with a_ground(tmp_path) as made:
        yield made


def test_a_client_runs_queries_as_its_tenant(ground):
    with ground.yard.open(ground.principal("ann")) as ann:
        handle = ann.submit("SELECT count(*) FROM numbers")
        assert handle.result().fetchall() == [(ROWS,)]
        assert ann.tenant == "sales"
        assert handle.wait()
    wait_until(lambda: ground.yard.usage.open_results == 0)
    assert ground.yard.usage.connections == 0


def test_a_tenant_can_be_narrowed_and_not_left(ground):
    with ground.yard.open(ground.principal("ann")) as ann:
        with pytest.raises(NotAllowed, match="'web' is not below 'sales'"):
            ann.submit("SELECT 1", tenant="web")
        ann.submit("SELECT 1", tenant="sales/emea").result()
        ann.narrow("sales/emea")
        assert ann.tenant == "sales/emea"
        with pytest.raises(NotAllowed):
            ann.submit("SELECT 1", tenant="sales")
        with pytest.raises(NotAllowed):
            ann.narrow("web")
        with pytest.raises(NotAllowed):
            ann.narrow("salesforce")
        ann.narrow("sales")
        assert ann.tenant == "sales"


def test_names_that_cannot_be_written_down_are_refused(ground):
    with ground.yard.open(ground.principal("ann")) as ann:
        for options in ({"tenant": "sales/\ud800"}, {"idempotency_key": "\ud800"}):
            with pytest.raises(QueryardError, match="no valid text"):
                ann.submit("SELECT 1", **options)
        with pytest.raises(QueryardError, match="no valid text"):
            ann.narrow("sales/\ud800")
        assert ground.yard.usage.open_results == 0


def test_another_tenants_query_is_as_unknown_as_one_that_never_was(ground):
    yard = ground.yard
    ann, ben, eve, root = map(ground.principal, ("ann", "ben", "eve", "root"))
    with yard.open(ann) as client:
        handle = client.submit(LONG)
        for principal in (ann, ben, root):
            assert yard.submitted(principal, handle.id).id == handle.id
        with pytest.raises(UnknownQuery) as others:
            yard.submitted(eve, handle.id)
        with pytest.raises(UnknownQuery) as unknown:
            yard.submitted(eve, "0-0")
        assert str(others.value).replace(handle.id, "0-0") == str(unknown.value)
        with pytest.raises(UnknownQuery):
            yard.cancel(eve, handle.id)
        assert not handle.ended
        yard.cancel(ben, handle.id)
        assert handle.wait(10)


def test_a_closed_client_leaves_nothing_behind(ground):
    yard = ground.yard
    client = yard.open(ground.principal("ann"))
    handles = [client.submit(LONG), client.submit(MANY), client.submit(LONG + " WHERE b.range > 1")]
    client.close()
    assert all(handle.ended for handle in handles)
    with pytest.raises(QueryCancelled):
        handles[0].result()
    wait_until(lambda: yard.active() == [] and yard.usage.open_results == 0)
    assert yard.usage.connections == 0
    with pytest.raises(QueryardError, match="closed"):
        client.submit("SELECT 1")


def test_a_revoked_token_loses_its_connections(ground):
    client = ground.yard.open(ground.principal("ann"))
    handle = client.submit(LONG)
    ground.yard.tokens.revoke("ann")
    assert handle.wait(20)
    wait_until(lambda: client.closed)
    assert "revoked" in str(handle.error)


def test_all_clients_are_cancelled_before_one_is_waited_for(ground):
    order = []

    class Slow:
        principal = ground.principal("ann")

        def begin_close(self, reason):
            order.append(reason)
            return lambda: order.append("waited")

    close_all([Slow(), Slow()], lambda who: f"{who.name} is out")
    assert order == ["ann is out", "ann is out", "waited", "waited"]


def test_a_look_that_fails_ends_no_other(ground, monkeypatch):
    told, looked = [], []
    monkeypatch.setattr("queryard.service.yard._log.exception", lambda *words: told.append(words))
    monkeypatch.setattr("queryard.service.yard.SWEEP_S", 0.01)
    ground.yard.every_second(lambda: looked.append(1 // 0))
    ground.yard.every_second(lambda: looked.append(1))
    wait_until(lambda: len(looked) > 3)
    assert len(told) == 1
    test_a_revoked_token_loses_its_connections(ground)


def test_a_token_that_is_made_again_is_another_one(ground):
    yard, before = ground.yard, ground.principal("ann")
    client = yard.open(before)
    yard.tokens.revoke("ann")
    yard.tokens.add("ann", before.tenant, before.role)
    assert ground.principal("ann") != before
    wait_until(lambda: client.closed)
    assert "revoked" in client.why_closed


def test_a_draining_yard_takes_no_queries_and_lets_the_running_end(ground):
    client = ground.yard.open(ground.principal("ann"))
    handle = client.submit("SELECT sum(n) FROM numbers")
    ground.yard.stop_admission("the server is about to stop")
    assert ground.yard.draining
    with pytest.raises(Draining, match="about to stop"):
        client.submit("SELECT 1")
    with pytest.raises(Draining):
        ground.yard.open(ground.principal("eve"))
    assert handle.result().fetchall() == [(sum(range(ROWS)),)]


def test_limits_name_the_token_the_limit_and_the_remedy(tmp_path):
    limits = ServiceLimits(open_results=2, connections=3, connections_per_token=2)
    with a_ground(tmp_path, limits=limits) as ground:
        yard = ground.yard
        clients = [yard.open(ground.principal("ann")) for _ in range(2)]
        with pytest.raises(TooManyConnections, match="'ann' has 2 connections"):
            yard.open(ground.principal("ann"))
        yard.open(ground.principal("eve"))
        with pytest.raises(TooManyConnections, match="the server has 3 connections"):
            yard.open(ground.principal("ben"))
        handles = [clients[0].submit(LONG) for _ in range(2)]
        with pytest.raises(TooMany, match="2 queries that run"):
            clients[1].submit("SELECT 1")
        handles[0].cancel()
        assert handles[0].wait(10)
        wait_until(lambda: yard.usage.open_results < 2)
        clients[1].submit("SELECT 1").result()


def test_a_long_statement_is_refused(tmp_path):
    with a_ground(tmp_path, limits=ServiceLimits(request_bytes=1000)) as ground:
        client = ground.yard.open(ground.principal("ann"))
        client.submit(f"SELECT '{'x' * 900}'").result()
        with pytest.raises(TooLarge, match="1,000 are allowed"):
            client.submit(f"SELECT '{'x' * 1000}'")
        with pytest.raises(TooLarge):
            client.submit(f"SELECT '{'é' * 600}'")
        assert ground.yard.usage.open_results <= 1


def test_statements_have_a_rate_with_a_time_to_try_again():
    now = [0.0]
    usage = Usage(ServiceLimits(statements_per_s=4), clock=lambda: now[0])
    for _ in range(4):
        usage.count_statement("ann")
    usage.count_statement("eve")
    with pytest.raises(TooMany, match="4 statements per second") as refused:
        usage.count_statement("ann")
    assert refused.value.retry_after_s == pytest.approx(0.25)
    now[0] = 0.25
    usage.count_statement("ann")
    with pytest.raises(TooMany):
        usage.count_statement("ann")


def test_one_key_is_one_query_and_counts_once(ground):
    client = ground.yard.open(ground.principal("ann"))
    first = client.submit(LONG, idempotency_key="k")
    again = client.submit(LONG, idempotency_key="k")
    assert first.id == again.id
    assert ground.yard.usage.open_results == 1
    first.cancel()
    first.wait(10)
    wait_until(lambda: ground.yard.usage.open_results == 0)


@pytest.mark.parametrize(
    "sql",
    [
        "BEGIN",
        "SET TimeZone = 'UTC'",
        "CREATE TEMP TABLE t AS SELECT 1",
        "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 1",
        "CREATE MACRO m(a) AS a + 1",
        "PREPARE p AS SELECT 1",
        "SELECT 1; SET threads = 1",
        "USE main",
        "ATTACH ':memory:' AS m",
    ],
)
def test_a_shared_client_keeps_no_state(ground, sql):
    with pytest.raises(NotAllowed, match="state of a session"):
        ground.yard.shared(ground.principal("ann")).submit(sql)
    assert ground.yard.usage.open_results == 0


def test_requests_of_a_token_share_a_client_until_its_grants_change(ground):
    yard, ann = ground.yard, ground.principal("ann")
    assert yard.shared(ann) is yard.shared(ann)
    assert yard.shared(ann) is not yard.shared(ground.principal("ben"))
    assert yard.usage.connections == 0
    before, eves = yard.shared(ann), yard.shared(ground.principal("eve"))
    handle = before.submit(LONG)
    yard.reload(replace(yard.config, grants=ONLY_SMALL))
    assert yard.shared(ground.principal("eve")) is eves
    assert yard.shared(ann) is not before
    with pytest.raises(QueryardError, match="numbers"):
        yard.shared(ann).submit("SELECT * FROM numbers").result()
    assert not handle.wait(0)  # what runs goes on
    assert not before.closed
    handle.cancel()
    wait_until(lambda: before.closed)


def test_a_revoked_token_loses_what_runs_with_its_former_grants(ground):
    handle = ground.yard.shared(ground.principal("ann")).submit(LONG)
    ground.yard.reload(replace(ground.yard.config, grants=ONLY_SMALL))
    ground.yard.tokens.revoke("ann")
    assert handle.wait(20)
    assert "revoked" in str(handle.error)


def test_connections_whose_grants_change_are_closed(ground):
    yard = ground.yard
    ann, eve = yard.open(ground.principal("ann")), yard.open(ground.principal("eve"))
    handle = ann.submit(LONG)
    yard.reload(yard.config)
    assert not ann.closed
    yard.reload(replace(yard.config, grants=ONLY_SMALL))
    assert handle.wait(20)
    assert "grants changed" in str(handle.error)
    with pytest.raises(QueryardError, match=r"grants changed: tenant 'sales' .*; connect again"):
        ann.submit("SELECT 1")
    assert eve.submit("SELECT 1").result().fetchall() == [(1,)]
    assert yard.usage.connections == 1


def test_what_was_kept_for_former_grants_is_freed(ground):
    yard, ann = ground.yard, ground.principal("ann")
    before = yard.config
    reaches = yard.session.host._reaches
    for tables in ("numbers", "small", "numbers", "small"):
        grants = {"sales": Access(frozenset({tables}), sealed=True)}
        yard.reload(replace(before, grants=grants))
        assert yard.shared(ann).describe(f"SELECT * FROM {tables}").names
        with yard.open(ann) as client:
            assert client.describe("SELECT 1").names == ("1",)
    yard.reload(before)
    assert yard.shared(ann).describe("SELECT n FROM numbers").names == ("n",)
    wait_until(lambda: not yard._retired)
    yard.reload(before)
    assert len(reaches._reaches) <= 2  # all, and all of a sealed client
    assert len(reaches._describers) == 1


def test_a_connection_that_opens_while_grants_change_is_closed(ground, monkeypatch):
    yard, real = ground.yard, ground.yard._client

    def slow(*given, **named):
        made = real(*given, **named)
        monkeypatch.setattr(yard, "_client", real)
        yard.reload(replace(yard.config, grants=ONLY_SMALL))
        return made

    monkeypatch.setattr(yard, "_client", slow)
    assert "grants changed" in yard.open(ground.principal("ann")).why_closed
    assert yard.usage.connections == 0


def test_a_tenant_does_not_write_where_the_tokens_are(tmp_path):
    grants = {"sales": Access(sealed=True, output=tmp_path)}
    with a_ground(tmp_path, grants=grants) as ground:
        client = ground.yard.open(ground.principal("ann"))
        with pytest.raises(NotAllowed, match="files of its own"):
            client.submit("COPY small TO 'private/tokens.json'")
        client.submit("COPY small TO 'small.csv'").result()
        ground.yard.reload(ground.yard.config)
        assert not client.closed


def test_values_stay_out_of_a_redacted_history(tmp_path):
    file = tmp_path / "history.sqlite"
    with a_ground(tmp_path, redact=True, session={"history": file}) as ground:
        client = ground.yard.open(ground.principal("ann"))
        client.submit("SELECT 'hunter2' AS pw, n -- for bob\nFROM numbers LIMIT 1").result()
        with pytest.raises(QueryardError, match="hunter3"):
            client.submit("SELECT CAST('hunter3' AS INTEGER)").result().fetchall()
    with HistoryReader(file) as reader:
        first, second = reader.queries()
    assert first.sql == "SELECT ? AS pw, n FROM numbers LIMIT ?"
    assert "hunter" not in second.sql + second.error
    assert second.error.startswith("Conversion Error")


def test_calls_come_from_many_threads(ground):
    def work(name: str) -> None:
        for _ in range(5):
            with ground.yard.open(ground.principal(name)) as client:
                assert client.submit("SELECT sum(a) FROM small").result().fetchall() == [(6,)]

    threads = [threading.Thread(target=work, args=(name,)) for name in ("ann", "ben", "eve") * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ground.yard.usage.connections == 0
    wait_until(lambda: ground.yard.usage.open_results == 0)


@pytest.mark.parametrize(
    ("sql", "status", "sqlstate"),
    [
        ("SELECT * FROM nowhere", 422, "42P01"),
        ("SELECT nothing FROM numbers", 422, "42703"),
        ("SELEC 1", 422, "42601"),
        ("SELECT nofunction(1)", 422, "42883"),
        ("SELECT 'a'::INTEGER", 422, "22P02"),
        ("COPY numbers TO 'x.csv'", 403, "42501"),
    ],
)
def test_errors_have_a_status_and_an_sqlstate(ground, sql, status, sqlstate):
    client = ground.yard.open(ground.principal("ann"))
    with pytest.raises(QueryardError) as raised:
        client.submit(sql).result().fetchall()
    found = problem_of(raised.value)
    assert (found.kind.status, found.sqlstate) == (status, sqlstate)
    assert found.detail == str(raised.value)

"""Clients of one host: what one changes is its own, and holds up no other query."""

from __future__ import annotations

import gc
import time

import duckdb
import pytest
from service.anywhere import PLACES, a_session
from waiting import wait_until

import queryard
from queryard.core.errors import QueryardError
from queryard.live.client import Client

from .crowds import ENDLESS, check_empty


@pytest.fixture
def session(data, tmp_path):
    with queryard.connect(data, slots=2, memory="1 GB", temp=tmp_path / "temp") as opened:
        yield opened


@pytest.fixture(params=PLACES)
def anywhere(request, data, tmp_path):
    """The same, and one on a server."""
    (tmp_path / "served").mkdir()
    options = {"slots": 2, "memory": "1 GB", "temp": tmp_path / "temp"}
    with a_session(request.param, tmp_path / "served", data, **options) as opened:
        yield opened


@pytest.fixture
def other(session):
    client = Client.open(session.host, memory_bytes=64 << 20, name="other", tenant="lab")
    yield client
    client.close()


def rows(client, sql, **options):
    ticket = client.submit(sql, **options)
    found = []
    for batch in ticket.output:
        found += [tuple(row.values()) for row in batch.to_pylist()]
    assert ticket.over.wait(30)
    return found


def on_own_connection(session, handle) -> bool:
    return session.client.needs_own(handle._ticket.request)


# --- settings ------------------------------------------------------------------------------------


def test_a_setting_holds_for_later_queries_and_they_run_side_by_side(session):
    session.sql("SET TimeZone = 'America/New_York'")
    sql = "SELECT current_setting('TimeZone') AS zone, count(*) AS n FROM facts"
    assert session.sql(sql).fetchall() == [("America/New_York", 400_000)]
    handles = [session.submit(ENDLESS + f" AND i <> {number}") for number in range(2)]
    wait_until(lambda: all(handle.status == "running" for handle in handles), 30.0, "both to run")
    assert not any(on_own_connection(session, handle) for handle in handles)
    for handle in handles:
        handle.cancel()
    check_empty(session)


def test_a_setting_is_the_clients_own(session, other):
    session.sql("SET TimeZone = 'America/New_York'")
    session.sql("SET default_null_order = 'nulls_first'")
    sql = "SELECT current_setting('TimeZone') = 'America/New_York' AS same FROM dims LIMIT 1"
    assert session.sql(sql).fetchall() == [(True,)]
    assert rows(other, sql) == [(False,)]
    order = "SELECT v FROM (VALUES (1), (NULL)) AS t(v) ORDER BY v"
    assert session.sql(order).fetchall() == [(None,), (1,)]
    assert rows(other, order) == [(1,), (None,)]


def test_a_setting_of_the_whole_instance_is_taken_off_again(session, other):
    session.sql("SET GLOBAL default_order = 'desc'")
    sql = "SELECT key FROM dims ORDER BY key LIMIT 1"
    for _ in range(4):
        assert session.sql(sql).fetchall() == [(999,)]
        assert rows(other, sql) == [(0,)]


def test_a_setting_is_reset(session):
    before = session.sql("SELECT current_setting('TimeZone')").fetchall()
    session.sql("SET TimeZone = 'Asia/Tokyo'")
    session.sql("RESET TimeZone")
    assert session.sql("SELECT current_setting('TimeZone') FROM dims LIMIT 1").fetchall() == before
    assert session.client.instance.settings == ()


def test_queries_with_other_settings_are_other_queries(session, other):
    session.sql("SET default_null_order = 'nulls_first'")
    sql = "SELECT small FROM facts ORDER BY small LIMIT 1"
    handle, ticket = session.submit(sql), other.submit(sql)
    assert handle.result(30).fetchall() == [(None,)]
    assert [batch.to_pylist() for batch in ticket.output] == [[{"small": 0}]]


def test_a_query_right_behind_a_setting_sees_it(session):
    session.submit("SET TimeZone = 'Asia/Tokyo'")
    later = session.submit("SELECT current_setting('TimeZone') FROM dims LIMIT 1")
    assert later.result(30).fetchall() == [("Asia/Tokyo",)]


def test_a_wrong_setting_changes_nothing(session):
    with pytest.raises(queryard.QueryFailed, match="no_such_setting"):
        session.sql("SET no_such_setting = 1")
    assert session.client.instance.settings == ()
    assert session.sql("SELECT count(*) FROM dims").fetchall() == [(1000,)]


def test_variables_are_read_where_they_were_set(session):
    session.sql("SET VARIABLE lowest = 997")
    sql = "SELECT key FROM dims WHERE key > getvariable('lowest') ORDER BY key"
    assert session.sql(sql).fetchall() == [(998,), (999,)]
    assert not session.client.needs_own(session.submit("SELECT 1")._ticket.request)


def test_prepared_statements_hold_up_no_other_query(session):
    session.sql("PREPARE one AS SELECT key FROM dims WHERE key = $1")
    assert session.sql("EXECUTE one(7)").fetchall() == [(7,)]
    assert not on_own_connection(session, session.submit("SELECT count(*) FROM facts"))


# --- transactions --------------------------------------------------------------------------------


def test_a_transaction_around_reads_of_files_holds_nothing(session):
    session.sql("BEGIN")
    handles = [session.submit(ENDLESS + f" AND i <> {number}") for number in range(2)]
    wait_until(lambda: all(handle.status == "running" for handle in handles), 30.0, "both to run")
    for handle in handles:
        handle.cancel()
    session.sql("CREATE TEMP TABLE made AS SELECT 1 AS one")
    assert session.sql("FROM made").fetchall() == [(1,)]
    session.sql("ROLLBACK")
    with pytest.raises(queryard.QueryFailed, match="made"):
        session.sql("FROM made").fetchall()


def test_after_an_error_a_transaction_refuses_all_until_it_ends(session):
    session.sql("CREATE TEMP TABLE t (i INTEGER)")
    session.sql("BEGIN")
    with pytest.raises(queryard.QueryFailed):
        session.sql("INSERT INTO t VALUES ('no number')")
    with pytest.raises(queryard.QueryFailed, match="aborted"):
        session.sql("SELECT count(*) FROM dims").fetchall()
    session.sql("ROLLBACK")
    assert session.sql("SELECT count(*) FROM dims").fetchall() == [(1000,)]


# --- what belongs to one client ------------------------------------------------------------------


def test_temporary_tables_are_the_clients_own(session, other):
    session.sql("CREATE TEMP TABLE mine AS SELECT 42 AS answer")
    ticket = other.submit("SELECT * FROM mine")
    with pytest.raises(queryard.QueryFailed, match="mine"):
        ticket.output.schema(30)
    assert ticket.request.tenant == "lab"
    assert session.sql("FROM mine").fetchall() == [(42,)]


def test_clients_do_not_wait_for_each_others_connection(session, other):
    session.sql("CREATE TEMP TABLE mine AS SELECT 1 AS one")
    blocking = session.submit("SELECT count(*) FROM mine, range(100000000000) AS r(i)")
    wait_until(lambda: blocking.status == "running", 30.0, "the start")
    ticket = other.submit("CREATE TEMP TABLE theirs AS SELECT 2 AS two")
    assert ticket.over.wait(30)
    assert ticket.error is None
    blocking.cancel()


# --- by id ---------------------------------------------------------------------------------------


def test_the_same_key_runs_once(anywhere):
    first = anywhere.submit("SELECT count(*) FROM facts", idempotency_key="nightly")
    again = anywhere.submit("SELECT count(*) FROM facts", idempotency_key="nightly")
    assert first.id == again.id
    assert again.result(30).fetchall() == [(400_000,)]
    assert first.result(30).fetchall() == [(400_000,)]
    with pytest.raises(QueryardError, match="another statement"):
        anywhere.submit("SELECT 1", idempotency_key="nightly")


def test_a_key_whose_rows_are_not_kept_is_refused(session):
    assert session.submit("SELECT count(*) FROM facts", idempotency_key="nightly").wait(30)
    gc.collect()
    with pytest.raises(QueryardError, match="kept no more"):
        session.submit("SELECT count(*) FROM facts", idempotency_key="nightly")


def test_a_query_that_is_kept_outlives_its_handle(anywhere):
    name = anywhere.submit("SELECT key FROM dims WHERE key < 3 ORDER BY key", keep="1 min").id
    wait_until(lambda: not anywhere.queries(), 30.0)
    assert anywhere.query(name).result(10).fetchall() == [(0,), (1,), (2,)]
    with pytest.raises(QueryardError, match="unknown query"):
        anywhere.query("no-such-query")


def test_rows_that_are_kept_expire(session):
    name = session.submit("SELECT key FROM dims", keep=0.05).id
    wait_until(lambda: not session.queries(), 30.0)
    time.sleep(0.1)
    with pytest.raises(QueryardError, match="unknown query"):
        session.query(name)


def test_a_handle_that_is_thrown_away_takes_nothing_from_another(anywhere):
    handle = anywhere.submit("SELECT key FROM dims WHERE key < 2 ORDER BY key")
    assert anywhere.query(handle.id).id == handle.id
    assert anywhere.submit("SELECT 1", idempotency_key="k").id
    wait_until(lambda: handle.status == "finished", 30.0)
    assert anywhere.query(handle.id).status == "finished"
    gc.collect()
    assert handle.result(10).fetchall() == [(0,), (1,)]


def test_rows_that_expire_stay_with_a_handle_that_is_held(session):
    handle = session.submit("SELECT key FROM dims WHERE key < 2 ORDER BY key", keep=0.01)
    assert handle.wait(30)
    time.sleep(0.05)
    session.sql("SELECT 1").fetchall()
    assert handle.result(10).fetchall() == [(0,), (1,)]


def test_rows_that_were_read_are_not_kept(session):
    name = session.submit("SELECT key FROM dims WHERE key < 2", keep="1 min")
    assert len(name.result(10).fetchall()) == 2
    assert name.wait(30)
    query = name.id
    del name
    gc.collect()
    with pytest.raises(QueryardError, match="unknown query"):
        session.query(query).result(10)


def test_a_key_with_other_parameters_is_refused(anywhere):
    first = anywhere.submit("SELECT ?::INTEGER AS n", [1], idempotency_key="p")
    assert first.result(10).fetchall() == [(1,)]
    with pytest.raises(QueryardError, match="other parameters"):
        anywhere.submit("SELECT ?::INTEGER AS n", [2], idempotency_key="p")


def test_a_setting_by_an_expression_holds_by_its_value(session):
    session.sql("SET VARIABLE zone = 'Asia/Tokyo'")
    session.sql("SET TimeZone = getvariable('zone')")
    sql = "SELECT current_setting('TimeZone'), count(*) FROM dims"
    assert session.sql(sql).fetchall() == [("Asia/Tokyo", 1000)]


def test_how_progress_is_shown_does_not_leak_into_other_queries(session, other, capfd):
    session.sql("SET enable_progress_bar_print = true")
    session.sql("SET enable_progress_bar = false")
    session.sql("SELECT count(*) FROM facts").fetchall()
    sql = "SELECT current_setting('enable_progress_bar') FROM dims LIMIT 1"
    assert rows(other, sql) == [(True,)]
    assert capfd.readouterr().out == ""


def test_reads_beside_writes_have_the_settings_of_their_client(tmp_path):
    with _writer(tmp_path) as writer:
        writer.sql("SET default_null_order = 'nulls_first'")
        sql = "SELECT v FROM t ORDER BY v"
        assert not writer.client.needs_own(writer.submit(sql)._ticket.request)
        assert writer.sql(sql).fetchall() == [(None,), (1,)]
        writer.sql("RESET default_null_order")
        assert writer.sql(sql).fetchall() == [(1,), (None,)]


def _writer(folder):
    with duckdb.connect(folder / "shop.duckdb") as made:
        made.execute("CREATE TABLE t AS FROM (VALUES (1), (NULL)) AS t(v)")
    return queryard.connect(folder / "shop.duckdb", write=True, slots=2, memory="512 MB")

"""Connections over Quack: statements, rows, the catalog, and writing."""

from __future__ import annotations

import http.client
import select
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from waiting import wait_until

from queryard.service.config import ServiceLimits
from queryard.service.quack.v1.types import Id, LogicalType
from tests.service.quack.plain_client import Client, Refused, prepare
from tests.service.quack.served_quack import a_server
from tests.service.quack.test_codec import captured

SCHEMAS = """
SELECT catalog_name, schema_name
FROM information_schema.schemata
WHERE catalog_name NOT IN ('system', 'temp')
ORDER BY ALL
\t"""
TABLES = """
SELECT schema_name, sql, 'table'
FROM duckdb_tables()
UNION ALL
SELECT schema_name, view_name, 'view'
FROM duckdb_views()
\t"""
INTEGER, VARCHAR = LogicalType(Id.INTEGER), LogicalType(Id.VARCHAR)
SLOW = "SELECT count(*) FROM range(100_000) a(i), range(1_000_000) b(j) WHERE (i * j) % 7 = 3"


# --- connecting ----------------------------------------------------------------------------------


def test_a_token_opens_a_connection_and_acts_for_its_tenant(server):
    client = server.client()
    assert len(client.id) == 32
    client.prepare("SELECT 1")
    (session,) = [s for s in server.yard.clients(server.principal("root")) if not s.closed]
    assert (session.tenant, session.protocol) == ("sales", "quack")
    client.close()
    assert not server.yard.clients(server.principal("root"))


def test_a_token_that_is_not_known(server):
    with pytest.raises(Refused, match="Authentication failed"):
        Client(server.port, "qy_nothing")


def test_a_client_of_version_3_is_told_the_version_that_is_known(server):
    with pytest.raises(Refused, match=r"version 3 of Quack.*this server knows version 1"):
        Client(server.port, server.secrets["ann"], versions=(3, 3))


def test_an_id_that_is_not_known(server, client):
    with pytest.raises(Refused, match="Invalid connection id"):
        client.ask(prepare("ABCDEF", "SELECT 1"))


def test_other_paths_and_methods(server):
    raw = http.client.HTTPConnection("127.0.0.1", server.port)
    for method, path, status in (("GET", "/", 200), ("OPTIONS", "/quack", 204), ("GET", "/x", 404)):
        raw.request(method, path)
        answer = raw.getresponse()
        answer.read()
        assert (answer.status, answer.getheader("access-control-allow-origin")) == (status, "*")
    raw.close()


def test_a_client_without_a_token_is_given_little_time_and_room(tmp_path):
    with a_server(tmp_path, limits=replace(ServiceLimits(), login_s=0.3)) as server:
        with pytest.raises(Refused, match="16,384 bytes, and names no connection"):
            Client(server.port, "x" * 1_000_000)
        client = server.client()
        with pytest.raises(Refused, match="Invalid connection id"):
            client.ask(prepare("ABCDEF", f"SELECT {'1' * 1_000_000}"))
        client = server.client()
        assert client.rows(f"SELECT length('{'1' * 1_000_000}')") == [(1_000_000,)]
        with socket.create_connection(("127.0.0.1", server.port)) as raw:
            raw.sendall(b"POST /quack HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
            for _ in range(300):
                raw.sendall(b"\1")
                if select.select([raw], [], [], 0.03)[0]:
                    break
            assert b"did not come in time" in raw.recv(10_000)


# --- statements ----------------------------------------------------------------------------------


def test_rows_and_columns(client):
    reply = client.prepare("SELECT 42 AS answer, 'hi' AS s, NULL AS n")
    assert (reply.names, reply.more) == (["answer", "s", "n"], False)
    assert [kind.id.name for kind in reply.types] == ["INTEGER", "VARCHAR", "INTEGER"]
    assert reply.rows == [(42, "hi", None)]


@pytest.mark.parametrize(
    ("sql", "name", "rows"),
    [
        ("CREATE TEMP TABLE made(i INTEGER)", "Count", []),
        ("CREATE OR REPLACE TEMP TABLE made AS SELECT 1 AS i", "Count", [(1,)]),
        ("SET TimeZone = 'UTC'", "Success", []),
        ("BEGIN TRANSACTION", "Success", []),
    ],
)
def test_statements_without_rows_have_a_column(client, sql, name, rows):
    reply = client.prepare(sql)
    assert (reply.names, reply.rows, reply.more) == ([name], rows, False)


def test_of_several_statements_the_first_with_rows_answers(client):
    assert client.rows("SET TimeZone = 'UTC'; SELECT 1 AS a; SELECT 2") == [(1,)]
    assert client.rows("CREATE TEMP TABLE zz(i INTEGER); INSERT INTO zz VALUES (3), (4)") == [(2,)]
    assert client.rows("SELECT i FROM zz; DROP TABLE zz") == [(3,), (4,)]
    with pytest.raises(Refused, match="zz does not exist"):
        client.rows("SELECT i FROM zz")


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT * FROM nope", "Table with name nope does not exist!"),
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        ("SELECT error('boom')", "boom"),
        ("", "Query did not return any columns"),
        ("ATTACH 'x.db'", "ATTACH is nothing for a client of a server"),
        ("SELECT * FROM read_csv('/etc/passwd')", "read_csv is nothing for a client"),
        (
            "SELECT 'POINT(1 2)'::GEOMETRY('OGC:CRS84') AS g",
            "a GEOMETRY with a coordinate system",
        ),
        ("SELECT NULL::TIMESTAMPTZ_NS AS t", "TIMESTAMPTZ_NS is not known to clients of DuckDB"),
    ],
)
def test_errors_have_duckdbs_text_without_its_heading(client, sql, words):
    with pytest.raises(Refused) as raised:
        client.rows(sql)
    assert str(raised.value).startswith(words) or words in str(raised.value)
    assert " Error: " not in str(raised.value)
    assert client.rows("SELECT 5") == [(5,)]


def test_times_keep_their_zone(client):
    """Arrow has none: they need a run of their own, whatever the statement is."""
    noon = client.rows("SELECT TIMETZ '12:00:00+02' AS t, [TIMETZ '12:00:00+02'] AS l")
    assert noon[0][1] == [noon[0][0]]
    assert int.from_bytes(noon[0][0], "little") >> 24 == 12 * 3600 * 10**6
    client.rows("CREATE TEMP TABLE zones(t TIMETZ)")
    made = client.rows("INSERT INTO zones VALUES ('12:00:00+02') RETURNING t")
    assert made == client.rows("SELECT t FROM zones") == [(noon[0][0],)]


# --- rows ----------------------------------------------------------------------------------------


def test_large_results_are_fetched_in_numbered_replies(client):
    reply = client.prepare("SELECT n, t FROM numbers UNION ALL SELECT n, t FROM numbers")
    assert reply.more
    found, number = reply.rows, 0
    while (more := client.fetch(reply.result)).number is not None:
        number += 1
        assert more.number == number
        found += more.rows
    assert (more.rows, len(found)) == ([], 60_000)
    assert sorted(found)[::2] == [(n, f"row {n}") for n in range(30_000)]
    # Every thread of a client asks until it hears that there is nothing.
    assert client.fetch(reply.result).number is None


def test_several_threads_fetch_at_once(server, client):
    reply = client.prepare("SELECT i FROM range(1_000_000) r(i)")
    found = [reply.rows]

    def read(_):
        own = Client.__new__(Client)
        own.http = http.client.HTTPConnection("127.0.0.1", server.port)
        own.id = client.id
        mine = {}
        while (more := own.fetch(reply.result)).number is not None:
            mine[more.number] = more.rows
        own.http.close()
        return mine

    with ThreadPoolExecutor(4) as pool:
        parts = {}
        for each in pool.map(read, range(4)):
            assert not parts.keys() & each.keys()
            parts.update(each)
    assert sorted(parts) == list(range(1, len(parts) + 1))
    found += [parts[number] for number in sorted(parts)]
    assert [row for rows in found for row in rows] == [(i,) for i in range(1_000_000)]


def test_statements_of_one_connection_come_one_after_another(server, client):
    """Also where several threads of a client send them, and some fail."""

    def ask(thread):
        own = Client.__new__(Client)
        own.http, own.id = http.client.HTTPConnection("127.0.0.1", server.port), client.id
        for number in range(thread, 80, 4):
            if number % 10 == 3:
                with pytest.raises(Refused, match="no such row"):
                    own.prepare(f"SELECT error('no such row {number}')")
            else:
                assert own.prepare(f"SELECT {number}").rows == [(number,)]
        own.http.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
    assert not server.listener.sessions.find(client.id).busy


def test_a_statement_closes_the_result_before_it(server, client):
    reply = client.prepare("SELECT i FROM range(10_000_000) r(i)")
    assert reply.more
    client.prepare("SELECT 1")
    with pytest.raises(Refused, match="Result has been closed"):
        client.fetch(reply.result)
    wait_until(lambda: not server.yard.active())


def test_an_error_that_comes_with_later_rows(client):
    sql = "SELECT CASE WHEN i = 900000 THEN error('late')::INT ELSE i END FROM range(1000000) r(i)"
    with pytest.raises(Refused, match="late"):
        client.rows(sql)
    assert client.rows("SELECT 1") == [(1,)]


# --- the catalog ---------------------------------------------------------------------------------


def test_what_attach_is_told(client):
    assert client.rows(SCHEMAS) == [("memory", "main"), ("memory", "shop"), ("memory", "shop.old")]
    found = {(schema, kind, text) for schema, text, kind in client.rows(TABLES)}
    assert found == {
        ("main", "table", 'CREATE TABLE "main"."numbers"("n" BIGINT, "t" VARCHAR);'),
        ("main", "table", 'CREATE TABLE "main"."small"("a" BIGINT, "b" VARCHAR);'),
        (
            "shop",
            "table",
            'CREATE TABLE "shop"."orders"("id" INTEGER, "item" VARCHAR DEFAULT (\'thing\'));',
        ),
        (
            "shop",
            "table",
            'CREATE TABLE "shop"."Odd name"("a b" INTEGER, "select" VARCHAR);',
        ),
        ("shop", "view", "pens"),
        ("shop", "view", "small"),  # the client would take it for that of main
        ("shop", "view", "stamped"),  # the client cannot compute its default
        ("shop.old", "table", 'CREATE TABLE "shop.old"."deep"("x" INTEGER);'),
    }


def test_attach_is_told_of_what_there_is_now(client):
    def is_told():
        return any(row[0] == "shop" and '"fresh"' in row[1] for row in client.rows(TABLES))

    assert not is_told()
    client.rows("CREATE TABLE shop.fresh(i INTEGER)")
    assert is_told()
    client.rows("DROP TABLE shop.fresh")
    assert not is_told()


def test_the_questions_of_attach_are_statements(server, client, monkeypatch):
    counted = []
    monkeypatch.setattr(server.yard.usage, "count_statement", counted.append)
    client.rows(SCHEMAS)
    client.rows(TABLES)
    assert counted == ["ann", "ann"]


def test_a_tenant_is_told_of_its_own_tables_only(server):
    client = server.client("eve")
    assert client.rows(SCHEMAS) == [("memory", "main")]
    assert [row[1] for row in client.rows(TABLES)] == [
        'CREATE TABLE "main"."small"("a" BIGINT, "b" VARCHAR);'
    ]
    with pytest.raises(Refused, match="numbers does not exist"):
        client.rows("SELECT #1 FROM numbers")
    client.close()


def test_the_questions_are_those_of_a_real_client():
    assert SCHEMAS.encode() in captured("attach_schemas.req")
    assert TABLES.encode() in captured("attach_tables.req")


def test_attached_tables_are_read_by_the_names_that_a_client_uses(client):
    client.rows(SCHEMAS), client.rows(TABLES)
    assert client.rows("SELECT #2, #1 FROM small") == [("x", 1), (None, 2), ("z", 3)]
    assert client.rows("SELECT #1 FROM orders") == [(1,)]
    assert client.rows("SELECT #1 FROM deep") == [(7,)]
    assert client.rows('FROM shop."small"') == []
    assert client.rows("FROM shop.pens") == [(1, "pen")]
    assert client.rows("SELECT NULL::BOOLEAN FROM small") == [(None,)] * 3


def test_a_table_that_has_changed_since_it_was_attached(tmp_path):
    with a_server(tmp_path) as server:
        client = server.client()
        client.rows(TABLES)
        file = tmp_path / "data" / "small.parquet"
        pq.write_table(pa.table({"a": ["now", "a", "text"], "b": [1, 2, 3]}), file)

        def is_noticed():
            try:
                client.rows("SELECT #1 FROM small")
            except Refused as error:
                return "has other columns than when it was attached" in str(error)
            return False

        wait_until(is_noticed)
        client.close()
        client = server.client()
        client.rows(TABLES)
        assert client.rows("SELECT #1 FROM small") == [("now",), ("a",), ("text",)]
        client.close()


# --- writing -------------------------------------------------------------------------------------


def test_rows_are_inserted(client):
    client.rows("CREATE TEMP TABLE mine(i INTEGER, t VARCHAR)")
    client.append("main", "mine", [INTEGER, VARCHAR], [pa.array([1, 2], pa.int32()), ["a", None]])
    assert client.rows("FROM mine") == [(1, "a"), (2, None)]


def test_a_transaction_is_kept_or_undone_as_a_whole(server, client):
    ids = pa.array([10, 11], pa.int32())
    for end, count in (("ROLLBACK", 0), ("COMMIT", 2)):
        client.rows("BEGIN TRANSACTION")
        client.rows("CREATE TABLE shop.made(i INTEGER, t VARCHAR);")
        client.append("shop", "made", [INTEGER, VARCHAR], [ids, ["x", "y"]])
        client.rows(end)
        tables = "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'made'"
        assert client.rows(tables) == [(1 if count else 0,)]
    other = server.client()
    wait_until(lambda: "made" in str(other.rows(TABLES)))
    assert other.rows("SELECT #1, #2 FROM made") == [(10, "x"), (11, "y")]
    other.close()
    client.rows("DROP TABLE shop.made")


def test_what_may_not_be_written(server, client):
    one = [pa.array([1], pa.int32())]
    with pytest.raises(Refused, match="numbers is a table of files"):
        client.append("main", "numbers", [INTEGER], one)
    with pytest.raises(Refused, match="Duplicate key"):
        client.append("shop", "orders", [INTEGER, VARCHAR], [*one, ["twice"]])
    assert client.rows("FROM shop.orders") == [(1, "pen")]
    reader = server.client("eve")
    with pytest.raises(Refused):
        reader.append("shop", "orders", [INTEGER, VARCHAR], [*one, ["x"]])
    with pytest.raises(Refused, match="CREATE TABLE writes"):
        reader.rows("CREATE TABLE shop.made(i INTEGER)")
    reader.close()


def test_many_inserts_wait_instead_of_failing(tmp_path):
    """A client inserts rows by thousands of messages, and knows no pace."""
    limits = replace(ServiceLimits(), statements_per_s=20.0)
    with a_server(tmp_path, limits=limits) as server:
        client = server.client()
        client.rows("CREATE TEMP TABLE mine(i INTEGER)")
        for number in range(25):
            client.append("main", "mine", [INTEGER], [pa.array([number], pa.int32())])
        time.sleep(0.1)
        assert client.rows("SELECT count(*) FROM mine") == [(25,)]
        client.close()

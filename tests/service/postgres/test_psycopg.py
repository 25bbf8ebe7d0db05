"""psycopg 3, which is libpq: the simple and the extended protocol, cursors, COPY, cancel."""

from __future__ import annotations

import asyncio
import datetime as dt
import threading
import time
import uuid
from decimal import Decimal

import duckdb
import pytest
from waiting import wait_until

from queryard.engine.sealing.access import Access
from queryard.history import HistoryReader
from tests.service.postgres.served_postgres import a_server

psycopg = pytest.importorskip("psycopg")

TYPES = """
SELECT true, 1::TINYINT, 2::SMALLINT, 3::INTEGER, 4::BIGINT, 5::UINTEGER, 6::UBIGINT, 7::HUGEINT,
  340282366920938463463374607431768211455::UHUGEINT, 8::BIGNUM, 1.25::DECIMAL(9,2), 1.5::FLOAT,
  2.5::DOUBLE, DATE '2024-02-29', TIME '12:34:56.789', TIMESTAMP '2024-02-29 01:02:03.000004',
  TIMESTAMPTZ '2024-02-29 01:02:03+00', INTERVAL '3 days 4 hours', 'text', NULL,
  'b'::ENUM('a', 'b'), '\\xDE\\xAD'::BLOB, '0101'::BIT, UUID '00112233-4455-6677-8899-aabbccddeeff',
  [1, NULL, 3], ['a', 'b,"c"'], [DATE '2024-01-01'], [1.5::DECIMAL(5,2)], [1, 2]::INTEGER[2]
"""
VALUES = (
    *(True, 1, 2, 3, 4, 5, Decimal(6), Decimal(7)),
    Decimal(340282366920938463463374607431768211455),
    *(Decimal(8), Decimal("1.25"), 1.5, 2.5, dt.date(2024, 2, 29)),
    *(dt.time(12, 34, 56, 789000), dt.datetime(2024, 2, 29, 1, 2, 3, 4)),
    dt.datetime(2024, 2, 29, 1, 2, 3, tzinfo=dt.UTC),
    *(dt.timedelta(days=3, hours=4), "text", None, "b", b"\xde\xad", "0101"),
    uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"),
    *([1, None, 3], ["a", 'b,"c"'], [dt.date(2024, 1, 1)], [Decimal("1.50")], [1, 2]),
)


@pytest.fixture
def connection(server):
    with psycopg.connect(server.dsn(), autocommit=True) as made:
        yield made


@pytest.mark.parametrize("binary", [False, True])
def test_values_of_every_type(connection, binary):
    assert connection.execute(TYPES, binary=binary).fetchone() == VALUES


@pytest.mark.parametrize(
    "literal",
    [
        r"'\x00ff61'::bytea",
        r"CAST('\x00FF61' AS bytea)",
        r"bytea '\x00ff61'",
        r"E'\\x00ff61'::BYTEA",
    ],
)
def test_bytes_that_a_client_writes_into_a_text_are_all_bytes(connection, literal):
    for parameters in (None, []):
        found = connection.execute(f"SELECT 'ü', {literal}, '\\x00ff61'", parameters).fetchone()
        assert found == ("ü", b"\x00\xffa", r"\x00ff61")


@pytest.mark.parametrize("parameters", [None, []])
def test_other_literals_may_give_other_types(connection, parameters):
    """Statements of a template that was seen are not bound first: types come with the rows."""
    asked = "SELECT json_transform('{}', '{}') AS v, {}"
    for value, kind, number, expected in (
        ("1", '"INTEGER"', "1", (1, 1)),
        ("2", '"INTEGER"', "2", (2, 2)),
        ("3", '"VARCHAR"', "2.5", ("3", Decimal("2.5"))),
        ('{"a": 1}', '{"a": "BIGINT"}', "3000000000", ({"a": 1}, 3_000_000_000)),
        ('{"a": 2}', '{"a": "BIGINT"}', "5", ({"a": 2}, 5)),
        ("7", '"INTEGER"', "7", (7, 7)),
    ):
        sql = asked.format(value, kind, number)
        assert connection.execute(sql, parameters).fetchone() == expected


@pytest.mark.parametrize("binary", [False, True])
def test_nested_values_are_json(connection, binary):
    sql = "SELECT {'a': 1, 'b': [2]}, MAP {'k': 1}, [[1], [2, 3]], '{\"x\": null}'::JSON"
    row = connection.execute(sql, binary=binary).fetchone()
    assert row == ({"a": 1, "b": [2]}, {"k": 1}, [[1], [2, 3]], {"x": None})
    zoned = connection.execute("SELECT TIMETZ '12:00:00+01:30'", binary=binary).fetchone()[0]
    assert zoned.isoformat() == "12:00:00+01:30"


def test_a_table_is_duckdbs(connection, folder):
    sql = "SELECT n, t, n / 7 AS q FROM {} WHERE n % 3 = 0 ORDER BY n DESC"
    expected = duckdb.sql(sql.format(f"'{folder}/numbers.parquet'")).fetchall()
    assert connection.execute(sql.format("numbers")).fetchall() == expected
    assert connection.execute(sql.format("numbers"), binary=True).fetchall() == expected


def test_order_survives_the_casts(connection):
    sql = "SELECT n, {'n': n} AS s FROM numbers ORDER BY n DESC LIMIT 5"
    assert [row[0] for row in connection.execute(sql)] == [29999, 29998, 29997, 29996, 29995]
    names = connection.execute("SELECT {'a': 1} AS \"Odd name\", 1 AS x, 2 AS x").description
    assert [column.name for column in names] == ["Odd name", "x", "x"]


@pytest.mark.parametrize("sign", ["s", "b", "t"])
def test_parameters(connection, sign):
    values = [7, 2.5, Decimal("1.234567"), "it's", dt.date(2024, 1, 1), [1, 2], True, b"\x00\xff"]
    values += [dt.datetime(2024, 1, 1, 12), uuid.UUID(int=5), dt.timedelta(seconds=90), None]
    places = ", ".join([f"%{sign}"] * len(values))
    assert connection.execute(f"SELECT {places}", values).fetchone() == tuple(values)
    sql = f"SELECT count(*) FROM numbers WHERE n < %{sign} AND t LIKE %{sign}"
    assert connection.execute(sql, [100, "row 1%"]).fetchone() == (11,)


def test_a_text_is_taken_for_what_fits(connection):
    assert connection.execute("SELECT DATE '2024-01-01' = %s", ["2024-01-01"]).fetchone() == (True,)
    assert connection.execute("SELECT %s + 1", ["41"]).fetchone() == (42,)


def test_server_side_cursors(connection):
    with connection.transaction(), connection.cursor(name="c") as cursor:
        cursor.itersize = 1000
        cursor.execute("SELECT n FROM numbers WHERE n >= %s ORDER BY n", [10])
        assert cursor.fetchone() == (10,)
        assert cursor.fetchmany(2) == [(11,), (12,)]
        cursor.scroll(5)
        assert cursor.fetchone() == (18,)
        assert len(cursor.fetchall()) == 30_000 - 19
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            connection.execute("FETCH BACKWARD 1 FROM c")


def test_cursors_end_with_their_transaction_unless_held(connection):
    with pytest.raises(psycopg.errors.NoActiveSqlTransaction):
        connection.execute("DECLARE c CURSOR FOR SELECT 1")
    connection.execute("BEGIN")
    connection.execute("DECLARE c CURSOR FOR SELECT 1")
    connection.execute("DECLARE h CURSOR WITH HOLD FOR SELECT n FROM numbers ORDER BY n")
    connection.execute("COMMIT")
    with pytest.raises(psycopg.errors.InvalidCursorName):
        connection.execute("FETCH c")
    assert connection.execute("FETCH 2 FROM h").fetchall() == [(0,), (1,)]
    connection.execute("BEGIN")
    connection.execute("DECLARE undone CURSOR WITH HOLD FOR SELECT 1")
    connection.execute("ROLLBACK")
    with pytest.raises(psycopg.errors.InvalidCursorName):
        connection.execute("FETCH undone")
    assert connection.execute("FETCH 1 FROM h").fetchall() == [(2,)]
    connection.execute("CLOSE ALL")


def test_copy_out(connection):
    rows = [(1, "x"), (2, None), (3, "z")]
    query = "SELECT a, b FROM small ORDER BY a"
    cursor = connection.cursor()
    with cursor.copy(f"COPY ({query}) TO STDOUT") as copy:
        copy.set_types(["int8", "text"])
        assert list(copy.rows()) == rows
    assert cursor.rowcount == 3
    with cursor.copy(f"COPY ({query}) TO STDOUT WITH BINARY") as copy:
        copy.set_types(["int8", "text"])
        assert list(copy.rows()) == rows
    with cursor.copy("COPY small (b, a) TO STDOUT (FORMAT csv, HEADER, NULL '-')") as copy:
        assert b"".join(copy).splitlines()[0] == b"b,a"
    odd = "SELECT 'a\tb' || chr(10) || '\\' AS t, 'x\"y' AS q, '' AS e"
    with cursor.copy(f"COPY ({odd}) TO STDOUT") as copy:
        assert list(copy.rows()) == [("a\tb\n\\", 'x"y', "")]
    with cursor.copy(f"COPY ({odd}) TO STDOUT CSV") as copy:
        assert b"".join(copy) == b'"a\tb\n\\","x""y",""\n'
    with cursor.copy("COPY (SELECT 1 WHERE false) TO STDOUT BINARY") as copy:
        assert b"".join(copy) == b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\xff\xff"
    with (
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="is a table of files"),
        cursor.copy("COPY small FROM STDIN") as copy,
    ):
        copy.write(b"1\tx\n")
    assert connection.execute("SELECT 1").fetchone() == (1,)


ENDLESS = (
    "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE (a.range + b.range) % 7 = 1"
)


def test_cancel_stops_the_query_and_not_the_next_one(connection, server):
    timer = threading.Timer(0.3, connection.cancel_safe)
    timer.start()
    with pytest.raises(psycopg.errors.QueryCanceled, match="user request"):
        connection.execute(ENDLESS)
    timer.join()
    connection.cancel_safe()
    time.sleep(0.05)
    assert connection.execute("SELECT 1").fetchone() == (1,)
    wait_until(lambda: not server.ground.yard.active())


def test_time_limits_and_deadlines(connection):
    connection.execute("SET statement_timeout = '200ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute(ENDLESS)
    connection.execute("RESET statement_timeout")
    connection.execute("SET queryard.deadline = '10 s'")
    connection.execute("SET queryard.priority = 3")
    assert connection.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="deadline"):
        connection.execute("SET queryard.deadline = 'soon'")


def test_settings_reach_the_scheduler(server):
    options = "-c queryard.tenant=sales/emea -c queryard.priority=3"
    made = psycopg.connect(server.dsn(options=options), autocommit=True)
    made.execute("SET queryard.deadline = '1 h'; SET statement_timeout = '2min'")
    made.execute("SET queryard.plan = native")
    made.pgconn.send_query(ENDLESS.encode())
    yard = server.ground.yard
    wait_until(yard.active)
    (active,) = yard.active()
    request = active.ticket.request
    assert (request.tenant, request.priority, request.plan) == ("sales/emea", 3.0, "native")
    assert (request.time_limit_s, request.deadline_s is not None) == (120.0, True)
    assert active.protocol == "postgres"
    made.close()
    wait_until(lambda: not yard.active())


def test_a_client_that_leaves_takes_its_query_along(server):
    made = psycopg.connect(server.dsn(), autocommit=True)
    made.pgconn.send_query(ENDLESS.encode())
    yard = server.ground.yard
    wait_until(yard.active)
    made.close()
    wait_until(lambda: not yard.active())


def test_progress_is_told(connection):
    told = []
    connection.add_notice_handler(lambda notice: told.append(notice.message_primary))
    connection.execute("SET queryard.progress = on")
    connection.execute("SET statement_timeout = '1500ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        connection.execute(ENDLESS)
    assert told
    assert "done" in told[0]


def in_a_pipeline(connection, *statements):
    with connection.pipeline():
        for statement in statements:
            connection.execute(statement)


def test_pipelines(connection):
    with connection.pipeline() as pipeline:
        first = connection.execute("SELECT 1")
        second = connection.execute("SELECT count(*) FROM numbers")
        pipeline.sync()
        assert (first.fetchone(), second.fetchone()) == ((1,), (30_000,))
    with pytest.raises(psycopg.errors.UndefinedTable):
        in_a_pipeline(connection, "SELECT 1", "SELECT * FROM nothing_there", "SELECT 2")
    assert connection.execute("SELECT 3").fetchone() == (3,)


def test_async(server):
    async def main() -> list[tuple[int, ...]]:
        async with await psycopg.AsyncConnection.connect(server.dsn()) as made:
            cursor = await made.execute("SELECT count(*) FROM numbers")
            return await cursor.fetchall()

    assert asyncio.run(main()) == [(30_000,)]


# --- transactions --------------------------------------------------------------------------------


STOCK = (
    "CREATE TEMP TABLE stock (id INTEGER PRIMARY KEY, name VARCHAR, price DECIMAL(9,2)); "
    "INSERT INTO stock VALUES (1, 'nail', 0.05), (2, 'saw', 12.5)"
)


def test_writes_are_rolled_back_for_real(server):
    with psycopg.connect(server.dsn()) as made:
        made.execute(STOCK)
        made.commit()
        made.execute("INSERT INTO stock VALUES (3, 'glue', 1)")
        assert made.execute("SELECT count(*) FROM stock").fetchone() == (3,)
        made.rollback()
        assert made.execute("SELECT count(*) FROM stock").fetchone() == (2,)
        made.execute("SAVEPOINT s")
        made.execute("UPDATE stock SET price = 0")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="savepoints"):
            made.execute("ROLLBACK TO s")
        made.rollback()
        made.execute("INSERT INTO stock VALUES (3, 'glue', 1)")
        with pytest.raises(psycopg.errors.UniqueViolation):
            made.execute("INSERT INTO stock VALUES (1, 'nail', 1)")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            made.execute("SELECT 1")
        made.rollback()
        made.execute("INSERT INTO stock VALUES (4, 'rope', 1)")
        made.commit()
        rows = made.execute("SELECT id FROM stock ORDER BY id").fetchall()
        assert rows == [(1,), (2,), (4,)]
        assert made.execute("DELETE FROM stock WHERE id = 4").rowcount == 1


def test_statements_are_called_as_by_postgresql(connection):
    for sql, tag in (
        ('CREATE LOCAL TEMPORARY TABLE "#Tab" (a INTEGER) ON COMMIT PRESERVE ROWS', "CREATE TABLE"),
        ("create global temp table kept on commit preserve rows as select 7 AS a", "CREATE TABLE"),
        ('INSERT INTO "#Tab" SELECT a FROM kept', "INSERT 0 1"),
        ("COMMENT ON TABLE kept IS 'mine'", "COMMENT"),
        ("TRUNCATE TABLE kept", "TRUNCATE TABLE"),
        ("TRUNCATE kept", "TRUNCATE TABLE"),
        ("DELETE FROM kept", "DELETE 0"),
    ):
        assert connection.execute(sql).statusmessage == tag
    assert connection.execute('SELECT a FROM "#Tab"').fetchall() == [(7,)]
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        connection.execute("CREATE LOCAL TEMPORARY TABLE t (a INTEGER) ON COMMIT DELETE ROWS")


def test_a_session_that_is_idle_for_as_long_as_it_said_ends(server):
    with psycopg.connect(server.dsn(), autocommit=True) as made:
        made.execute(
            "SET idle_in_transaction_session_timeout = '1ms'; SET idle_session_timeout = 0"
        )
        time.sleep(0.3)
        made.execute("SET idle_session_timeout = '100ms'")
        time.sleep(0.6)
        with pytest.raises(psycopg.OperationalError):
            made.execute("SELECT 1")


def test_a_series_of_statements_is_all_or_nothing(connection):
    connection.execute(STOCK)
    with pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute(
            "INSERT INTO stock VALUES (9, 'x', 1); INSERT INTO stock VALUES (1, 'y', 1)"
        )
    twice = ("INSERT INTO stock VALUES (9, 'x', 1)", "INSERT INTO stock VALUES (1, 'y', 1)")
    with pytest.raises(psycopg.errors.UniqueViolation):
        in_a_pipeline(connection, *twice)
    count = "SELECT count(*) FROM stock"
    assert connection.execute(count).fetchone() == (2,)
    connection.execute("BEGIN READ ONLY")
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        connection.execute("DELETE FROM stock")
    connection.execute("ROLLBACK")


WRITE = "INSERT INTO stock VALUES (9, 'x', 1)"


@pytest.mark.parametrize(
    "setting",
    [
        "SET default_transaction_read_only = on",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        "SELECT set_config('default_transaction_read_only', 'on', false)",
        "",  # at the connect
    ],
)
def test_a_session_that_only_reads_writes_nothing_at_once(server, setting):
    options = "" if setting else "-c default_transaction_read_only=on"
    with psycopg.connect(server.dsn(options=options), autocommit=True) as made:
        if not setting:
            made.execute("SET default_transaction_read_only = off")
        made.execute(STOCK)
        made.execute(setting or "RESET default_transaction_read_only")
        assert made.execute("SHOW transaction_read_only").fetchone() == ("on",)
        for begin in ("", "BEGIN", "BEGIN ISOLATION LEVEL SERIALIZABLE"):
            for sql in (WRITE, "COPY stock FROM STDIN"):
                made.execute(begin)
                with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                    made.cursor().execute(sql)
                made.execute("ROLLBACK")
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            in_a_pipeline(made, WRITE)
        made.execute("BEGIN READ WRITE")
        made.execute(WRITE)
        made.execute("ROLLBACK")
        made.execute("SET default_transaction_read_only = off")
        made.execute(WRITE)
        assert made.execute("SELECT count(*) FROM stock").fetchone() == (3,)


def test_the_modes_of_a_transaction_are_those_of_its_beginning(connection):
    connection.execute(STOCK)
    connection.execute("BEGIN; SET default_transaction_read_only = on")
    connection.execute(WRITE)
    connection.execute("COMMIT")
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        connection.execute(WRITE)
    connection.execute("RESET default_transaction_read_only; SET TRANSACTION READ ONLY")
    connection.execute(WRITE.replace("9", "10"))
    connection.execute("BEGIN READ ONLY; COMMIT AND CHAIN")
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        connection.execute(WRITE)
    connection.execute("ROLLBACK")
    connection.execute(WRITE.replace("9", "11"))


def test_a_transaction_of_reads_holds_nothing(server):
    with psycopg.connect(server.dsn()) as made:
        made.execute("SELECT 1").fetchall()
        assert made.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        wait_until(lambda: not server.ground.yard.active())
        made.execute("SAVEPOINT s")
        with pytest.raises(psycopg.errors.UndefinedColumn):
            made.execute("SELECT nothing_there FROM small")
        made.execute("ROLLBACK TO SAVEPOINT s")
        assert made.execute("SELECT 1").fetchone() == (1,)


# --- settings ------------------------------------------------------------------------------------


def test_settings_are_shown_reset_and_rolled_back(server):
    options = "-c statement_timeout=7s -c queryard.tenant=sales/emea"
    with psycopg.connect(server.dsn(options=options, application_name="test")) as made:
        made.autocommit = True

        def show(name):
            return made.execute(f"SHOW {name}").fetchone()[0]

        assert show("statement_timeout") == "7s"
        assert show("queryard.tenant") == "sales/emea"
        made.execute("SET statement_timeout TO 0")
        made.execute("SET application_name = 'other'")
        made.execute("BEGIN")
        made.execute("SET statement_timeout = 5")
        made.execute("ROLLBACK")
        assert show("statement_timeout") == "0"
        made.execute("DISCARD ALL")
        assert (show("statement_timeout"), show("application_name")) == ("7s", "test")
        made.execute("SET search_path TO a, 'b'")
        assert show("search_path") == "a, b"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            made.execute("SET queryard.tenant = 'web'")
        with pytest.raises(psycopg.Error, match="no_such_setting"):
            made.execute("SET no_such_setting = 1")
        with pytest.raises(psycopg.errors.CantChangeRuntimeParam):
            made.execute("SET server_version = '9'")
        assert made.execute("SHOW ALL").rowcount > 40


def test_the_time_zone_is_held_to(connection):
    connection.execute("SET TIME ZONE 'Asia/Kolkata'")
    assert connection.info.parameter_status("TimeZone") == "Asia/Kolkata"
    text = connection.execute("SELECT TIMESTAMPTZ '2024-01-01 00:00:00+00'").pgresult
    assert text.get_value(0, 0) == b"2024-01-01 05:30:00+05:30"
    sql = "SELECT date_part('hour', TIMESTAMPTZ '2024-01-01 00:00:00+00')"
    assert connection.execute(sql).fetchone() == (5,)


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("SELEC 1", "42601"),
        ("SELECT * FROM nothing_there", "42P01"),
        ("SELECT nothing_there FROM small", "42703"),
        ("SELECT nothing_there(1)", "42883"),
        ("SELECT 'x'::INTEGER", "22P02"),
        ("SELECT 1000::TINYINT", "22003"),
        ("CREATE TEMP VIEW v AS SELECT 1; CREATE TEMP VIEW v AS SELECT 1", "42P07"),
        ("SELECT * FROM read_text('/etc/passwd')", "42501"),
        ("COPY small TO '/tmp/x.csv'", "42501"),
        ("SELECT chr(0)", "22021"),
        ("SELECT $1", "42P02"),
    ],
)
def test_errors_have_their_codes(connection, sql, state):
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(sql)
    assert caught.value.sqlstate == state, str(caught.value)
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_several_answers_and_empty_queries(connection):
    cursor = connection.execute("SELECT 1; SELECT 'two'; SET jit = off")
    assert cursor.fetchall() == [(1,)]
    assert cursor.nextset()
    assert cursor.fetchall() == [("two",)]
    connection.execute("")
    connection.execute(";")
    connection.execute("-- nothing")


def test_set_local_outside_of_a_transaction_is_over_with_its_message(connection):
    told = []
    connection.add_notice_handler(lambda notice: told.append(notice.sqlstate))
    connection.execute("SET LOCAL statement_timeout = 7000")
    assert told == ["25P01"]
    assert connection.execute("SHOW statement_timeout").fetchone() == ("0",)
    cursor = connection.execute("SET LOCAL statement_timeout = 7000; SHOW statement_timeout")
    assert cursor.nextset()
    assert cursor.fetchone() == ("7000",)
    assert connection.execute("SHOW statement_timeout").fetchone() == ("0",)


def test_prepared_statements(connection):
    for number in range(8):  # psycopg prepares from the fifth time on
        row = connection.execute("SELECT %s::INT + 1, %s", [number, "x"]).fetchone()
        assert row == (number + 1, "x")
    connection.execute("PREPARE p AS SELECT 42")
    assert connection.execute("EXECUTE p").fetchone() == (42,)
    connection.execute("DEALLOCATE p")
    connection.execute("PREPARE p AS SELECT $1::INT + 1")
    assert connection.execute("EXECUTE p(4)").fetchone() == (5,)
    connection.execute("DEALLOCATE ALL")


def test_statements_that_are_no_select(connection):
    fruit = "SELECT * FROM (VALUES ('a', 1), ('b', 2)) t(k, v)"
    pivoted = f"PIVOT ({fruit}) ON k USING sum(v)"
    assert connection.execute(pivoted).fetchall() == [(1, 2)]
    nested = f"PIVOT ({fruit}) ON k USING list({{'v': v}})"
    assert connection.execute(nested).fetchall() == [([{"v": 1}], [{"v": 2}])]
    assert connection.execute("SHOW TABLES").fetchall() == [("numbers",), ("small",)]
    assert connection.execute("DESCRIBE small").fetchall()[0][:2] == ("a", "BIGINT")
    assert connection.execute("EXPLAIN SELECT 1").rowcount > 0
    assert connection.execute("SUMMARIZE small").rowcount == 2
    assert connection.execute("VALUES (1), (2)").fetchall() == [(1,), (2,)]
    assert connection.execute("FROM small SELECT a ORDER BY a").fetchall() == [(1,), (2,), (3,)]
    assert connection.execute("CREATE TEMP TABLE made (a INTEGER)").statusmessage == "CREATE TABLE"
    inserted = connection.execute("INSERT INTO made VALUES (1), (2) RETURNING a * 10 AS b")
    assert inserted.fetchall() == [(10,), (20,)]
    assert inserted.statusmessage == "INSERT 0 2"
    updated = connection.execute("UPDATE made SET a = %s WHERE a = %s", [5, 1])
    assert updated.statusmessage == "UPDATE 1"
    assert connection.execute("DROP TABLE made").statusmessage == "DROP TABLE"


def test_infinite_days_and_moments(connection):
    sql = "SELECT 'infinity'::DATE, '-infinity'::TIMESTAMP, 'infinity'::TIMESTAMPTZ"
    result = connection.execute(sql).pgresult
    values = [result.get_value(0, place) for place in range(3)]
    assert values == [b"infinity", b"-infinity", b"infinity"]
    floats = connection.execute("SELECT 'nan'::FLOAT, '-inf'::DOUBLE", binary=True).fetchone()
    assert str(floats) == "(nan, -inf)"


def test_tables_and_files_of_others_are_not_reached(server):
    with psycopg.connect(server.dsn("eve"), autocommit=True) as made:
        assert made.execute("SHOW session_authorization").fetchone() == ("eve",)
        for sql in ("ATTACH '/tmp/x.db'", "INSTALL httpfs", "SELECT * FROM glob('/*')"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                made.execute(sql)


def test_a_database_that_was_granted_is_written(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    with duckdb.connect(str(data / "shop.duckdb")) as shop:
        shop.execute("CREATE TABLE stock AS SELECT 1 AS id")
    grants = {"sales": Access(sealed=True, writes=frozenset({"shop"}))}
    with a_server(tmp_path, grants=grants) as served:
        with psycopg.connect(served.dsn()) as made:
            made.execute("INSERT INTO shop.stock VALUES (2)")
            assert made.execute("SELECT count(*) FROM shop.stock").fetchone() == (2,)
            made.rollback()
            assert made.execute("SELECT count(*) FROM shop.stock").fetchone() == (1,)
            made.execute("INSERT INTO shop.stock VALUES (3)")
        with (
            psycopg.connect(served.dsn("eve"), autocommit=True) as other,
            pytest.raises(psycopg.Error),
        ):
            other.execute("DELETE FROM shop.stock")
    with duckdb.connect(str(data / "shop.duckdb"), read_only=True) as shop:
        assert shop.execute("FROM stock ORDER BY id").fetchall() == [(1,), (3,)]


def test_a_database_is_read_right_after_it_was_written(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    with duckdb.connect(str(data / "shop.duckdb")) as shop:
        shop.execute("CREATE TABLE stock (id INTEGER PRIMARY KEY)")
    grants = {"sales": Access(sealed=True, writes=frozenset({"shop"}))}
    with (
        a_server(tmp_path, grants=grants) as served,
        psycopg.connect(served.dsn(), autocommit=True) as made,
    ):
        for id in range(15):
            made.execute(f"INSERT INTO shop.stock VALUES ({id})")
            assert made.execute("SELECT count(*) FROM shop.stock").fetchone() == (id + 1,)


def test_cursors_that_go_back(connection):
    with connection.transaction():
        sql = "DECLARE c SCROLL CURSOR FOR SELECT n FROM numbers WHERE n < 5 ORDER BY n"
        connection.execute(sql)

        def fetched(how):
            return [row[0] for row in connection.execute(f"FETCH {how} FROM c")]

        assert fetched("FORWARD 2") == [0, 1]
        assert fetched("PRIOR") == [0]
        assert fetched("PRIOR") == []
        assert fetched("ALL") == [0, 1, 2, 3, 4]
        assert fetched("NEXT") == []
        assert fetched("BACKWARD 2") == [4, 3]
        assert fetched("RELATIVE 0") == [3]
        assert fetched("RELATIVE -2") == [1]
        assert fetched("LAST") == [4]
        assert fetched("ABSOLUTE 3") == [2]
        assert fetched("ABSOLUTE -4") == [1]
        assert fetched("FIRST") == [0]
        assert fetched("-1") == []
        assert connection.execute("MOVE FORWARD ALL FROM c").statusmessage == "MOVE 5"
        assert fetched("BACKWARD ALL") == [4, 3, 2, 1, 0]
        with connection.cursor(name="by_driver", scrollable=True) as cursor:
            cursor.execute("SELECT n FROM numbers ORDER BY n LIMIT 9")
            cursor.scroll(5)
            assert cursor.fetchone() == (5,)
            cursor.scroll(-2)
            assert cursor.fetchone() == (4,)


def test_other_cursors_only_go_forward(connection):
    with connection.transaction():
        connection.execute("DECLARE c CURSOR FOR SELECT n FROM numbers ORDER BY n")
        assert connection.execute("FETCH RELATIVE 3 FROM c").fetchall() == [(2,)]
        with (
            pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as found,
            connection.transaction(),
        ):
            connection.execute("FETCH PRIOR FROM c")
        assert "SCROLL" in found.value.diag.message_hint


def test_a_pivot_is_described_once_it_runs(connection):
    sql = "PIVOT (SELECT n % 2 AS odd, n % 3 AS k FROM numbers) ON odd USING count(*) ORDER BY k"
    expected = [(0, 5000, 5000), (1, 5000, 5000), (2, 5000, 5000)]
    cursor = connection.execute(sql, prepare=True)
    assert [column.name for column in cursor.description] == ["k", "0", "1"]
    assert cursor.fetchall() == expected
    assert connection.execute(sql, binary=True).fetchall() == expected


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SET queryard.priority = 'x'", '"queryard.priority": "x"; allowed is a finite number'),
        ("SET queryard.deadline = 'soon'", '"soon"; allowed is a time from now'),
        ("SET queryard.plan = 'best'", '"best"; allowed is one of auto, native, staged'),
        ("SET queryard.progress = 'maybe'", '"queryard.progress" requires a Boolean value, got'),
        ("SET default_transaction_isolation = 'odd'", "invalid value for parameter"),
    ],
)
def test_wrong_settings_name_what_is_allowed(connection, sql, words):
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=words):
        connection.execute(sql)
    with pytest.raises(psycopg.errors.UndefinedObject) as found:
        connection.execute("SET queryard.prioritty = 1")
    assert "queryard.priority" in found.value.diag.message_hint


def test_the_history_has_what_the_client_has_sent(tmp_path):
    sql = "SELECT {'a': 1} AS s, n FROM numbers LIMIT 1"
    file = tmp_path / "history.sqlite"
    with (
        a_server(tmp_path, session={"history": file}) as served,
        psycopg.connect(served.dsn(), autocommit=True) as made,
    ):
        assert made.execute(sql).fetchall() == [({"a": 1}, 0)]
        made.execute("CREATE TEMP TABLE brought (n INTEGER)")
        with made.cursor().copy("COPY brought FROM STDIN") as copy:
            copy.write("1\n")
    with HistoryReader(file) as reader:
        texts = {row.sql for row in reader.queries()}
    assert {sql, "COPY brought FROM STDIN"} <= texts
    assert not any("to_json" in text or "read_parquet" in text for text in texts)


def test_a_token_for_figures_puts_no_queries(server):
    tokens = server.ground.yard.tokens
    secret = tokens.add("prometheus", role="metrics")
    login = f"host=127.0.0.1 port={server.port} user=prometheus password={secret} dbname=yard"
    with pytest.raises(psycopg.OperationalError, match="may read /metrics only"):
        psycopg.connect(login)

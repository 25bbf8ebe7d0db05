"""What sealed clients can do: all that reads their tables, with DuckDB's own answers."""

from __future__ import annotations

import duckdb
import pytest

import queryard
from queryard.core.errors import QueryardError
from queryard.engine.describing import CannotDescribe
from queryard.engine.errors import NotAllowed, QueryFailed
from queryard.engine.online.wish import OnlineWish
from queryard.engine.sealing.access import Access, Seal
from queryard.live.client import Client
from queryard.live.describing import describe
from queryard.live.explaining import explain
from queryard.live.request import OnlineRequest
from queryard.results.online import AnswerLog
from queryard.sql.catalog import CatalogError

from .test_sealed_clients import rows, rows_of

TABLES = ("orders", "events", "people")
GRANTED = Access(tables=frozenset(TABLES), sealed=True)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers")
    duckdb.sql(
        f"COPY (SELECT range AS id, range % 7 AS kind, (range * 7919) % 1000 AS amount, "
        f"TIMESTAMPTZ '2024-01-01 00:00:00+00' + to_hours(range % 5000) AS sold "
        f"FROM range(40_000)) TO '{folder}/orders.parquet' (ROW_GROUP_SIZE 2048)"
    )
    duckdb.sql(
        f"COPY (SELECT range AS n, range % 11 AS g, 'word ' || range % 13 AS w "
        f"FROM range(20_000)) TO '{folder}/events.csv'"
    )
    (folder / "people").mkdir()
    duckdb.sql(f"COPY (SELECT 1 AS id, 'Ada' AS name) TO '{folder}/people/1.parquet'")
    duckdb.sql(f"COPY (SELECT 1 AS salary) TO '{folder}/salaries.parquet'")
    with duckdb.connect(str(folder / "shop.duckdb")) as shop:
        shop.execute(
            "CREATE TABLE goods AS SELECT range AS id, 'good ' || range AS name FROM range(9)"
        )
    return folder


@pytest.fixture(scope="module")
def session(data):
    with queryard.connect(data, slots=2, memory="1 GB", statistics="off") as opened:
        yield opened


def opened(session, access=GRANTED, **options):
    return Client.open(session.host, memory_bytes=64 << 20, access=access, **options)


@pytest.fixture
def client(session):
    made = opened(session, tenant="lab")
    yield made
    made.close()


def expected(data, sql):
    with duckdb.connect() as plain:
        plain.execute(f"CREATE VIEW orders AS FROM '{data}/orders.parquet'")
        plain.execute(f"CREATE VIEW events AS FROM '{data}/events.csv'")
        plain.execute(f"CREATE VIEW people AS FROM '{data}/people/*.parquet'")
        table = plain.sql(sql).to_arrow_table()
        return [tuple(row.values()) for row in table.to_pylist()]


QUERIES = (
    "SELECT kind, count(*), sum(amount), max(sold) FROM orders GROUP BY kind ORDER BY kind",
    "WITH big AS (SELECT * FROM orders WHERE amount > 990) SELECT count(*) FROM big",
    "SELECT id, rank() OVER (PARTITION BY kind ORDER BY amount, id) FROM orders "
    "QUALIFY rank() OVER (PARTITION BY kind ORDER BY amount, id) < 3 ORDER BY ALL",
    "SELECT name, count(*) FROM orders JOIN people ON kind = people.id GROUP BY ALL",
    "SELECT g, w, count(*) FROM events GROUP BY ALL ORDER BY ALL LIMIT 20",
    "SELECT extract('year' FROM sold) AS y, count(*) FROM orders GROUP BY y ORDER BY y",
    "SELECT trim(BOTH 'w' FROM 'www.a.w'), 1 IS DISTINCT FROM 2, 'a' IS DISTINCT FROM 'b'",
    "SELECT histogram(kind) FROM orders",
    "SELECT * FROM range(3) UNION ALL SELECT unnest([7, 8])",
    "SELECT w FROM events WHERE w GLOB 'word 1*' GROUP BY w ORDER BY w",
    "SELECT list_sum(list_transform([1, 2], lambda x: x + 1))",
    "FROM orders PIVOT (count(*) FOR kind IN (1, 2)) ORDER BY ALL LIMIT 3",
    "SELECT 'it reads read_csv(''x'') and ATTACH' AS text",
    "SELECT (SELECT max(id) FROM orders o WHERE o.kind = e.g) FROM events e ORDER BY 1 LIMIT 5",
    "DESCRIBE orders",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) FROM r ORDER BY n",
)


@pytest.mark.parametrize("sql", QUERIES)
@pytest.mark.parametrize("plan", ["native", "staged"])
def test_answers_are_those_of_duckdb(sql, plan, client, data):
    assert sorted(map(str, rows(client, sql, plan=plan))) == sorted(map(str, expected(data, sql)))


def test_what_is_temporary_lives_with_the_client(client, session):
    rows(client, "CREATE TEMP TABLE top AS SELECT * FROM orders ORDER BY amount DESC, id LIMIT 5")
    rows(client, "CREATE VIEW few AS SELECT id FROM top WHERE amount > 0")
    rows(client, "CREATE MACRO twice(a) AS 2 * a")
    rows(client, "INSERT INTO top FROM orders LIMIT 1")
    assert rows(client, "SELECT count(*), twice(2) FROM top") == [(6, 4)]
    rows(client, "PREPARE one AS SELECT count(*) FROM few WHERE id >= ?")
    assert rows(client, "EXECUTE one(0)")[0][0] >= 5
    rows(client, "SET VARIABLE v = 3")
    assert rows(client, "SELECT getvariable('v')") == [(3,)]
    other = opened(session)
    with pytest.raises(QueryFailed, match="top"):
        rows(other, "FROM top")
    other.close()


def test_settings_hold_for_the_client_on_any_instance(client):
    rows(client, "SET TimeZone = 'Asia/Tokyo'")
    sql = "SELECT max(sold)::VARCHAR FROM orders"
    assert rows(client, sql)[0][0].endswith("+09")
    assert rows(client, "SELECT current_setting('TimeZone')") == [("Asia/Tokyo",)]
    rows(client, "RESET TimeZone")
    assert describe(client, sql).types == ("VARCHAR",)


def test_transactions_and_scripts(client):
    assert rows(client, "BEGIN; SELECT count(*) FROM orders")[0] == (40_000,)
    rows(client, "CREATE TEMP TABLE c (a INTEGER); ROLLBACK")
    with pytest.raises(QueryFailed):
        rows(client, "FROM c")


def test_plenty_of_rows_spill(client):
    sql = "SELECT id, count(*) FROM orders, range(20) GROUP BY id, range ORDER BY id LIMIT 1"
    assert rows(client, sql, memory="64 MB") == [(0, 1)]


def test_only_granted_tables_are_told_of(client, data, session):
    assert set(client.catalog.tables) == set(TABLES)
    assert "salaries" not in client.catalog
    assert client.catalog.find("salaries") is None
    assert not client.catalog.databases
    with pytest.raises(CatalogError) as missing:
        client.catalog["salarie"]
    assert "salaries" not in str(missing.value)
    with pytest.raises(QueryFailed) as missing:
        rows(client, "FROM salarie")
    assert "salaries" not in str(missing.value)
    shown = {row[0] for row in rows(client, "SHOW TABLES")}
    assert shown == set(TABLES)
    names = rows(client, "SELECT table_name FROM information_schema.tables")
    assert ("salaries",) not in names
    with pytest.raises(QueryardError) as failed:
        explain(client, "SELECT * FROM salaries", plan="staged")
    assert "salaries.parquet" not in str(failed.value)
    assert session.sql("SELECT count(*) FROM salaries").fetchall() == [(1,)]


def test_an_explanation_does_not_tell_where_files_lie(client, data):
    for sql in ("EXPLAIN ANALYZE SELECT count(amount) FROM orders", "EXPLAIN FROM events"):
        assert str(data) not in str(rows(client, sql))
    assert explain(client, "SELECT sum(amount) FROM orders", analyze=True).seconds is not None


def test_an_error_does_not_tell_where_files_lie(tmp_path):
    folder = tmp_path / "with space"
    folder.mkdir()
    (folder / "odd.csv").write_text("a,b\n" + "1,2\n" * 30_000 + "x,y\n")
    tables = {"odd": {"path": str(folder / "odd.csv"), "types": {"a": "INTEGER"}}}
    with queryard.connect(None, tables=tables, slots=2, memory="1 GB", statistics="off") as session:
        client = opened(session, Access(sealed=True))
        with pytest.raises(QueryardError) as failed:
            rows(client, "SELECT sum(a) FROM odd")
        assert str(tmp_path) not in str(failed.value)
        assert "odd.csv" in str(failed.value)
        with pytest.raises(QueryardError) as failed:
            rows(client, "SELECT sum(a) FROM odd", plan="staged")
        assert str(tmp_path) not in str(failed.value)
        client.close()


def test_files_that_come_later_are_read_also_beside_temporary_tables(tmp_path):
    for name in ("plain", "year=2024", "b[1]"):
        (tmp_path / "people" / name).mkdir(parents=True)
    tables = {"people": str(tmp_path / "people" / "year=*" / "*.parquet")}

    def add(year, number):
        folder = tmp_path / "people" / f"year={year}"
        folder.mkdir(exist_ok=True)
        duckdb.sql(f"COPY (SELECT {number} AS n) TO '{folder}/{number}.parquet'")

    add(2024, 1)
    with queryard.connect(None, tables=tables, slots=2, memory="1 GB", statistics="off") as session:
        client = opened(session, Access(sealed=True))
        rows(client, "CREATE TEMP TABLE c AS FROM people")
        add(2025, 2)
        both = [(1, 2024), (2, 2025)]
        assert rows(client, "SELECT n, year FROM people ORDER BY n") == both
        assert rows(client, "SELECT DISTINCT p.n, p.year FROM people p, c ORDER BY 1") == both
        assert rows(client, "FROM c") == [(1, 2024)]
        client.close()


def test_names_with_signs_of_patterns(tmp_path):
    duckdb.sql(f"COPY (SELECT 1 AS n) TO '{tmp_path}/b[1].csv'")
    with queryard.connect(tmp_path, slots=2, memory="1 GB", statistics="off") as session:
        client = opened(session, Access(sealed=True))
        assert rows(client, 'FROM "b[1]"') == [(1,)]
        assert rows(client, 'CREATE TEMP TABLE c AS FROM "b[1]"') == [(1,)]
        client.close()


def test_equal_queries_run_once_for_equal_access_only(session):
    one, two, other = opened(session), opened(session), opened(session, Access(sealed=True))
    request = one.submit("SELECT count(*) FROM orders").facts.request
    assert one._key(request) == two._key(request)
    assert one._key(request) != other._key(request)
    assert session.client._key(request) != one._key(request)
    for client in (one, two, other):
        client.close()


def test_parsed_segments_are_read_by_sealed_clients(client, session, data):
    sql = "SELECT g, count(*), sum(n) FROM events GROUP BY g ORDER BY g"
    tickets = [client.submit(sql + f" LIMIT {n}", plan="staged") for n in range(12, 16)]
    for ticket in tickets:
        assert sorted(rows_of(ticket)) == sorted(expected(data, sql))
    table = session.catalog["events"]
    store = session.host.engine.segments
    for segment in store.segments(table):
        with store.reading(table, segment, ["g", "n"]):
            pass
    kept = (("events", ("g", "n")),)
    request = client.submit(sql, plan="native").facts.request.over_kept(kept)
    statement = client.statement(request, 64 << 20, False, ())
    from queryard.results.streams import ResultStream

    output = ResultStream()
    query = session.host.engine.open(statement, output)
    place = query._place
    place.enter()
    seal = place._taken.seal
    assert isinstance(seal, Seal)
    assert seal.paths > session.host.reach(GRANTED).seal().paths
    errors = place.prepare(statement.statements[0], place.enter(), statement.statements[0].names)
    assert not errors
    found = place.enter().rows(sql)
    assert [tuple(row.values()) for row in found] == expected(data, sql)
    query.cancel()
    place.leave()


def test_online_answers_for_sealed_clients(client, data):
    log = AnswerLog()
    sql = "SELECT sum(amount) AS s FROM orders"
    request = OnlineRequest(OnlineWish(None, 0.95, 0.0, None, ()), log)
    ticket = client.submit(sql, online=request)
    assert rows_of(ticket) == expected(data, sql)
    assert not ticket.facts.reasons
    with pytest.raises(QueryardError) as failed:
        rows_of(client.submit("SELECT sum(salary) FROM salaries", online=request))
    assert "salaries.parquet" not in str(failed.value)


def test_a_database_is_granted_as_a_whole(session):
    client = opened(session, Access(tables=frozenset({"shop.*"}), sealed=True))
    assert list(client.catalog.tables) == ["shop.goods"]
    assert rows(client, "SELECT count(*) FROM shop.goods") == [(9,)]
    assert rows(client, "CREATE TEMP TABLE c AS FROM shop.goods") == [(9,)]
    assert describe(client, "FROM shop.goods").names == ("id", "name")
    assert "goods" in {row[2] for row in rows(client, "SHOW ALL TABLES")}
    with pytest.raises(QueryFailed):
        rows(client, "FROM orders")
    with pytest.raises(QueryardError, match="read"):
        rows(client, "INSERT INTO shop.goods VALUES (10, 'x')")
    client.close()
    with pytest.raises(CatalogError, match="as a whole only"):
        opened(session, Access(tables=frozenset({"shop.goods"}), sealed=True))


@pytest.fixture
def shop(tmp_path):
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as made:
        made.execute("CREATE TABLE goods (id INTEGER, name VARCHAR)")
    duckdb.sql(f"COPY (SELECT 1 AS n) TO '{tmp_path}/numbers.parquet'")
    with queryard.connect(tmp_path, slots=2, memory="1 GB", statistics="off") as session:
        yield session


WRITER = Access(sealed=True, writes=frozenset({"shop"}))


def test_databases_are_written_where_that_is_granted(shop):
    writer, reader = opened(shop, WRITER), opened(shop, Access(sealed=True))
    assert rows(reader, "SELECT count(*) FROM shop.goods") == [(0,)]
    rows(writer, "INSERT INTO shop.goods SELECT n, 'one' FROM numbers")
    assert rows(reader, "FROM shop.goods") == [(1, "one")]
    assert rows(writer, "FROM shop.goods") == [(1, "one")]
    rows(writer, "CREATE TABLE shop.more AS SELECT 7 AS seven")
    assert rows(reader, "FROM shop.more") == [(7,)]
    assert rows(writer, "UPDATE shop.goods SET name = 'two' WHERE id = 1") == [(1,)]
    assert describe(reader, "FROM shop.goods").types == ("INTEGER", "VARCHAR")
    with pytest.raises(QueryardError):
        rows(reader, "INSERT INTO shop.goods VALUES (3, 'x')")
    with pytest.raises(NotAllowed):
        rows(writer, "CREATE TABLE nowhere AS SELECT 1")
    rows(writer, "USE shop")
    rows(writer, "CREATE TABLE bare AS SELECT 1 AS one")
    rows(writer, "INSERT INTO bare SELECT n + 1 FROM memory.main.numbers")
    assert rows(writer, "SELECT sum(one) FROM bare") == [(3,)]
    rows(writer, "USE memory")
    assert rows(reader, "SELECT count(*) FROM shop.bare") == [(2,)]
    second = opened(shop, WRITER)
    rows(second, "DELETE FROM shop.goods")
    assert rows(writer, "FROM shop.goods") == []
    for client in (writer, reader, second):
        client.close()


def test_a_transaction_that_is_rolled_back_leaves_nothing(shop, tmp_path):
    writer, reader = opened(shop, WRITER), opened(shop, Access(sealed=True))
    rows(writer, "BEGIN")
    rows(writer, "INSERT INTO shop.goods VALUES (1, 'a')")
    assert rows(writer, "SELECT count(*) FROM shop.goods") == [(1,)]
    rows(writer, "ROLLBACK")
    assert rows(reader, "SELECT count(*) FROM shop.goods") == [(0,)]
    rows(writer, "BEGIN")
    assert rows(writer, "SELECT count(*) FROM shop.goods") == [(0,)]
    rows(writer, "INSERT INTO shop.goods VALUES (2, 'b')")
    shop.host.wait_for_turns(0.3)
    with pytest.raises(QueryardError, match="the database shop was in use") as held:
        rows(reader, "SELECT count(*) FROM shop.goods")
    assert str(tmp_path) not in str(held.value)
    rows(writer, "DELETE FROM shop.goods")
    rows(writer, "COMMIT")
    assert rows(reader, "SELECT count(*) FROM shop.goods") == [(0,)]
    rows(writer, "BEGIN; INSERT INTO shop.goods VALUES (1, 'a'); COMMIT")
    assert rows(reader, "SELECT count(*) FROM shop.goods") == [(1,)]
    for client in (writer, reader):
        client.close()


def test_copy_to_the_output_folder(session, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    client = opened(session, Access(sealed=True, output=folder))
    rows(client, "COPY (SELECT kind, count(*) AS n FROM orders GROUP BY kind) TO 'kinds.csv'")
    assert duckdb.sql(f"SELECT count(*) FROM '{folder}/kinds.csv'").fetchall() == [(7,)]
    rows(client, "COPY orders TO 'orders.parquet' (FORMAT parquet)")
    (folder / "link").symlink_to(tmp_path)
    with pytest.raises(QueryardError):
        rows(
            client,
            "COPY orders TO 'parts' (FORMAT parquet, PARTITION_BY (kind), "
            "FILENAME_PATTERN '../../../evil_{i}')",
        )
    assert not list(tmp_path.glob("evil*"))
    for target in ("'../x.csv'", "'/tmp/x.csv'", "'link/x.csv'", "'file:x.csv'", "('a' || '.csv')"):
        with pytest.raises(NotAllowed):
            rows(client, f"COPY orders TO {target}")
    client.close()


def test_describe(client):
    found = describe(client, "SELECT kind, count(*) AS n FROM orders WHERE id > $1 GROUP BY kind")
    assert found == (("kind", "n"), ("BIGINT", "BIGINT"), ("BIGINT",))
    assert describe(client, "SELECT $1::DATE AS d, $2 AS x") == (
        ("d", "x"),
        ("DATE", "VARCHAR"),
        ("DATE", "UNKNOWN"),
    )
    assert describe(client, "SELECT $1 AS x", [1.5]).types == ("DOUBLE",)
    assert describe(client, "SET TimeZone = 'UTC'") == ((), (), ())
    rows(client, "CREATE TEMP TABLE c (a INTEGER, b DATE)")
    assert describe(client, "SELECT b FROM c WHERE a = ?") == (("b",), ("DATE",), ("INTEGER",))
    assert describe(client, "INSERT INTO c VALUES (?, ?)") == ((), (), ("INTEGER", "DATE"))
    returning = describe(client, "INSERT INTO c VALUES (?, ?) RETURNING b")
    assert returning == (("b",), ("DATE",), ("INTEGER", "DATE"))
    with pytest.raises(CannotDescribe):
        describe(client, "PIVOT orders ON kind USING count(*)")
    with pytest.raises(QueryFailed, match="nothing"):
        describe(client, "SELECT nothing FROM orders")
    with pytest.raises(QueryardError, match="one at a time"):
        describe(client, "SELECT 1; SELECT 2")

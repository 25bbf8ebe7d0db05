"""Queryard as the real extension of DuckDB 1.5.5 sees it, beside DuckDB's own server."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import pytest
from waiting import wait_until

from tests.long_forms import some_of
from tests.service.processes import a_process
from tests.service.quack.peers import Peer, PeerError, a_peer, a_real_server, asked_there
from tests.service.quack.served_quack import a_server

# Statements of all types of the protocol, beside the columns of DuckDB's own table of all types.
QUERIES = (
    "SELECT NULL AS a, 1::TINYINT AS b, -2::SMALLINT AS c, 3::UHUGEINT AS d, -4::HUGEINT AS e",
    "SELECT 1.5::FLOAT AS a, 'nan'::DOUBLE AS b, '-inf'::DOUBLE AS c, -1.25::DECIMAL(4,2) AS d",
    "SELECT -12345.678::DECIMAL(9,3) AS a, 1::DECIMAL(18,4) AS b, -1::DECIMAL(38,2) AS c",
    "SELECT DATE 'infinity' AS a, TIME '24:00:00' AS b, TIMESTAMP '-infinity' AS c",
    "SELECT TIMETZ '12:34:56.789-15:59:59' AS a, TIMESTAMPTZ '2024-01-02 03:04:05+05' AS b",
    "SELECT TIMESTAMP_NS '2024-01-02 03:04:05.678901234' AS a, '23:59:59.1'::TIME_NS AS b",
    "SELECT INTERVAL '1 year 2 days 3 seconds' AS a, '-1 microsecond'::INTERVAL AS b",
    "SELECT 'ü' || repeat('x', 200) AS a, '' AS b, '\\x00\\xFF'::BLOB AS c, '10110'::BIT AS d",
    "SELECT 'ffffffff-ffff-ffff-ffff-ffffffffffff'::UUID AS a, (-5)::BIGNUM AS b, 7::BIGNUM AS c",
    "SELECT 'b'::ENUM('a', 'b') AS a UNION ALL SELECT NULL",
    "SELECT unnest([[1, 2], NULL, [], [NULL, 5]]) AS a",
    "SELECT {'a': 1, 'b': {'c': [1, 2], 'd': NULL}} AS a UNION ALL SELECT NULL",
    "SELECT MAP {'a': 1, 'b': NULL} AS a UNION ALL SELECT NULL UNION ALL SELECT MAP {}",
    "SELECT [1, NULL]::INTEGER[2] AS a, [['x', 'y']]::VARCHAR[2][1] AS b",
    "SELECT [1, NULL]::INTEGER[2] AS a UNION ALL SELECT NULL",
    "SELECT 1::UNION(n INTEGER, t VARCHAR) AS a UNION ALL SELECT 'x' UNION ALL SELECT NULL",
    "SELECT union_value(t := NULL::VARCHAR)::UNION(n INTEGER, t VARCHAR) AS a",
    "SELECT row(1, 'x') AS a, '[1, 2]'::JSON AS b, [] AS c",
    "SELECT {'a': 1, 'b': [true::VARIANT, 'x'::VARIANT, NULL::VARIANT]}::VARIANT AS a",
    "SELECT 1.5::DECIMAL(4,2)::VARIANT AS a, 'x'::VARIANT AS b, (DATE '2020-01-01')::VARIANT AS c",
    "SELECT 'POLYGON((0 0, 1 0, 1 1, 0 0))'::GEOMETRY AS a UNION ALL SELECT NULL",
    "SELECT i, i::VARCHAR AS t, CASE WHEN i % 3 = 0 THEN i END AS n FROM range(5000) r(i)",
    "SELECT 1 AS a WHERE false",
)


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    with a_peer() as made:
        yield made


@pytest.fixture
def there(server) -> str:
    return f"quack:127.0.0.1:{server.port}"


@pytest.fixture
def attached(peer, server, there) -> Iterator[Peer]:
    peer.ask(f"ATTACH '{there}' AS yard (TOKEN '{server.secrets['ann']}')")
    yield peer
    peer.ask("DETACH yard")


def all_columns(peer: Peer) -> list[str]:
    """The columns of the client's own table of all types."""
    rows = peer.rows("SELECT column_name FROM (DESCRIBE FROM test_all_types())")
    return [row[2:-3] for row in rows]


# --- queries -------------------------------------------------------------------------------------


def test_all_types_are_those_of_the_client(peer, server, there):
    """Each column of DuckDB's table of all types, as the client's own DuckDB has it."""
    listed = ", ".join(f'"{name}"' for name in all_columns(peer))
    sql = f"SELECT {listed} FROM test_all_types()"
    assert peer.texts(asked_there(there, server.secrets["ann"], sql)) == peer.texts(sql)


@pytest.mark.parametrize("sql", some_of(QUERIES, 5))
def test_answers_are_those_of_the_clients_own_duckdb(peer, server, there, sql):
    assert peer.texts(asked_there(there, server.secrets["ann"], sql)) == peer.texts(sql)


@pytest.mark.long
def test_answers_are_those_of_duckdbs_own_server(peer, server, there):
    columns = [f'SELECT "{name}" FROM test_all_types()' for name in all_columns(peer)]
    with a_real_server("token") as real:
        for sql in (*QUERIES, *columns):
            ours = peer.texts(asked_there(there, server.secrets["ann"], sql))
            assert ours == peer.texts(asked_there(real, "token", sql)), sql


def test_large_results_arrive_whole_and_in_order(peer, server, there):
    sql = "SELECT i, 'row ' || i AS t FROM range(300_000) r(i)"
    asked = asked_there(there, server.secrets["ann"], sql)
    found = peer.rows(f"SELECT count(*), sum(i), max(t), count(DISTINCT t) FROM ({asked})")
    assert found == ["(300000, 44999850000, 'row 99999', 300000)"]
    assert peer.rows(f"{asked} OFFSET 299999") == ["(299999, 'row 299999')"]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT * FROM nope", "Invalid Input Error: Table with name nope does not exist!"),
        ("SELECT 1 / (i - 250000)::UTINYINT FROM range(300000) r(i)", "out of range"),
        ("COPY numbers TO 'x.csv'", "COPY … TO writes a file"),
    ],
)
def test_errors_have_their_text(peer, server, there, sql, words):
    with pytest.raises(PeerError, match=words):
        peer.ask(asked_there(there, server.secrets["ann"], sql))


def test_a_token_that_is_not_known(peer, there):
    with pytest.raises(PeerError, match="Authentication failed"):
        peer.ask(f"ATTACH '{there}' AS yard (TOKEN 'qy_nothing')")


# --- attached ------------------------------------------------------------------------------------


def test_attached_tables_and_views(attached):
    rows = attached.rows
    assert rows("SELECT count(*), sum(n), max(t) FROM yard.numbers") == [
        "(30000, 449985000, 'row 9999')"
    ]
    assert rows("SELECT b FROM yard.small WHERE a > 1 ORDER BY a") == ["(None,)", "('z',)"]
    assert rows("SELECT * FROM yard.shop.orders") == ["(1, 'pen')"]
    assert rows("SELECT * FROM yard.shop.pens") == ["(1, 'pen')"]
    assert rows("SELECT * FROM yard.shop.small") == []
    assert rows("SELECT * FROM yard.shop.stamped") == []
    assert rows('SELECT * FROM yard."shop.old".deep') == ["(7,)"]
    assert rows('SELECT "select", "a b" FROM yard.shop."Odd name"') == ["('x', 1)"]
    assert rows("FROM yard.query('SELECT max(n) AS m FROM numbers')") == ["(29999,)"]
    with pytest.raises(PeerError, match="later does not exist"):
        rows("SELECT * FROM yard.shop.later")


def test_writing_to_an_attached_database(attached):
    rows = attached.rows
    assert rows("INSERT INTO yard.shop.orders(id) VALUES (2), (3)") == ["(2,)"]
    assert rows("FROM yard.shop.orders ORDER BY id") == [
        "(1, 'pen')",
        "(2, 'thing')",
        "(3, 'thing')",
    ]
    with pytest.raises(PeerError, match="Duplicate key"):
        rows("INSERT INTO yard.shop.orders VALUES (2, 'again')")
    rows("FROM yard.query('DELETE FROM shop.orders WHERE id > 1')")
    rows("CREATE TABLE yard.shop.made(i INTEGER, l INTEGER[], s STRUCT(x INTEGER, y VARCHAR))")
    rows("INSERT INTO yard.shop.made VALUES (1, [1, NULL], {'x': 1, 'y': 'q'}), (NULL, NULL, NULL)")
    assert rows("FROM yard.shop.made") == [
        "(1, [1, None], {'x': 1, 'y': 'q'})",
        "(None, None, None)",
    ]
    copy = "SELECT i, 'x' || i AS t, i % 2 = 0 AS b FROM range(5000) r(i)"
    assert rows(f"CREATE TABLE yard.shop.copied AS {copy}") == ["(5000,)"]
    assert rows("SELECT count(*), max(t), count(*) FILTER (b) FROM yard.shop.copied") == [
        "(5000, 'x999', 2500)"
    ]
    rows("CREATE VIEW yard.shop.seen AS SELECT 1 AS one")
    assert rows("FROM yard.shop.seen") == ["(1,)"]
    for what in ("VIEW yard.shop.seen", "TABLE yard.shop.copied", "TABLE yard.shop.made"):
        rows(f"DROP {what}")
    with pytest.raises(PeerError, match="numbers is a table of files"):
        rows("INSERT INTO yard.numbers VALUES (1, 'x')")


@pytest.mark.long
def test_values_of_all_types_are_inserted(attached):
    """What a client inserts is what it reads again."""
    rows = attached.rows
    columns = [
        eval(name)[0] for name in rows("SELECT column_name FROM (DESCRIBE FROM test_all_types())")
    ]
    for name in columns:
        local = f'SELECT "{name}" AS v FROM test_all_types()'
        rows(f"CREATE TABLE yard.shop.every AS {local}")
        assert attached.texts("FROM yard.shop.every") == attached.texts(local), name
        rows("DROP TABLE yard.shop.every")


def test_a_tenant_that_reads_only(peer, server, there):
    peer.ask(f"ATTACH '{there}' AS narrow (TOKEN '{server.secrets['eve']}')")
    try:
        assert peer.rows("SELECT count(*) FROM narrow.small") == ["(3,)"]
        with pytest.raises(PeerError, match="numbers does not exist"):
            peer.rows("FROM narrow.numbers")
        with pytest.raises(PeerError, match="CREATE TABLE writes"):
            peer.rows("CREATE TABLE narrow.main.made(i INTEGER)")
    finally:
        peer.ask("DETACH narrow")


# --- the end -------------------------------------------------------------------------------------


def test_connections_end_with_their_clients(server, there):
    """One that says so, and one that is killed in the middle of a query."""
    admin = server.principal("root")
    with a_peer() as peer:
        peer.ask(f"ATTACH '{there}' AS yard (TOKEN '{server.secrets['ben']}')")
        before = len(server.yard.clients(admin))
        peer.ask("DETACH yard")
        wait_until(lambda: len(server.yard.clients(admin)) == before - 1)
        slow = "SELECT count(*) FROM range(100_000) a(i), range(1_000_000) b(j) WHERE i * j = 7"
        peer.tell(asked_there(there, server.secrets["ben"], slow))
        wait_until(lambda: any(each.protocol == "quack" for each in server.yard.active()))
        peer.process.kill()
        wait_until(lambda: not server.yard.active())
    wait_until(lambda: len(server.yard.clients(admin)) == before - 1)


@pytest.mark.long
def test_tls(peer, tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed, and a certificate is needed")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    files = ["-keyout", str(key), "-out", str(cert)]
    name = ["-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(["openssl", *words.split(), *name, *files], check=True, capture_output=True)
    with a_server(tmp_path / "yard", certificate=(cert, key)) as served:
        peer.ask(f"SET ca_cert_file = '{cert}'")
        place, token = f"quack:127.0.0.1:{served.port}", served.secrets["ann"]
        with pytest.raises(PeerError):
            peer.ask(asked_there(place, token, "SELECT 1"))
        peer.ask(f"ATTACH '{place}' AS safe (TOKEN '{token}', DISABLE_SSL false)")
        assert peer.rows("SELECT count(*) FROM safe.small") == ["(3,)"]
        peer.ask("DETACH safe")


@pytest.mark.long
def test_what_a_server_says_to_try_works(peer, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "t.csv").write_text("n\n1\n")
    with a_process(tmp_path, data, "--postgres", "off") as process:
        said = process.find(r'duckdb -c "(.*)"').replace("$QUERYARD_TOKEN", process.token)
        install, *statements = said.split("; ")
        assert install == "INSTALL quack"
        assert [peer.rows(statement) for statement in statements][-1] == ["(42,)"]
        peer.ask("DETACH yard")

"""The listener, by bytes: stalled and broken connections, limits, TLS, keys, the end."""

from __future__ import annotations

import asyncio
import logging
import random
import shutil
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from waiting import wait_until

from queryard.engine.sealing.access import Access
from queryard.service.config import ServiceConfig, ServiceLimits
from queryard.service.postgres import session
from queryard.service.postgres.catalog import CatalogQueries
from queryard.service.postgres.frames import Frame
from service.fuzzing import fuzz
from tests.service.postgres.served_postgres import Served, a_server
from tests.service.postgres.test_codec import CLIENTS, frames_of, malformed, recorded
from tests.service.postgres.test_scram import client_final


class Raw:
    """A client that says what it is told to say."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.key = (0, b"")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def say(self, letter: bytes, body: bytes = b"") -> None:
        self.send(letter + struct.pack("!i", len(body) + 4) + body)

    def hear(self) -> Frame:
        head = self._exactly(5)
        return Frame(head[0], self._exactly(struct.unpack("!i", head[1:])[0] - 4))

    def hear_until(self, letter: str) -> list[Frame]:
        found = [self.hear()]
        while found[-1].letter != letter:
            found.append(self.hear())
        return found

    def _exactly(self, number: int) -> bytes:
        data = b""
        while len(data) < number:
            more = self.socket.recv(number - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def is_closed(self) -> bool:
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            pass
        except TimeoutError:
            return False
        return True

    def start(self, user: str = "ann", minor: int = 0) -> None:
        body = struct.pack("!i", 3 << 16 | minor) + f"user\0{user}\0database\0d\0\0".encode()
        self.send(struct.pack("!i", len(body) + 4) + body)

    def log_in(self, secret: str, user: str = "ann", minor: int = 0) -> list[Frame]:
        self.start(user, minor)
        first = "n=,r=abcdef"
        heard = self.hear_until("R")
        words = f"n,,{first}".encode()
        self.say(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(words)) + words)
        challenge = self.hear()
        if challenge.letter == "E":
            return [*heard, challenge]
        self.say(b"p", client_final(secret, first, challenge.body[4:].decode()).encode())
        answer = self.hear()
        if answer.letter == "E":
            return [*heard, answer]
        heard += self.hear_until("Z")
        (key,) = [frame.body for frame in heard if frame.letter == "K"]
        self.key = (struct.unpack("!I", key[:4])[0], key[4:])
        return heard

    def cancel(self, process: int, key: bytes) -> None:
        body = struct.pack("!iI", 80877102, process) + key
        self.send(struct.pack("!i", len(body) + 4) + body)


@pytest.fixture(scope="module")
def hasty(tmp_path_factory) -> Iterator[Served]:
    """A server that waits for nothing for long."""
    limits = ServiceLimits(stall_s=0.6, login_s=0.6, connections_per_token=5, request_bytes=100_000)
    with a_server(tmp_path_factory.mktemp("hasty"), limits=limits) as served:
        yield served


@pytest.fixture
def raw(hasty) -> Iterator[Raw]:
    made = Raw(hasty.port)
    yield made
    made.socket.close()


@pytest.fixture
def client(hasty, raw) -> Raw:
    raw.log_in(hasty.secrets["ann"])
    return raw


ENDLESS = b"SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = 1\0"


def code(frame: Frame) -> str:
    assert frame.letter == "E", frame
    return next(part[1:].decode() for part in frame.body.split(b"\0") if part[:1] == b"C")


# --- what was described --------------------------------------------------------------------------


def bind(client: Raw, statement: bytes, *values: bytes) -> None:
    """Bind a statement, with results in binary form, execute it, and sync."""
    parameters = b"".join(struct.pack("!i", len(value)) + value for value in values)
    head = b"\0" + statement + b"\0" + struct.pack("!hh", 0, len(values))
    client.say(b"B", head + parameters + struct.pack("!hh", 1, 1))
    client.say(b"E", b"\0" + bytes(4))
    client.say(b"S")


def describe(client: Raw, statement: bytes, sql: bytes, *types: int) -> Frame:
    given = struct.pack(f"!h{len(types)}i", len(types), *types)
    client.say(b"P", statement + b"\0" + sql + b"\0" + given)
    client.say(b"D", b"S" + statement + b"\0")
    client.say(b"S")
    (found,) = [frame for frame in client.hear_until("Z") if frame.letter == "T"]
    return found


def test_rows_are_of_the_types_that_were_described(hasty, client):
    file = hasty.data / "changing.parquet"
    pq.write_table(pa.table({"a": [1, 2]}), file)
    describe(client, b"one", b"SELECT a FROM changing")
    bind(client, b"one")
    assert [frame.letter for frame in client.hear_until("Z")] == ["2", "D", "D", "C", "Z"]
    for changed in ({"a": [1.5, 2.5]}, {"a": ["x"]}):
        pq.write_table(pa.table(changed), file)
        for _ in range(2):  # whether its columns are known before it runs, or not
            bind(client, b"one")
            heard = client.hear_until("Z")
            (refused,) = [frame for frame in heard if frame.letter == "E"]
            assert code(refused) == "0A000"
            assert b"cached plan must not change" in refused.body
            assert not [frame for frame in heard if frame.letter == "D"]
    describe(client, b"all", b"SELECT * FROM changing")
    pq.write_table(pa.table({"a": ["x"], "b": [1]}), file)
    bind(client, b"all")
    (refused,) = [frame for frame in client.hear_until("Z") if frame.letter == "E"]
    assert code(refused) == "0A000"
    assert b"2 columns now" in refused.body


@pytest.mark.parametrize("value", ["5", "-5", "1.50", "0", "99999999999999999999"])
def test_a_decimal_is_what_was_described(client, value):
    numeric = 1700
    row = describe(client, b"d", b"SELECT $1 AS x, $1 + 1 AS y", numeric)
    assert row.body.count(struct.pack("!i", numeric)) == 2
    bind(client, b"d", value.encode())
    assert [frame.letter for frame in client.hear_until("Z")] == ["2", "D", "C", "Z"]


# --- what a connection may hold ------------------------------------------------------------------


def test_prepared_statements_and_portals_have_a_limit(tmp_path):
    limits = ServiceLimits(prepared=3, request_bytes=50_000)
    with a_server(tmp_path, limits=limits) as served:
        client = Raw(served.port)
        client.log_in(served.secrets["ann"])

        def parse(name: bytes, sql: bytes = b"SELECT a FROM small") -> str:
            client.say(b"P", name + b"\0" + sql + b"\0\0\0")
            client.say(b"S")
            return outcome()

        def outcome() -> str:
            refused = [frame for frame in client.hear_until("Z") if frame.letter == "E"]
            return code(refused[0]) if refused else "done"

        assert [parse(name) for name in (b"a", b"b", b"c")] == ["done"] * 3
        assert parse(b"d") == "53400"
        assert parse(b"") == "done"
        client.say(b"C", b"Sa\0")
        assert parse(b"d") == "done"

        client.say(b"Q", b"BEGIN\0")
        client.hear_until("Z")
        for name in (b"1", b"2", b"3", b"4"):
            client.say(b"B", name + b"\0b\0" + struct.pack("!hhh", 0, 0, 0))
        client.say(b"S")
        assert outcome() == "53400"
        client.say(b"Q", b"ROLLBACK\0")
        client.hear_until("Z")

        client.say(b"C", b"Sb\0")
        long = b"SELECT '" + b"x" * 30_000 + b"'"
        assert parse(b"", long) == "done"
        assert parse(b"", long) == "done"  # in the place of the one before
        assert parse(b"e", long) == "53400"
        client.socket.close()


# --- long texts ----------------------------------------------------------------------------------


def test_long_texts_are_looked_at_beside_the_loop(hasty, client, monkeypatch):
    seen: list[tuple[str, bool]] = []

    def watched(name, function):
        def called(*arguments):
            seen.append((name, threading.current_thread().name.startswith("queryard-postgres")))
            return function(*arguments)

        return called

    for name in ("statements_of", "_bound", "_sample"):
        whole = f"queryard.service.postgres.session.{name}"
        monkeypatch.setattr(whole, watched(name, getattr(session, name)))
    concerns = watched("concerns", CatalogQueries.concerns)
    monkeypatch.setattr(CatalogQueries, "concerns", concerns)

    def run(padding: bytes) -> dict[str, bool]:
        seen.clear()
        client.say(b"Q", b"SELECT 'pg_" + padding + b"' FROM small\0")
        assert "D" in [frame.letter for frame in client.hear_until("Z")]
        client.say(b"P", b"\0SELECT 'pg_" + padding + b"', $1 FROM small\0\0\0")
        client.say(b"D", b"S\0")
        bind(client, b"", b"x")
        assert "D" in [frame.letter for frame in client.hear_until("Z")]
        return dict(seen)

    run(b"")  # the catalogs of the client are made
    assert run(b"") == dict.fromkeys(("statements_of", "concerns", "_bound", "_sample"), False)
    assert run(b"x" * 9_000) == dict.fromkeys(
        ("statements_of", "concerns", "_bound", "_sample"), True
    )


# --- the rate of statements ----------------------------------------------------------------------


def test_every_statement_is_counted_once(hasty, client, monkeypatch):
    counted = []
    usage = hasty.ground.yard.usage
    monkeypatch.setattr(usage, "count_statement", counted.append)

    def simple(sql: bytes) -> None:
        client.say(b"Q", sql + b"\0")
        client.hear_until("Z")

    def taken() -> int:
        number = len(counted)
        counted.clear()
        return number

    simple(b"SELECT count(*) FROM small")
    assert taken() == 1
    simple(b"SELECT relname FROM pg_catalog.pg_class")
    assert taken() == 1
    simple(b"SELECT 1 FROM nothing_of_this_name")
    assert taken() == 1
    simple(b"SELECT '101'::BIT AS b; SET application_name = 'x'; SHOW application_name")
    assert taken() == 1
    simple(b"BEGIN; DECLARE c CURSOR FOR SELECT a FROM small; FETCH 1 FROM c; FETCH 1 FROM c; END")
    assert taken() == 1
    simple(b"COPY (SELECT a FROM small) TO STDOUT")
    assert taken() == 1
    for name, sql in ((b"s", b"SELECT a FROM small"), (b"c", b"SELECT relname FROM pg_class")):
        describe(client, name, sql)
        bind(client, name)
        client.hear_until("Z")
        assert taken() == 1
        bind(client, name)
        client.hear_until("Z")
        assert taken() == 1
        for place in range(3):  # nothing is run
            describe(client, name + b"%d" % place, sql)
        assert taken() == 3


# --- stalling ------------------------------------------------------------------------------------


def test_a_login_that_is_not_finished_is_ended(raw):
    raw.start()
    raw.hear_until("R")
    assert code(raw.hear()) == "08006"
    assert raw.is_closed()


def test_a_connection_that_says_nothing_is_ended(raw):
    assert raw.is_closed()


def test_half_a_message_is_not_waited_for(client):
    client.send(b"Q\0\0\1\0SELECT")
    assert client.is_closed()


def test_a_reader_that_does_not_read_loses_its_query(hasty, client):
    client.say(b"Q", b"SELECT n, repeat('x', 1000) FROM numbers, range(100)\0")
    wait_until(lambda: not hasty.ground.yard.active())
    wait_until(lambda: hasty.ground.yard.usage.connections == 0)


def test_a_client_that_vanishes_loses_its_query(hasty, client):
    client.say(b"Q", ENDLESS)
    wait_until(hasty.ground.yard.active)
    client.socket.close()
    wait_until(lambda: not hasty.ground.yard.active())
    wait_until(lambda: hasty.ground.yard.usage.connections == 0)


# --- limits --------------------------------------------------------------------------------------


def test_connections_of_a_token_are_counted(hasty):
    made = [Raw(hasty.port) for _ in range(6)]
    heard = [each.log_in(hasty.secrets["ann"]) if n < 5 else [] for n, each in enumerate(made)]
    assert all(each[-1].letter == "Z" for each in heard[:5])
    made[5].start()
    made[5].hear_until("R")
    last = made[5]
    words = b"n,,n=,r=abcdef"
    last.say(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(words)) + words)
    challenge = last.hear().body[4:].decode()
    last.say(b"p", client_final(hasty.secrets["ann"], "n=,r=abcdef", challenge).encode())
    assert code(last.hear_until("E")[-1]) == "53300"
    for each in made:
        each.socket.close()
    wait_until(lambda: hasty.ground.yard.usage.connections == 0)


def test_long_messages_are_refused(client):
    client.send(b"Q" + struct.pack("!i", 200_000))
    assert code(client.hear()) == "08P01"
    assert client.is_closed()


# --- logging in ----------------------------------------------------------------------------------


@pytest.mark.parametrize("letter", [b"p", b"Q", b"P"])
def test_strangers_send_no_long_messages(hasty, raw, letter):
    raw.start()
    raw.hear_until("R")
    raw.send(letter + struct.pack("!i", 20_000))
    assert code(raw.hear()) == "08P01"
    assert raw.is_closed()


def test_long_messages_are_taken_after_the_login(client):
    client.say(b"Q", b"SELECT length('" + b"x" * 90_000 + b"')\0")
    assert [frame.letter for frame in client.hear_until("Z")] == ["T", "D", "C", "Z"]


@pytest.mark.parametrize(("user", "secret"), [("ann", "wrong"), ("stranger", "x")])
def test_wrong_secrets_and_users_that_are_not_there_look_alike(raw, user, secret):
    heard = raw.log_in(secret, user)
    assert [frame.letter for frame in heard] == ["R", "E"]
    assert code(heard[-1]) == "28P01"
    assert raw.is_closed()


def test_a_token_that_is_revoked_ends_its_connections(tmp_path):
    with a_server(tmp_path) as served:
        raw = Raw(served.port)
        raw.log_in(served.secrets["ann"])
        served.ground.yard.tokens.revoke("ann")
        wait_until(lambda: served.ground.yard.usage.connections == 0)
        raw.say(b"Q", b"SELECT 1\0")
        assert code(raw.hear_until("E")[-1]) == "57P01"
        assert raw.is_closed()


def test_a_connection_whose_grants_change_is_ended(tmp_path):
    with a_server(tmp_path) as served:
        raw = Raw(served.port)
        raw.log_in(served.secrets["ann"])
        yard = served.ground.yard
        grants = {"sales": Access(frozenset({"small"}), sealed=True)}
        yard.reload(replace(yard.config, grants=grants))
        raw.say(b"Q", b"SELECT relname FROM pg_class\0")  # no query of the engine
        told = raw.hear_until("E")[-1]
        assert code(told) == "57P01"
        assert b"grants changed" in told.body
        assert raw.is_closed()


def test_encryption_is_refused_once(raw):
    raw.send(struct.pack("!ii", 8, 80877104))
    assert raw.socket.recv(1) == b"N"
    raw.send(struct.pack("!ii", 8, 80877103))
    assert raw.socket.recv(1) == b"N"
    raw.send(struct.pack("!ii", 8, 80877103))
    assert code(raw.hear()) == "08P01"


def test_a_newer_protocol_is_negotiated_and_has_longer_keys(hasty, raw):
    heard = raw.log_in(hasty.secrets["ann"], minor=9)
    assert heard[0].letter == "v"
    assert len(raw.key[1]) == 32


# --- cancelling ----------------------------------------------------------------------------------


def test_only_the_right_key_cancels(hasty, client):
    client.say(b"Q", ENDLESS)
    wait_until(hasty.ground.yard.active)
    process, key = client.key
    for wrong in ((process, bytes(4)), (process + 1, key), (process, key + b"x")):
        other = Raw(hasty.port)
        other.cancel(*wrong)
        assert other.is_closed()
    assert hasty.ground.yard.active()
    other = Raw(hasty.port)
    other.cancel(process, key)
    assert other.is_closed()
    heard = client.hear_until("Z")
    assert [frame.letter for frame in heard] == ["E", "Z"]
    assert code(heard[0]) == "57014"


# --- errors within a series ----------------------------------------------------------------------


def test_messages_after_an_error_are_skipped_until_sync(client):
    client.say(b"P", b"\0SELECT nothing_there FROM small\0\0\0")
    client.say(b"B", b"\0\0\0\0\0\0\0\0")
    client.say(b"E", b"\0\0\0\0\0")
    client.say(b"P", b"\0SELECT 1\0\0\0")
    client.say(b"S")
    letters = [frame.letter for frame in client.hear_until("Z")]
    assert letters == ["1", "E", "Z"]
    client.say(b"B", b"\0\0\0\1\0\0")  # a body that is wrong
    client.say(b"S")
    heard = client.hear_until("Z")
    assert code(heard[0]) == "08P01"
    client.say(b"E", b"nowhere\0\0\0\0\0")
    client.say(b"S")
    assert code(client.hear_until("Z")[0]) == "34000"


def test_portals_give_as_many_rows_as_asked_for(client):
    client.say(b"Q", b"BEGIN\0")
    client.hear_until("Z")
    client.say(b"P", b"s\0SELECT n FROM numbers ORDER BY n\0\0\0")
    client.say(b"B", b"p\0s\0\0\0\0\0\0\1\0\1")
    client.say(b"D", b"Pp\0")
    client.say(b"E", b"p\0\0\0\0\2")
    client.say(b"E", b"p\0\0\0\0\3")
    client.say(b"S")
    heard = client.hear_until("Z")
    assert [frame.letter for frame in heard] == list("12TDDsDDDsZ")
    rows = [frame.body[6:] for frame in heard if frame.letter == "D"]
    assert [int.from_bytes(row, "big") for row in rows] == [0, 1, 2, 3, 4]
    client.say(b"Q", b"COMMIT\0")
    client.hear_until("Z")
    client.say(b"E", b"p\0\0\0\0\0")
    client.say(b"S")
    assert code(client.hear_until("Z")[0]) == "34000"


def test_types_of_parameters_are_told(client):
    client.say(b"P", b"s\0SELECT $1::DATE, $3 FROM numbers WHERE n = $2 LIMIT $4\0\0\0")
    client.say(b"D", b"Ss\0")
    client.say(b"S")
    heard = client.hear_until("Z")
    assert [frame.letter for frame in heard] == list("1tTZ")
    assert struct.unpack("!H4I", heard[1].body) == (4, 1082, 20, 25, 20)


# --- a fuzzer ------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [40, pytest.param(10_000, marks=pytest.mark.long)])
def test_malformed_connections_leave_nothing_behind(hasty, number, caplog):
    samples = [frame for name in CLIENTS for data in recorded(name) for frame in frames_of(data)]
    chance = random.Random(number)
    threads = threading.active_count()
    turns = count()

    def series() -> bytes:
        return b"".join(malformed(chance, samples) for _ in range(chance.randrange(9)))

    def say(data: bytes) -> None:
        raw = Raw(hasty.port)
        try:
            if next(turns) % 2:
                raw.log_in(hasty.secrets["ann"])
            raw.send(data)
        except (OSError, EOFError):
            pass  # the server has closed it
        raw.socket.close()
        wait_until(lambda: hasty.ground.yard.usage.connections < 4)

    with caplog.at_level(logging.ERROR):
        found = fuzz((series() for _ in range(number)), number, say)
    print(found)
    found.check_server()
    assert not [record for record in caplog.records if record.exc_info], caplog.text
    wait_until(lambda: not hasty.listener.connections)
    wait_until(lambda: not hasty.ground.yard.active())
    assert threading.active_count() < threads + 40
    raw = Raw(hasty.port)
    assert raw.log_in(hasty.secrets["ann"])[-1].letter == "Z"
    raw.socket.close()


# --- TLS -----------------------------------------------------------------------------------------


def test_tls(tmp_path):
    psycopg = pytest.importorskip("psycopg")
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed, and a certificate is needed")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    files = ["-keyout", str(key), "-out", str(cert)]
    subprocess.run(
        ["openssl", *words.split(), "-addext", "subjectAltName=IP:127.0.0.1", *files],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with a_server(tmp_path, context=context) as served:
        trusted = served.dsn(sslmode="verify-full", sslrootcert=str(cert))
        with psycopg.connect(trusted) as made:
            assert made.pgconn.ssl_in_use
            assert len(made.execute("SELECT n FROM numbers").fetchall()) == 30_000
        with pytest.raises(psycopg.OperationalError, match="TLS"):
            psycopg.connect(served.dsn(sslmode="disable"))
        raw = Raw(served.port)  # what is sent in the open must not count as encrypted
        raw.send(struct.pack("!ii", 8, 80877103) + struct.pack("!ii", 8, 80877103))
        assert code(raw.hear()) == "08P01"


# --- the end -------------------------------------------------------------------------------------


def test_clients_are_told_that_the_server_stops(tmp_path):
    with a_server(tmp_path) as served:
        raw = Raw(served.port)
        raw.log_in(served.secrets["ann"])
    assert code(raw.hear()) == "57P01"
    assert raw.is_closed()


def test_a_listener_that_never_started_can_be_closed():
    from queryard.service.postgres.listener import PostgresListener

    class Yard:
        config = ServiceConfig()

    asyncio.run(PostgresListener(Yard()).close(0.0))  # type: ignore[arg-type]

"""COPY … TO a file of the client's own folder: written for good, or refused, and never undone."""

from __future__ import annotations

import struct
import time

import pytest

from queryard.engine.sealing.access import Access
from tests.service.postgres.served_postgres import a_server
from tests.service.postgres.test_listener import Raw

psycopg = pytest.importorskip("psycopg")

COPY = "COPY small TO 'rows.csv'"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copies")
    (folder / "out").mkdir()
    grants = {"sales": Access(sealed=True, output=folder / "out")}
    with a_server(folder, grants=grants) as made:
        yield made


@pytest.fixture
def file(served):
    made = served.data.parent / "out" / "rows.csv"
    yield made
    made.unlink(missing_ok=True)


@pytest.fixture
def connection(served):
    with psycopg.connect(served.dsn(), autocommit=True) as made:
        yield made


def refused(work) -> None:
    with pytest.raises(psycopg.errors.ActiveSqlTransaction, match="no ROLLBACK removes the file"):
        work()


def test_inside_a_transaction_no_file_is_written(connection, file):
    connection.execute("BEGIN")
    refused(lambda: connection.execute(COPY))
    connection.execute("ROLLBACK")
    refused(lambda: connection.execute(f"{COPY}; SELECT no_such_column FROM small"))
    refused(lambda: connection.execute(f"CREATE TEMP TABLE t (a INT); {COPY}"))

    def in_a_pipeline():
        with connection.pipeline():
            connection.execute(COPY)
            connection.execute("SELECT 1")

    refused(in_a_pipeline)
    assert not file.exists()


@pytest.mark.parametrize("prepare", [False, True])
def test_alone_it_is_written(connection, file, prepare):
    assert connection.execute(COPY, prepare=prepare).statusmessage == "COPY 3"
    assert file.read_text().splitlines()[0] == "a,b"


def test_whether_it_is_alone_is_known_with_the_next_message(served, file):
    client = Raw(served.port)
    client.log_in(served.secrets["ann"])
    client.say(b"P", b"\0" + COPY.encode() + b"\0\0\0")
    client.say(b"B", b"\0\0" + struct.pack("!hhh", 0, 0, 0))
    client.say(b"E", b"\0" + bytes(4))
    time.sleep(0.1)
    assert not file.exists()
    client.say(b"S")
    assert [frame.letter for frame in client.hear_until("Z")] == ["1", "2", "C", "Z"]
    assert file.exists()
    client.socket.close()

"""A sealed client reaches its granted tables, and nothing else of the machine or of others."""

from __future__ import annotations

import os

import duckdb
import pytest

import queryard
from queryard.core.errors import QueryardError
from queryard.engine.errors import NotAllowed
from queryard.engine.instances.instance import Connection
from queryard.engine.instances.pool import PooledInstance
from queryard.engine.sealing.access import Access
from queryard.engine.syntax.classify import classify
from queryard.live.client import Client
from queryard.live.describing import describe

from .sealed_escapes import ESCAPES, Escape

CANARY = "canary-3141592"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Tables of two tenants, with a canary in those of the other."""
    folder = tmp_path_factory.mktemp("yard") / "files"
    folder.mkdir()
    with duckdb.connect() as writer:
        writer.execute(
            f"COPY (SELECT range AS id, range % 7 AS kind FROM range(10_000)) "
            f"TO '{folder}/orders.parquet' (ROW_GROUP_SIZE 2048)"
        )
        writer.execute(f"COPY (SELECT '{CANARY}' AS word) TO '{folder}/theirs.parquet'")
        writer.execute(f"COPY (SELECT '{CANARY}' AS word) TO '{folder}/secret.csv'")
        writer.execute(f"COPY (SELECT range AS n FROM range(50)) TO '{folder}/events.csv'")
    with duckdb.connect(str(folder / "theirdb.duckdb")) as theirs:
        theirs.execute(f"CREATE TABLE words AS SELECT '{CANARY}' AS word")
    (folder / "theirs.duckdb").write_bytes((folder / "theirdb.duckdb").read_bytes())
    return folder


@pytest.fixture(scope="module")
def session(data):
    os.environ["CANARY"] = CANARY
    with queryard.connect(data, slots=2, memory="1 GB", statistics="off") as opened:
        yield opened
    del os.environ["CANARY"]


ACCESS = Access(tables=frozenset({"orders", "events"}), sealed=True)


@pytest.fixture
def client(session):
    opened = Client.open(session.host, memory_bytes=64 << 20, tenant="lab", access=ACCESS)
    yield opened
    opened.close()


def rows(client, sql, *parameters, **options):
    return rows_of(client.submit(sql, *parameters, **options))


def rows_of(ticket):
    found = [tuple(row.values()) for batch in ticket.output for row in batch.to_pylist()]
    assert ticket.over.wait(30)
    return found


def written(escape: Escape, folder) -> str:
    return escape.sql.format(
        secret=folder / "secret.csv",
        folder=folder,
        mine=folder / "orders.parquet",
        new=folder / "new.csv",
        kept=folder / ".queryard",
        relative=folder.name,
    )


@pytest.mark.parametrize("escape", ESCAPES, ids=lambda escape: escape.name)
def test_no_way_out(escape, client, data):
    before = sorted(os.listdir(data))
    sql = written(escape, data)
    if escape.line == "class":
        with pytest.raises(NotAllowed) as failed:
            client.submit(sql)
    else:
        ticket = client.submit(sql)
        with pytest.raises(QueryardError if escape.line == "empty" else NotAllowed) as failed:
            rows_of(ticket)
    told = str(failed.value)
    assert CANARY not in told
    assert str(data) not in told
    try:
        told = str(describe(client, sql))
    except QueryardError as error:
        told = str(error)
    assert CANARY not in told
    assert str(data) not in told
    assert sorted(os.listdir(data)) == before


@pytest.fixture(scope="module")
def sealed(session, tmp_path_factory):
    """An instance as those that queries of the client run on."""
    seal = session.host.reach(ACCESS).seal()
    made = PooledInstance(2, 64 << 20, tmp_path_factory.mktemp("spill"), seal)
    yield made.instance
    made.close()


def run(connection: Connection, sql: str) -> None:
    """Run a script, with no look at what it says."""
    for statement in classify(sql):
        connection.rows(statement.sql)


@pytest.mark.parametrize(
    "escape", [each for each in ESCAPES if each.alone], ids=lambda escape: escape.name
)
def test_the_seal_alone_holds(escape, sealed, data):
    """Had the first line missed a statement, the instance would not open the file either."""
    before = sorted(os.listdir(data))
    connection = Connection(sealed)
    try:
        with pytest.raises(QueryardError) as failed:
            run(connection, written(escape, data))
        assert CANARY not in str(failed.value)
        assert "already exists" not in str(failed.value)
    finally:
        connection.run("DROP VIEW IF EXISTS memory.main.c")
        connection.run("DROP MACRO TABLE IF EXISTS memory.main.c")
        connection.close()
    assert sorted(os.listdir(data)) == before

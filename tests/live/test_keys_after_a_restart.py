"""Idempotency keys outlive a session: what has run under one does not run again."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import queryard
from queryard import QueryardError
from queryard.history import HistoryReader
from queryard.live.admission.limits import AlreadyRan

INSERT = "INSERT INTO shop.bought VALUES ($1)"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as made:
        made.execute("CREATE TABLE bought (n INTEGER)")
    (tmp_path / "yard.toml").write_text('[databases]\nshop = "shop.duckdb"\n')
    return tmp_path / "yard.toml"


def _open(data: Path) -> queryard.Session:
    return queryard.connect(data, write=True, slots=1, memory="300 MB", statistics="off")


def test_a_statement_that_ended_well_does_not_run_again_after_a_restart(data: Path):
    with _open(data) as qy:
        qy.sql(INSERT, [1], idempotency_key="a")
        ran = qy.submit(INSERT, [1], idempotency_key="b")
        ran.wait()
    with _open(data) as qy:
        with pytest.raises(AlreadyRan, match=r"has run already.* was not run again") as told:
            qy.sql(INSERT, [1], idempotency_key="b")
        assert told.value.query == ran.id
        with pytest.raises(QueryardError, match="another statement or other parameters"):
            qy.sql(INSERT, [2], idempotency_key="b")
        qy.sql(INSERT, [3], idempotency_key="b", tenant="other")
        qy.sql(INSERT, [4], idempotency_key="c")
        assert qy.sql("FROM shop.bought ORDER BY n").fetchall() == [(1,), (1,), (3,), (4,)]


def test_a_statement_that_failed_or_only_reads_may_run_again(data: Path):
    with _open(data) as qy:
        with pytest.raises(QueryardError):
            qy.sql(INSERT, ["no number"], idempotency_key="a")
        assert qy.sql("SELECT count(*) FROM shop.bought", idempotency_key="r").fetchone() == (0,)
    with _open(data) as qy:
        qy.sql(INSERT, ["7"], idempotency_key="a")
        assert qy.sql("SELECT count(*) FROM shop.bought", idempotency_key="r").fetchone() == (1,)


def test_the_same_session_gives_the_same_query(data: Path):
    with _open(data) as qy:
        first = qy.submit(INSERT, [1], idempotency_key="a")
        again = qy.submit(INSERT, [1], idempotency_key="a")
        assert first.id == again.id
        first.wait()
        assert qy.sql("SELECT count(*) FROM shop.bought").fetchone() == (1,)


def test_a_redacted_history_has_no_literals(data: Path):
    from queryard.live.session import Session
    from queryard.sql.catalog import open_catalog

    with Session(open_catalog(data), slots=1, memory="300 MB") as qy:
        qy.host.redact_history()
        qy.sql("SELECT 'my secret'").fetchall()
        with pytest.raises(QueryardError, match="my secret"):
            qy.sql("SELECT CAST('my secret' AS INTEGER)").fetchall()
    files = list((data.parent / ".queryard").glob("history*"))
    assert files
    assert not any(b"my secret" in file.read_bytes() for file in files)
    with HistoryReader(next(file for file in files if file.suffix == ".sqlite")) as reader:
        assert [row.outcome for row in reader.queries()] == ["finished", "failed"]

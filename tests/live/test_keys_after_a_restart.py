"""Idempotency keys outlive a session: what has run under one does not run again."""

from __future__ import annotations

import gc
from pathlib import Path

import duckdb
import pytest

import queryard
from queryard import QueryardError
from queryard.history import History, HistoryReader, HistoryWarning
from queryard.live.admission.limits import AlreadyRan, MayHaveRun
from queryard.live.keys import KeyRecord
from queryard.remote.errors import error_of
from queryard.service.problems import problem_of

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


def _count(qy: queryard.Session) -> int:
    (count,) = qy.sql("SELECT count(*) FROM shop.bought").fetchall()[0]
    return int(count)


def test_a_crash_between_commit_and_the_word_of_it_is_told(
    data: Path, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as killed, _open(data) as qy:
        killed.setattr(KeyRecord, "end", lambda *given: None)
        ran = qy.submit(INSERT, [1], idempotency_key="a")
        ran.wait()
    with _open(data) as qy:
        with pytest.raises(MayHaveRun, match=r"may have run.* was not run again") as told:
            qy.sql(INSERT, [1], idempotency_key="a")
        assert told.value.query == ran.id
        with pytest.raises(QueryardError, match="another statement or other parameters"):
            qy.sql(INSERT, [2], idempotency_key="a")
        assert _count(qy) == 1
    problem = problem_of(told.value)
    assert (problem.kind.status, problem.kind.name) == (409, "may-have-run")
    heard = error_of({"type": problem.kind.type, "detail": problem.detail, "query": ran.id})
    assert isinstance(heard, MayHaveRun)
    assert heard.query == ran.id


def test_the_key_of_a_statement_that_failed_runs_it_again_at_once(data: Path):
    later = "INSERT INTO shop.later VALUES (1)"
    with _open(data) as qy:
        for _ in range(2):
            with pytest.raises(QueryardError, match="later does not exist"):
                qy.sql(later, idempotency_key="a")
        qy.sql("CREATE TABLE shop.later (n INTEGER)")
        ran = qy.submit(later, idempotency_key="a")
        assert ran.wait(30)
        assert qy.submit(later, idempotency_key="a").id == ran.id
        assert qy.sql("SELECT count(*) FROM shop.later").fetchone() == (1,)
    with _open(data) as qy, pytest.raises(AlreadyRan):
        qy.sql(later, idempotency_key="a")


def test_a_script_that_failed_may_have_run_in_part(data: Path):
    script = "INSERT INTO shop.bought VALUES (1); INSERT INTO shop.nowhere VALUES (1)"
    with _open(data) as qy:
        for _ in range(2):
            with pytest.raises(QueryardError):
                qy.sql(script, idempotency_key="a")
        assert _count(qy) <= 1
    with _open(data) as qy, pytest.raises(MayHaveRun, match="in part"):
        qy.sql(script, idempotency_key="a")


def test_a_result_that_is_kept_no_more_does_not_invite_to_run_a_write_again(data: Path):
    with _open(data) as qy:
        ran = qy.submit(INSERT, [1], idempotency_key="a")
        assert ran.wait(30)
        name = ran.id
        del ran
        gc.collect()
        with pytest.raises(AlreadyRan, match="was not run again") as told:
            qy.sql(INSERT, [1], idempotency_key="a")
        assert told.value.query == name
        assert _count(qy) == 1


def test_statements_of_a_transaction_have_no_key_but_its_end_may(data: Path):
    with _open(data) as qy:
        qy.sql("BEGIN", idempotency_key="begin")
        with pytest.raises(QueryardError, match="give the key to its COMMIT"):
            qy.sql(INSERT, [1], idempotency_key="a")
        qy.sql(INSERT, [1])
        qy.sql("ROLLBACK")
        assert _count(qy) == 0
        with pytest.raises(QueryardError, match="give the key to its COMMIT"):
            qy.sql("BEGIN; INSERT INTO shop.bought VALUES (5)", idempotency_key="b")
        qy.sql("BEGIN; INSERT INTO shop.bought VALUES (5); COMMIT", idempotency_key="b")
        qy.sql("BEGIN")
        qy.sql(INSERT, [2])
        qy.sql("COMMIT", idempotency_key="order-7")
        assert _count(qy) == 2
    with _open(data) as qy:
        qy.sql("BEGIN")
        qy.sql(INSERT, [2])
        with pytest.raises(AlreadyRan):
            qy.sql("COMMIT", idempotency_key="order-7")
        qy.sql("ROLLBACK")
        with pytest.raises(AlreadyRan):
            qy.sql("BEGIN; INSERT INTO shop.bought VALUES (5); COMMIT", idempotency_key="b")
        assert _count(qy) == 2


def test_the_key_of_one_sending_is_forgotten_with_its_transaction(data: Path):
    with _open(data) as qy:
        qy.sql("BEGIN", idempotency_key="once-1")
        first = qy.submit(INSERT, [1], idempotency_key="once-2")
        assert first.wait(30)
        assert qy.submit(INSERT, [1], idempotency_key="once-2").id == first.id
        qy.sql("ROLLBACK", idempotency_key="once-3")
        assert _count(qy) == 0
    with _open(data) as qy:
        qy.sql(INSERT, [1], idempotency_key="once-2")
        assert _count(qy) == 1


def test_a_key_in_a_transaction_that_was_not_open_yet_is_not_taken_for_done(data: Path):
    with _open(data) as qy:
        begun, ran = qy.submit("BEGIN"), qy.submit(INSERT, [1], idempotency_key="a")
        assert begun.wait(30)
        assert ran.wait(30)
        qy.sql("ROLLBACK")
        qy.sql(INSERT, [1], idempotency_key="a")
        assert _count(qy) == 1


def test_a_history_that_cannot_be_written_is_told(data: Path, monkeypatch: pytest.MonkeyPatch):
    with _open(data) as qy:
        monkeypatch.setattr(History, "flush", lambda self, timeout=0.0: False)
        with pytest.warns(HistoryWarning, match=r"key is (begun|done) was not written"):
            qy.sql(INSERT, [1], idempotency_key="a")
        monkeypatch.undo()
        assert _count(qy) == 1

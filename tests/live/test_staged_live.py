"""Staged queries through the kernel: the same answers as native ones, and the same manners."""

from __future__ import annotations

import collections
import threading
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from waiting import wait_until

import queryard
from queryard.core.commands import Kill
from queryard.core.events import EstimateChanged
from queryard.engine.errors import OutOfMemory, QueryCancelled, QueryFailed, QueryTimedOut
from queryard.engine.staged import node
from queryard.history import HistoryReader
from queryard.sim import replay

ROWS = 200_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("staged")
    key = [i % 1000 for i in range(ROWS)]
    facts = pa.table({"id": range(ROWS), "key": key, "value": [float(i % 97) for i in range(ROWS)]})
    pq.write_table(facts, place / "facts.parquet", row_group_size=20_000)
    dims = pa.table({"key": range(1000), "name": [f"n{i % 7}" for i in range(1000)]})
    pq.write_table(dims, place / "dims.parquet")
    return place


@pytest.fixture
def qy(folder):
    with queryard.connect(folder, slots=2, memory="1 GB") as session:
        yield session


QUERIES = [
    "SELECT count(*), sum(value), avg(value), min(id), max(id) FROM facts",
    "SELECT name, count(*) AS n, sum(value) AS v FROM facts JOIN dims USING (key) GROUP BY name "
    "ORDER BY name",
    "SELECT key, count(DISTINCT value) AS d FROM facts WHERE id % 3 = 0 GROUP BY key "
    "ORDER BY d DESC, key LIMIT 10",
    "SELECT * FROM facts WHERE id IN (SELECT max(id) FROM facts GROUP BY key) ORDER BY id",
    "SELECT id FROM facts WHERE value > 95 ORDER BY id",
    "SELECT * FROM facts ORDER BY value DESC, id LIMIT 5",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_the_answer_is_the_native_one(qy, sql):
    handle = qy.submit(sql, plan="staged")
    staged = handle.result(60).arrow()
    assert handle.reasons == ()
    native = qy.sql(sql).arrow()
    assert staged.schema.equals(native.schema)
    assert staged.to_pylist() == native.to_pylist()
    assert handle.wait(10)
    assert handle.progress() == 1.0
    assert handle.status == "finished"


def test_many_at_once_share_the_slots(qy):
    handles = [qy.submit(QUERIES[i % len(QUERIES)], plan="staged") for i in range(8)]
    expected = [qy.sql(sql).arrow().to_pylist() for sql in QUERIES]
    for i, handle in enumerate(handles):
        assert handle.result(60).arrow().to_pylist() == expected[i % len(QUERIES)]


def test_what_cannot_be_split_says_why_and_runs_natively(qy):
    handle = qy.submit("SELECT row_number() OVER (ORDER BY key) FROM dims", plan="staged")
    assert handle.result(60).arrow().num_rows == 1000
    assert "window" in handle.reasons[0]


def test_parameters_and_scripts_run_natively(qy):
    assert qy.sql("SELECT ?", [1], plan="staged").fetchall() == [(1,)]
    assert qy.sql("SELECT 1; SELECT 2", plan="staged").fetchall() == [(2,)]


def test_what_the_session_made_stands_before_files(qy):
    qy.submit("CREATE TEMP TABLE dims AS SELECT 42 AS key, 'x' AS name")
    handle = qy.submit("SELECT count(*) FROM dims", plan="staged")
    assert handle.result(60).fetchall() == [(1,)]
    assert handle.wait(10)
    assert "dims" in handle.reasons[0]


def test_frames_are_split_too(qy):
    qy.register("mine", pa.table({"n": range(10_000)}))
    handle = qy.submit("SELECT sum(n), count(*) FROM mine", plan="staged")
    assert handle.result(60).fetchall() == [(49_995_000, 10_000)]
    assert handle.reasons == ()


def test_an_error_of_the_data_is_the_users_to_see(qy):
    handle = qy.submit("SELECT sum(CAST(name AS INTEGER)) FROM dims", plan="staged")
    with pytest.raises(QueryFailed, match="Conversion Error"):
        handle.result(60)
    assert handle.wait(10)
    assert qy.sql("SELECT count(*) FROM dims", plan="staged").fetchall() == [(1000,)]


def test_an_unknown_table_is_named(qy):
    with pytest.raises(QueryFailed, match="nowhere"):
        qy.sql("SELECT * FROM nowhere", plan="staged")


SLOW = (
    "SELECT count(*) FROM facts a JOIN facts b USING (key) "
    "JOIN dims d ON d.key = b.key + a.id - b.id"
)


def test_it_can_be_cancelled(qy):
    handle = qy.submit(SLOW, plan="staged")
    wait_until(lambda: handle.status != "waiting")
    handle.cancel()
    with pytest.raises(QueryCancelled):
        handle.result(30)
    assert handle.wait(30)
    assert qy.sql(QUERIES[0], plan="staged").arrow().num_rows == 1


def test_it_has_a_time_limit(qy):
    handle = qy.submit(SLOW, plan="staged", time_limit=0.2)
    with pytest.raises(QueryTimedOut):
        handle.result(60)
    assert handle.wait(30)


def test_it_can_be_cancelled_while_it_is_planned(qy):
    for _ in range(5):
        handle = qy.submit(QUERIES[1], plan="staged")
        handle.cancel()
        with pytest.raises(QueryCancelled):
            handle.result(30)
        assert handle.wait(30)


def test_nothing_is_left_behind(folder, tmp_path):
    before = {thread.name for thread in threading.enumerate()}
    with queryard.connect(folder, slots=2, memory="600 MB", temp=tmp_path) as qy:
        for sql in QUERIES:
            qy.sql(sql, plan="staged").arrow()
    assert list(tmp_path.iterdir()) == []
    assert "queryard" not in " ".join(t.name for t in threading.enumerate() if t.name not in before)


def test_a_large_result_is_handed_over_in_order(qy):
    answer = qy.sql("SELECT id, value FROM facts ORDER BY id DESC", plan="staged")
    ids = answer.arrow().column("id").to_pylist()
    assert ids == list(range(ROWS - 1, -1, -1))


def test_the_pool_lends_the_memory_of_staged_queries(qy):
    pool = qy.host.engine.pool
    before = qy.submit("SELECT count(*) FROM facts")
    before.result().arrow()
    assert before.wait(30)
    handle = qy.submit(SLOW, plan="staged", memory=qy.client.pool_bytes)
    wait_until(lambda: pool._used_bytes)
    # The idle instance of the native query has given up its limit.
    assert pool.limits_bytes == pool._used_bytes == qy.client.pool_bytes
    handle.cancel()
    assert handle.wait(30)
    for sql in QUERIES:
        qy.sql(sql, plan="staged").arrow()
    wait_until(lambda: not pool._used_bytes)


def test_one_that_waits_for_memory_holds_none(qy):
    first = qy.submit(SLOW, plan="staged", memory=qy.client.pool_bytes)
    second = qy.submit(SLOW, plan="staged", memory=qy.client.pool_bytes)
    time.sleep(1.0)
    assert qy.host.engine.pool._used_bytes <= qy.client.pool_bytes
    for handle in (first, second):
        handle.cancel()
        assert handle.wait(30)
    assert qy.sql(QUERIES[0], plan="staged").arrow().num_rows == 1


def test_a_comment_after_the_end_does_not_prevent_staging(qy):
    handle = qy.submit("SELECT count(*) FROM facts; -- all of them", plan="staged")
    assert handle.result(30).fetchall() == [(ROWS,)]
    assert handle.wait(30)
    assert handle.reasons == ()  # of running otherwise


class Faulty:
    """Counts the attempts of every task, and lets those of some fail."""

    def __init__(self, monkeypatch, fails):
        self.attempts = collections.Counter()
        self._fails = fails
        self._real = node.run_task
        monkeypatch.setattr(node, "run_task", self)

    def __call__(self, spec, *rest):
        self.attempts[spec.output.key] += 1
        error = self._fails(spec, self.attempts[spec.output.key])
        if error is not None:
            raise error
        return self._real(spec, *rest)


@pytest.mark.parametrize(
    "error", [OSError(5, "Input/output error"), OutOfMemory("Out of Memory Error: no block")]
)
def test_a_task_that_fails_for_a_reason_that_passes_runs_again(qy, monkeypatch, error):
    faulty = Faulty(monkeypatch, lambda spec, attempt: error if attempt == 1 else None)
    staged = qy.sql(QUERIES[1], plan="staged").arrow()
    assert set(faulty.attempts.values()) == {2}
    assert staged.to_pylist() == qy.sql(QUERIES[1]).arrow().to_pylist()


def test_a_task_that_fails_every_time_is_given_up_with_its_cause(qy, monkeypatch):
    error = OutOfMemory("Out of Memory Error: no block")
    faulty = Faulty(monkeypatch, lambda spec, attempt: error)
    with pytest.raises(OutOfMemory, match=r"failed 4 times.*Out of Memory Error: no block"):
        qy.sql(QUERIES[0], plan="staged")
    assert max(faulty.attempts.values()) == 4


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT sum(CAST(name AS INTEGER)) FROM dims", "Conversion Error: Could not convert"),
        ("SELECT max(id + 9223372036854775807) FROM facts WHERE id > 5", "Out of Range Error"),
    ],
)
def test_what_would_fail_again_is_not_tried_again(qy, monkeypatch, sql, words):
    faulty = Faulty(monkeypatch, lambda spec, attempt: None)
    with pytest.raises(QueryFailed, match=words):
        qy.sql(sql, plan="staged")
    assert set(faulty.attempts.values()) == {1}


def test_a_mistake_of_the_program_is_the_querys_error(qy, monkeypatch):
    faulty = Faulty(monkeypatch, lambda spec, attempt: ImportError("no module named x"))
    with pytest.raises(ImportError, match="no module named x"):
        qy.sql(QUERIES[0], plan="staged")
    assert set(faulty.attempts.values()) == {1}
    monkeypatch.undo()
    assert qy.sql(QUERIES[0], plan="staged").arrow().num_rows == 1


def test_a_kill_stops_one_launch_and_no_other(qy, monkeypatch):
    """The launch that was killed is tried again, and the answer is right."""
    backend = qy.host.backend
    killed = []

    def kill_the_first(spec, attempt):
        if not killed:
            killed.append(spec.output.key)
            launch = spec.attempt
            backend.execute(Kill(launch))
            wait_until(lambda: launch in backend._tasks._killed)
            time.sleep(0.05)

    faulty = Faulty(monkeypatch, kill_the_first)
    assert qy.sql(QUERIES[0], plan="staged").fetchall() == qy.sql(QUERIES[0]).fetchall()
    assert faulty.attempts[killed[0]] == 2
    assert set(faulty.attempts.values()) <= {1, 2}
    assert sum(faulty.attempts.values()) == len(faulty.attempts) + 1


def test_staged_tasks_are_estimated_by_those_that_have_ended(folder, tmp_path):
    with queryard.connect(folder, slots=1, memory="1 GB", history=tmp_path / "h.db") as session:
        for _ in range(2):
            session.submit(QUERIES[1], plan="staged").result(60)
    with HistoryReader(tmp_path / "h.db") as reader:
        journal = reader.journal(reader.session(None).session)
    assert replay(journal) is None
    told = collections.defaultdict(set)
    for step in journal.steps:
        for event in step.events:
            if isinstance(event, EstimateChanged):
                told[event.job].add(event.map_s)
    # The plan's own figure, and what was made of it as tasks ended.
    assert max(map(len, told.values())) > 1

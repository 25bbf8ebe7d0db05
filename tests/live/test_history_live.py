"""What a session leaves in its history, what the next one learns from it, and what can go wrong."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import duckdb
import pytest
from engine.native_driving import write_facts
from long_forms import some_of
from waiting import wait_until

import queryard
from queryard.backends.protocol import RunEnded
from queryard.core.errors import QueryardError
from queryard.history import HistoryReader, HistoryWarning
from queryard.history.tidying import RUNS
from queryard.live.inputs import HandedOver
from queryard.live.loop import Mailbox
from queryard.replay import difference, recorded
from queryard.sim import replay

from .random_mixes import play

SOURCES = Path(__file__).parents[2] / "src"
WORK = "SELECT sum(hash(words, r)::HUGEINT), {} FROM facts, range({}) t(r)"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite"


def is_sound(file: Path) -> bool:
    with sqlite3.connect(file) as connection:
        return connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


# --- what is recorded ----------------------------------------------------------------------------


def test_a_query_is_asked_foreseen_ended_and_paid_for(data: Path, file: Path) -> None:
    with queryard.connect(data, slots=2, memory="2 GB", history=file) as session:
        # Long enough to be forecast before it ends.
        handle = session.submit(
            WORK.format(1, 2000), tenant="sales/emea", priority=3, deadline="5 min"
        )
        assert handle.wait(60.0)
        rows = handle.result().fetchall()
        bad = session.submit("SELECT error('my words') FROM dims")
        assert bad.wait(60.0)
        timing = handle.timing
    with HistoryReader(file) as reader:
        good, failed = reader.queries()
        (last, *_) = reader.costs(reader.session().session)[::-1]
        jobs = reader.jobs(reader.session().session)
        steps = reader.journal(reader.session().session).steps
        assert [row.template for row in reader.past()] == [good.template]
        assert reader.session().closed_at is not None
    assert (good.query, good.sql, good.outcome) == (handle.id, handle.sql, "finished")
    assert (good.tenant, good.priority, good.rows) == ("sales/emea", 3.0, len(rows))
    assert good.deadline_s == pytest.approx(timing.submitted_s + 300.0, abs=1.0)
    assert (good.asked_s, good.started_s, good.ended_s) == (
        timing.submitted_s,
        timing.started_s,
        timing.ended_s,
    )
    assert good.work_s == pytest.approx(timing.work_s)
    assert good.held_s == pytest.approx(timing.held_s)
    assert good.work_s is not None
    assert good.work_s > 0
    assert good.predicted_work_s is not None
    assert good.predicted_by in ("plan", "bytes", "template", "guess")
    assert good.first_forecast is not None
    assert good.first_forecast.end_s is not None
    assert (failed.outcome, failed.rows) == ("failed", 0)
    assert "my words" in failed.error
    assert (last.waiting, last.running) == (0, 0)
    assert last.decisions > 0
    assert last.driver_cpu_s >= last.decide_s > 0
    assert [job["outcome"] for job in jobs] == ["finished", "failed"]
    assert len(steps) >= 3


def test_every_end_is_told_with_what_became_of_it(data: Path, file: Path) -> None:
    limits = {"memory": "100 MB"}
    with queryard.connect(data, slots=1, memory="2 GB", history=file, limits=limits) as session:
        first = session.submit(WORK.format(1, 2000))
        waits = session.submit(WORK.format(2, 2000))
        late = session.submit(WORK.format(3, 2000), time_limit=0.05)
        with pytest.raises(queryard.Refused):
            session.submit("SELECT 1", memory="200 MB")
        assert late.wait(30.0)
        waits.cancel()
        assert waits.wait(30.0)
        first.cancel()
        assert first.wait(30.0)
    with HistoryReader(file) as reader:
        outcomes = {row.query: row.outcome for row in reader.queries()}
    assert [outcomes[handle.id] for handle in (first, waits, late)] == [
        "cancelled",
        "cancelled",
        "failed",
    ]
    assert sorted(outcomes.values()) == ["cancelled", "cancelled", "failed", "refused"]


def test_a_query_that_was_cancelled_in_the_queue_is_recorded(data: Path, file: Path) -> None:
    """A query that is queued for the session's connection is not in the kernel yet."""
    with queryard.connect(data, slots=2, memory="2 GB", history=file) as session:
        session.submit(f"CREATE TEMP TABLE t AS {WORK.format('1 AS one', 900)}")
        waits = session.submit("FROM t")
        waits.cancel()
        assert waits.wait(10.0)
    with HistoryReader(file) as reader:
        found = [row for row in reader.queries() if row.query == waits.id]
    assert [row.outcome for row in found] == ["cancelled"]


def test_a_query_that_is_run_again_with_more_memory_is_one_query(data: Path, file: Path) -> None:
    sql = "SELECT list(words), count(DISTINCT words || id) FROM facts GROUP BY key"
    with queryard.connect(data, slots=2, memory="2 GB", history=file) as session:
        # Its like was modest so far, which is no help.
        record = session.submit(sql)
        assert record.wait(60.0)
    with HistoryReader(file) as reader:
        assert [row.query for row in reader.queries()] == [record.id]


def test_twins_are_marked_and_cost_nothing(data: Path, file: Path) -> None:
    with queryard.connect(data, slots=2, memory="2 GB", history=file) as session:
        handles = [session.submit(WORK.format(0, 60)) for _ in range(4)]
        answers = [handle.result(60.0).fetchall() for handle in handles]
        assert all(handle.wait(30.0) for handle in handles)
    assert len({repr(answer) for answer in answers}) == 1
    with HistoryReader(file) as reader:
        first, *twins = reader.queries()
        assert len(reader.past()) == 1
    assert first.twin_of == ""
    assert first.work_s is not None
    assert first.work_s > 0
    assert [(row.twin_of, row.work_s) for row in twins] == [(first.query, 0.0)] * 3


# --- it can be replayed --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", some_of(range(8), 3))
def test_whatever_happened_can_be_replayed(data: Path, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    file = tmp_path / "history.sqlite"
    slots = draw.choice((1, 2, 3, (1, 3)))
    with queryard.connect(data, slots=slots, memory="600 MB", history=file) as session:
        handles = play(session, draw)
        ends = {handle.id: (handle.status, handle.error) for handle in handles}
    with HistoryReader(file) as reader:
        rows = reader.queries()
        found = recorded(reader)
        leases = reader.leases(found.session.session)
        jobs = reader.jobs(found.session.session)
    assert {row.query: row.outcome for row in rows} == {q: end for q, (end, _) in ends.items()}
    assert len(rows) == len(ends)
    difference_found = replay(found.journal)
    assert difference_found is None, str(difference_found)
    assert all(lease["ended_s"] is not None for lease in leases)
    assert all(job["ended_s"] is not None for job in jobs)
    for profile in (None, {"order": "fifo"}):
        assert found.simulate(profile).queries.keys() <= found.real.queries.keys()
    assert is_sound(file)


@pytest.mark.parametrize("profile", ["fifo", "marshal"])
def test_the_simulated_session_responds_like_the_real_one(
    data: Path, file: Path, profile: str
) -> None:
    """The bound is wide: other programs may take the processors in the middle of it."""
    draw = random.Random(5)
    with queryard.connect(data, slots=2, memory="2 GB", history=file, profile=profile) as session:
        handles = []
        for number in range(24):
            handles.append(session.submit(WORK.format(number, draw.choice((1, 2, 4, 16)))))
            time.sleep(draw.expovariate(1 / 0.03))
        assert all(handle.wait(60.0) for handle in handles)
    with HistoryReader(file) as reader:
        found = recorded(reader)
    error = difference(found, found.simulate())
    assert error is not None
    print(f"{profile}: simulated mean response {error:+.1%} beside the real one")
    assert abs(error) < 0.5


# --- what the next session knows -----------------------------------------------------------------


def test_the_next_session_predicts_by_template(data: Path, file: Path) -> None:
    with queryard.connect(data, slots=2, memory="2 GB", history=file) as session:
        before = session.submit(WORK.format(1, 15))
        assert before.wait(60.0)
        took_s = before.timing.work_s
    with queryard.connect(data, slots=1, memory="2 GB", history=file) as session:
        big = session.submit(WORK.format(2, 9999), memory=session.client.pool_bytes)
        # The file is read while the first queries are on their way, and counts for them, too.
        early = session.submit(WORK.format(3, 15))
        wait_until(lambda: early.timing.predicted_by == "template", 20.0)
        assert early.timing.predicted_work_s == pytest.approx(took_s)
        assert session.submit(WORK.format(4, 15)).timing.predicted_by == "template"
        assert not big.ended


def ran(session: queryard.Session, sql: str, **options: Any) -> None:
    handle = session.submit(sql, **options)
    handle.result().fetchall()
    assert handle.wait(60.0)


def test_the_next_session_knows_that_tables_have_grown(tmp_path: Path, file: Path) -> None:
    table = tmp_path / "data" / "numbers.parquet"
    table.parent.mkdir()

    def write(rows: int) -> int:
        duckdb.sql(f"COPY (SELECT hash(range) AS a FROM range({rows})) TO '{table}'")
        return table.stat().st_size

    sql = "SELECT max(hash(a, r)) FROM numbers, range({}) t(r)"
    small_bytes = write(20_000)
    with queryard.connect(table.parent, slots=1, memory="1 GB", history=file) as session:
        ran(session, sql.format(100))
    with HistoryReader(file) as reader:
        (past,) = reader.past()
    assert past.table_bytes == small_bytes
    large_bytes = write(80_000)
    with queryard.connect(table.parent, slots=1, memory="1 GB", history=file) as session:
        found = session.estimate(sql.format(101))
    assert found.by == "template"
    assert found.work_s.value == pytest.approx(past.work_s * large_bytes / small_bytes)


def test_the_next_session_knows_what_models_have_learnt(data: Path, file: Path) -> None:
    def learnt(session: queryard.Session) -> dict[str, dict[str, Any]]:
        own = session.host.estimator.learnt()
        assert own is not None
        return own | session.host.ask(lambda coordinator: coordinator.learnt())

    with queryard.connect(data, slots=2, memory="2 GB", history=file) as session:
        ran(session, "SELECT key, count(*) FROM facts GROUP BY key", plan="staged")
        session.estimate("SELECT count(*) FROM facts")
        ran(session, "SELECT count(*) FROM facts")
        before = learnt(session)
    assert before["tasks"]["factors"]
    with HistoryReader(file) as reader:
        assert {row.model: row.state for row in reader.learnt()} == before
    with queryard.connect(data, slots=2, memory="2 GB", history=file) as session:
        session.estimate("SELECT 1")
        after = learnt(session)
        assert (after["prices"], after["tasks"]) == (before["prices"], before["tasks"])
        # DuckDB is asked for its plan, and what its slots do is seen, too.
        assert before["widths"].items() <= after["widths"].items()
    # A session that has not read it yet must not write over it.
    with queryard.connect(data, slots=2, memory="2 GB", history=file) as session:
        assert session.host.estimator.learnt() is None
    with HistoryReader(file) as reader:
        found = {row.model: row.state for row in reader.learnt()}
    assert found["prices"] == before["prices"]


def test_what_was_learnt_before_a_reset_is_not_recalled(data: Path, file: Path) -> None:
    with queryard.connect(data, slots=2, memory="2 GB", history=file) as session:
        session.estimate("SELECT 1")
        new = session.host.estimator.learnt()
        for number in range(3):
            session.estimate(f"SELECT sum(amount) AS s{number} FROM facts")
            ran(session, f"SELECT sum(amount) AS s{number} FROM facts")
        assert session.host.estimator.learnt() != new
    with queryard.connect(data, slots=2, memory="2 GB", history=file) as session:
        session.reset_models(["prices"])
        session.estimate("SELECT 1")
        assert session.host.estimator.learnt() == new


# --- where there is no history -------------------------------------------------------------------


def test_no_history_is_written_if_none_is_wanted(tmp_path: Path) -> None:
    write_facts(tmp_path, 1000)
    before = sorted(tmp_path.iterdir())
    with queryard.connect(tmp_path, slots=2, memory="2 GB", history=False) as session:
        assert session.sql("SELECT count(*) FROM facts").fetchall() == [(1000,)]
        assert session.report().history_cpu_s == 0.0
        assert session.report().history_error is None
        assert sorted(tmp_path.iterdir()) == before
    assert sorted(tmp_path.iterdir()) == before


def test_a_history_lies_beside_the_data_by_default(tmp_path: Path) -> None:
    write_facts(tmp_path, 1000)
    with queryard.connect(tmp_path, slots=2, memory="2 GB") as session:
        session.sql("SELECT count(*) FROM facts").fetchall()
    with HistoryReader(tmp_path / ".queryard" / "history.sqlite") as reader:
        assert len(reader.queries()) == 1


def test_a_history_goes_where_one_says(data: Path, tmp_path: Path) -> None:
    place = tmp_path / "deep" / "down" / "mine.sqlite"
    with queryard.connect(data, slots=2, memory="2 GB", history=str(place)) as session:
        session.sql("SELECT count(*) FROM facts").fetchall()
    with HistoryReader(place) as reader:
        assert len(reader.queries()) == 1


def _works_without(session: queryard.Session) -> None:
    for number in range(3):
        assert session.sql(f"SELECT {number} + count(*) FROM facts").fetchall()
    assert session.sql("SELECT sum(price) FROM facts").fetchall()


def _work_without(data: Path, file: Path) -> None:
    """A session that cannot record."""
    with queryard.connect(data, slots=2, memory="2 GB", history=file) as session:
        _works_without(session)
        _wait_for_the_end_of_recording(session)


def _wait_for_the_end_of_recording(session: queryard.Session) -> None:
    wait_until(lambda: session.report().history_error is not None, 20.0)


@pytest.mark.parametrize(
    "content", [b"this is no database" * 100, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_broken_history_is_left_alone_and_the_session_works(
    data: Path, file: Path, content: bytes
) -> None:
    file.write_bytes(content)
    with pytest.warns(HistoryWarning, match=r"no longer recorded.*move it away"):
        _work_without(data, file)
    assert file.read_bytes() == content


def test_a_place_that_cannot_be_written_is_warned_of(data: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.warns(HistoryWarning, match="no longer recorded"):
        _work_without(data, tmp_path / "file" / "history.sqlite")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may do anything")
def test_the_history_of_data_that_cannot_be_written_to_goes_to_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = tmp_path / "data"
    place.mkdir()
    write_facts(place, 1000)
    place.chmod(0o500)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with queryard.connect(place, slots=2, memory="2 GB") as session:
                _works_without(session)
    finally:
        place.chmod(0o700)
    (found,) = (tmp_path / "cache").rglob("history.sqlite")
    with HistoryReader(found) as reader:
        assert len(reader.queries()) == 4


def test_a_history_that_breaks_in_the_middle_ends_with_a_warning(data: Path, file: Path) -> None:
    with queryard.connect(data, slots=2, memory="2 GB", history=file) as session:
        session.sql("SELECT 1").fetchall()
        history = session.host._recorder.history
        assert history is not None
        assert history.flush()
        with sqlite3.connect(file) as connection:
            connection.execute("DROP TABLE asked")
        session.sql("SELECT 2").fetchall()
        with pytest.warns(HistoryWarning):
            _wait_for_the_end_of_recording(session)
        _works_without(session)


# --- crashes and company -------------------------------------------------------------------------

KILLED = """
import sys, queryard
session = queryard.connect(sys.argv[1], slots=2, memory="2 GB", history=sys.argv[2])
number = 0
big = session.submit("SELECT sum(hash(words, r)::HUGEINT) FROM facts, range(100000) t(r)")
while True:
    number += 1
    session.sql(f"SELECT count(*) + {number} FROM dims").fetchall()
    print(number, flush=True)
"""


def _is_begun(file: Path) -> bool:
    if not file.is_file():
        return False
    with HistoryReader(file) as reader:
        return bool(reader.sessions())


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal here")
@pytest.mark.parametrize("after_s", [0.7])
def test_a_killed_session_leaves_a_history_that_goes_on(
    data: Path, file: Path, after_s: float
) -> None:
    command = [sys.executable, "-c", KILLED, str(data), str(file)]
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    process.stdout.readline()
    wait_until(lambda: _is_begun(file), 30.0)
    time.sleep(after_s)
    process.send_signal(signal.SIGKILL)
    process.stdout.read()
    process.wait()
    process.stdout.close()
    assert is_sound(file)
    with HistoryReader(file) as reader:
        (session,) = reader.sessions()
        assert session.closed_at is None
        rows = reader.queries()
        assert rows[0].outcome == "lost"
        assert [row.outcome for row in rows[1:]].count("lost") <= 2
        assert {row.outcome for row in rows} <= {"finished", "lost"}
        found = recorded(reader, session.session)
    # It never ended: what it held is the least it needs, and it does not count as answered.
    assert replay(found.journal) is None
    assert rows[0].query not in found.real.queries
    (big,) = (one for one in found.workload.arrivals if one.query.id == rows[0].query)
    assert rows[0].held_s is not None
    assert big.work_s >= rows[0].held_s - 1e-6
    assert big.cancel_s is None
    with queryard.connect(data, slots=2, memory="2 GB", history=file) as after:
        after.sql("SELECT count(*) FROM dims").fetchall()
    with HistoryReader(file) as reader:
        assert [row.lost for row in reader.sessions()] == [True, False]
        assert reader.queries(session=session.session) == rows
        # The last one counts, although the killed one is not closed.
        assert [row.outcome for row in reader.queries(session=reader.session().session)] == [
            "finished"
        ]


def test_two_sessions_on_the_same_data_share_a_history(data: Path, file: Path) -> None:
    with (
        queryard.connect(data, slots=1, memory="2 GB", history=file) as one,
        queryard.connect(data, slots=1, memory="2 GB", history=file) as two,
    ):
        # A template each: tidying may come at any time, and leaves the last RUNS of every one.
        def ask(session: queryard.Session, name: str) -> None:
            for number in range(RUNS):
                session.sql(f"SELECT count(*) + {number} AS {name} FROM dims").fetchall()

        threads = [
            threading.Thread(target=ask, args=asked) for asked in ((one, "one"), (two, "two"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with HistoryReader(file) as reader:
        sessions = [row.session for row in reader.sessions()]
        assert len(sessions) == 2
        for session in sessions:
            assert [row.outcome for row in reader.queries(session=session)] == ["finished"] * RUNS
            assert replay(reader.journal(session)) is None
        assert len(reader.past(RUNS)) == 2 * RUNS
    assert is_sound(file)


# --- nothing is left behind ----------------------------------------------------------------------


def _open_files() -> set[str]:
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            continue
    return {place for place in found if "queryard" in place or "sqlite" in place}


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_a_closed_session_leaves_no_thread_and_no_open_file(tmp_path: Path) -> None:
    write_facts(tmp_path, 5000)
    kept = tmp_path / ".queryard"
    for _ in range(2):
        threads, files = set(threading.enumerate()), _open_files()
        sockets = len(os.listdir("/proc/self/fd"))
        session = queryard.connect(tmp_path, slots=2, memory="2 GB")
        handles = [session.submit(f"SELECT count(*) + {n} FROM facts") for n in range(10)]
        session.submit("SELECT sum(hash(words, r)::HUGEINT) FROM facts, range(9999) t(r)")
        assert handles[0].wait(30.0)
        session.forecasts()
        session.close()
        assert set(threading.enumerate()) <= threads
        assert _open_files() <= files
        assert not list((kept / "sessions").iterdir())
        # DuckDB keeps one or two of its own from the first time on.
        assert len(os.listdir("/proc/self/fd")) <= sockets + 4


@pytest.mark.parametrize("plan", ["native", "staged"])
def test_a_query_of_which_all_rows_were_read_has_not_been_cancelled(
    data: Path, file: Path, plan: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session is closed before the loop has heard of the end of the query."""
    posted = Mailbox.post

    def post(self: Mailbox, given: Any) -> None:
        if isinstance(given, RunEnded | HandedOver):
            time.sleep(0.1)
        posted(self, given)

    monkeypatch.setattr(Mailbox, "post", post)
    with queryard.connect(data, slots=1, history=file) as session:
        session.sql("SELECT count(*) FROM facts", plan=plan).fetchall()
    with HistoryReader(file) as reader:
        assert [record.outcome for record in reader.queries()] == ["finished"]


def test_a_closed_session_answers_at_once_that_nothing_is_there(data: Path, file: Path) -> None:
    session = queryard.connect(data, slots=2, memory="2 GB", history=file)
    handle = session.submit("SELECT 1")
    assert handle.wait(30.0)
    session.close()
    began = time.monotonic()
    assert session.forecasts() == {}
    assert session.queries() == ()
    assert handle.why().status == "finished"
    assert session.report().running == 0
    with pytest.raises(QueryardError, match="active query"):
        session.why(handle.id)
    with pytest.raises(QueryardError, match="closed"):
        session.submit("SELECT 1")
    assert time.monotonic() - began < 5.0


def test_how_much_is_kept_is_the_users_choice(tmp_path: Path) -> None:
    file = tmp_path / "h.sqlite"
    given = {"days": 7, "size": "200 MB"}
    with queryard.connect(tables={}, history=file, retention=given) as session:
        session.sql("SELECT 1").fetchall()
    assert file.exists()
    for wrong, complaint in (
        ({"days": 0}, "days must be a number above 0, got 0"),
        ({"days": "seven"}, "days must be a number above 0, got 'seven'"),
        ({"size": "much"}, "much"),
        ({"weeks": 1}, "unknown key 'weeks'"),
        (7, "give days and size"),
    ):
        with pytest.raises(QueryardError, match=complaint):
            queryard.connect(tables={}, history=file, retention=wrong)

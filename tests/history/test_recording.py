"""What goes in comes out, and recording makes no query wait."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest
from history_samples import (
    NODE_STEP,
    asked_row,
    cost_row,
    ended_row,
    forecast_row,
    is_sound,
    record,
    session_row,
    steps_of,
)
from waiting import wait_until

from queryard.core.errors import QueryardError
from queryard.core.journal import Journal, Step
from queryard.history import (
    History,
    HistoryError,
    HistoryReader,
    HistoryWarning,
    LearntRow,
    Retention,
    Steps,
)


def test_rows_come_back_as_they_were_recorded(file: Path) -> None:
    history = History.open(file)
    history.begin(session_row())
    history.asked(asked_row(deadline_s=9.0, tenant="sales/emea", priority=2.5))
    history.forecast(forecast_row(made_s=1.0, end_s=5.0))
    history.forecast(forecast_row(made_s=2.0, end_s=4.5))
    history.ended(ended_row(time_s=4.0, started_s=1.5))
    history.cost(cost_row())
    history.close()
    with HistoryReader(file) as reader:
        (session,) = reader.sessions()
        assert (session.session, session.profile["name"], session.queries) == ("s1", "fifo", 1)
        assert session.closed_at is not None
        (query,) = reader.queries()
        assert (query.tenant, query.deadline_s, query.priority) == ("sales/emea", 9.0, 2.5)
        assert (query.waited_s, query.ran_s, query.response_s) == (0.5, 2.5, 3.0)
        assert (query.outcome, query.rows, query.peak_memory_bytes) == ("finished", 7, 5000)
        assert query.asked_at == session.began_at + 1.0
        assert query.first_forecast == forecast_row(made_s=1.0, end_s=5.0)
        assert query.last_forecast == forecast_row(made_s=2.0, end_s=4.5)
        assert query.forecast_error == pytest.approx(-1.0 / 3.0)
        assert reader.costs("s1") == [cost_row()]
        assert len(reader.forecasts("s1")) == 2


def test_the_journal_comes_back_whole(file: Path) -> None:
    history = History.open(file)
    history.begin(session_row())
    recorded = [NODE_STEP, *steps_of("q1"), *steps_of("q2", 5.0)]
    journal = Journal(steps=Steps(history))
    for step in recorded:
        journal.steps.append(step)
    assert journal.steps == []
    history.close()
    with HistoryReader(file) as reader:
        found = reader.journal("s1")
    assert found.steps == recorded
    assert found.settings == {"seed": 0}
    assert found.profile["order"] == "fifo"


def test_an_open_query_has_no_end(file: Path) -> None:
    history = History.open(file)
    history.begin(session_row())
    history.asked(asked_row("q1"))
    history.asked(asked_row("q2"))
    history.ended(ended_row("q2", outcome="failed", error="no such table"))
    history.close()
    with HistoryReader(file) as reader:
        first, second = reader.queries()
        assert (first.outcome, first.ended_s, first.response_s) == ("open", None, None)
        assert (second.outcome, second.error, second.response_s) == (
            "failed",
            "no such table",
            None,
        )
        assert reader.queries(outcomes=["open"]) == [first]


def test_queries_are_chosen_by_tenant_template_time_and_number(file: Path) -> None:
    history = History.open(file)
    history.begin(session_row(began_at=1000.0))
    for number, tenant in enumerate(["a", "a/b", "ab", "A/b"]):
        template = "t1" if number < 2 else "t2"
        history.asked(asked_row(f"q{number}", float(number), tenant=tenant, template=template))
    history.close()
    with HistoryReader(file) as reader:

        def ids(**which: object) -> list[str]:
            return [row.query for row in reader.queries(**which)]  # type: ignore[arg-type]

        assert ids() == ["q0", "q1", "q2", "q3"]
        assert ids(tenant="a") == ["q0", "q1"]
        assert ids(tenant="A") == ["q3"]
        assert ids(template="t2") == ["q2", "q3"]
        assert ids(since=1002.0) == ["q2", "q3"]
        assert ids(limit=1) == ["q3"]
        assert ids(limit=1, tenant="a") == ["q1"]
        assert ids(session="s1", limit=9) == ["q0", "q1", "q2", "q3"]
        assert ids(session="other") == []


def test_the_past_of_a_template_is_what_finished_on_its_own(file: Path) -> None:
    history = History.open(file)
    history.begin(session_row(began_at=100.0))
    for number in range(5):
        history.asked(asked_row(f"q{number}"))
        history.ended(ended_row(f"q{number}", float(number), work_s=float(number)))
    history.asked(asked_row("twin", twin_of="q1"))
    history.ended(ended_row("twin", work_s=0.0))
    history.asked(asked_row("bad", template="other"))
    history.ended(ended_row("bad", outcome="failed"))
    history.asked(asked_row("staged", plan="staged"))
    history.ended(ended_row("staged", work_s=50.0))
    history.close()
    with HistoryReader(file) as reader:
        past = reader.past()
        assert [row.work_s for row in past] == [0.0, 1.0, 2.0, 3.0, 4.0]
        assert {row.template for row in past} == {"select ?"}
        assert (past[4].ended_at, past[4].peak_memory_bytes, past[4].held_s) == (104.0, 5000, 2.5)
        assert {row.outcome for row in past} == {"finished"}
        assert [row.work_s for row in reader.past(limit=2)] == [3.0, 4.0]


def test_what_a_model_has_learnt_takes_the_place_of_what_it_had_before(file: Path) -> None:
    history = History.open(file)
    history.begin(session_row())
    for number in range(3):
        history.learnt(LearntRow("prices", 10.0 + number, {"read": number}))
    history.learnt(LearntRow("widths", 20.0, {}))
    history.close()
    with HistoryReader(file) as reader:
        assert reader.learnt() == [
            LearntRow("prices", 12.0, {"read": 2}),
            LearntRow("widths", 20.0, {}),
        ]


def test_the_past_of_a_template_tells_how_far_cancelled_queries_got(file: Path) -> None:
    history = History.open(file)
    history.begin(session_row(began_at=100.0))
    history.asked(asked_row("whole"))
    history.ended(ended_row("whole", 3.0, work_s=1.0))
    for number in range(5):
        history.asked(asked_row(f"q{number}"))
        history.ended(
            ended_row(f"q{number}", 4.0 + number, work_s=number + 9.0, outcome="cancelled")
        )
    history.asked(asked_row("twin", twin_of="q1"))
    history.ended(ended_row("twin", 20.0, outcome="cancelled"))
    history.asked(asked_row("staged", plan="staged"))
    history.ended(ended_row("staged", 21.0, outcome="cancelled"))
    history.asked(asked_row("waited"))
    history.ended(ended_row("waited", 22.0, outcome="cancelled", started_s=None, work_s=0.0))
    history.close()
    with HistoryReader(file) as reader:
        found = [(row.work_s, row.outcome, row.ended_at) for row in reader.past(limit=2)]
    # Neither kind takes the place of the other.
    assert found == [
        (1.0, "finished", 103.0),
        (12.0, "cancelled", 107.0),
        (13.0, "cancelled", 108.0),
    ]


def test_all_is_in_the_file_within_a_second_without_asking(file: Path) -> None:
    history = History.open(file)
    history.begin(session_row())
    history.flush()
    history.asked(asked_row())
    time.sleep(0.9)
    with HistoryReader(file) as reader:
        assert len(reader.queries()) == 1
    history.close()


def test_rows_from_many_threads_all_arrive(file: Path) -> None:
    history = History.open(file)
    history.begin(session_row())

    def ask(thread: int) -> None:
        for number in range(200):
            history.asked(asked_row(f"q{thread}-{number}"))

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert history.flush()
    with HistoryReader(file) as reader:
        assert len({row.query for row in reader.queries()}) == 1600
    history.close()


def test_recording_costs_the_caller_microseconds(file: Path) -> None:
    history = History.open(file)
    history.begin(session_row())
    history.flush()
    row = asked_row()
    best = min(_seconds(lambda: history.asked(row)) for _ in range(5))
    history.close()
    assert best < 50e-6


def _seconds(act) -> float:
    began = time.perf_counter()
    for _ in range(200):
        act()
    return (time.perf_counter() - began) / 200


def test_importing_the_history_loads_no_engine() -> None:
    code = (
        "import sys\n"
        "import queryard.history\n"
        "slow = {'pyarrow', 'duckdb'} & set(sys.modules)\n"
        "sys.exit(' '.join(slow) or 0)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


# --- when it cannot be written -------------------------------------------------------------------


def test_a_place_that_cannot_be_written_is_told_once_and_nothing_else_happens(
    tmp_path: Path,
) -> None:
    (tmp_path / "in-the-way").write_text("a file, not a folder")

    def session() -> History:
        history = History.open(tmp_path / "in-the-way" / "history.sqlite")
        history.begin(session_row())
        _wait_for_error(history)
        for _ in range(10):
            history.asked(asked_row())
        assert not history.flush()
        history.close()
        return history

    with pytest.warns(HistoryWarning, match="no longer recorded") as caught:
        history = session()
    assert len(caught) == 1
    assert history.error is not None
    assert "in-the-way" in history.error
    assert "name another file" in history.error


def test_a_full_disk_ends_the_recording_and_keeps_what_was_there(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from queryard.history.writing import Writer

    commit = Writer.commit

    def commit_on_a_small_disk(writer: Writer) -> bool:
        # SQLite says the same when it may not have more pages as when the disk has no more.
        writer._connection.execute("PRAGMA max_page_count = 100")
        return commit(writer)

    monkeypatch.setattr(Writer, "commit", commit_on_a_small_disk)
    history = History.open(file)
    history.begin(session_row())
    history.asked(asked_row("q1"))
    assert history.flush()

    def record_too_much() -> None:
        for number in range(2000):
            history.asked(asked_row(f"more{number}", sql="x" * 1000))
        _wait_for_error(history)

    with pytest.warns(HistoryWarning, match="disk is full"):
        record_too_much()
    history.asked(asked_row("later"))
    history.close()
    assert history.error is not None
    assert "make room" in history.error
    with HistoryReader(file) as reader:
        assert [row.query for row in reader.queries()] == ["q1"]
    assert is_sound(file)


def test_where_warnings_are_errors_the_session_goes_on_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "in-the-way").write_text("")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        history = History.open(tmp_path / "in-the-way" / "history.sqlite")
        _wait_for_error(history)
        history.asked(asked_row())
    assert not history.flush()
    history.close()
    assert history.error is not None


def test_a_reader_that_was_closed_says_so(file: Path) -> None:
    record(file)
    reader = HistoryReader(file)
    reader.close()
    with pytest.raises(HistoryError, match="closed database"):
        reader.queries()


@pytest.mark.filterwarnings("ignore::queryard.history.HistoryWarning")
def test_a_row_that_cannot_be_written_down_ends_the_recording(file: Path) -> None:
    history = History.open(file)
    history.begin(session_row())
    history.step(Step(0.0, (object(),), ()))  # type: ignore[arg-type]
    _wait_for_error(history)
    history.close()
    assert history.error is not None


def test_another_program_that_holds_the_file_is_waited_for(file: Path) -> None:
    record(file)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    history = History.open(file)
    history.begin(session_row("s2"))
    history.asked(asked_row("late"))
    time.sleep(0.6)
    other.execute("COMMIT")
    other.close()
    history.close()
    assert history.error is None
    with HistoryReader(file) as reader:
        assert [row.query for row in reader.queries(session="s2")] == ["late"]


def test_what_cannot_be_written_before_the_end_is_told(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(file)
    monkeypatch.setattr("queryard.history.store.CLOSE_S", 0.5)
    history = History.open(file)
    history.begin(session_row("s2"))
    assert history.flush(20.0)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    history.asked(asked_row("late"))
    with pytest.warns(HistoryWarning, match="incomplete.*another program holds the file") as caught:
        history.close()
    other.close()
    assert len(caught) == 1
    assert history.error is not None
    history._thread.join(20.0)
    assert not history._thread.is_alive()


def test_retention_must_be_something() -> None:
    with pytest.raises(QueryardError, match="days must be a number above 0"):
        Retention(days=0)
    with pytest.raises(QueryardError, match="max_bytes must be a number above 0"):
        Retention(max_bytes=-1)


# --- processes -----------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_fork_records_nothing_and_ends_at_once(file: Path) -> None:
    history = History.open(file)
    history.begin(session_row())
    history.asked(asked_row("parent"))
    assert history.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are threads
        child = os.fork()
    if child == 0:
        began = time.monotonic()
        history.asked(asked_row("child"))
        flushed = history.flush()
        history.close()
        os._exit(0 if not flushed and time.monotonic() - began < 1.0 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    history.asked(asked_row("later"))
    history.close()
    with HistoryReader(file) as reader:
        assert [row.query for row in reader.queries()] == ["parent", "later"]


def _wait_for_error(history: History) -> None:
    wait_until(lambda: history.error is not None)
    history._thread.join(5.0)

"""What is removed, what never is, and what outlives its session."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest
from history_samples import asked_row, ended_row, is_sound, record, session_row, steps_of

from queryard.history import History, HistoryError, HistoryReader, Retention, schema, tidying
from queryard.history.opening import open_for_writing

DAY_S = 86_400.0


def _age(file: Path, session: str, days: float, closed: bool = True) -> None:
    """Let a session have been seen last so many days ago."""
    at = time.time() - days * DAY_S
    connection = sqlite3.connect(file)
    connection.execute(
        "UPDATE sessions SET began_at = ?, seen_at = ?, closed_at = ? WHERE session = ?",
        (at - 60.0, at, at if closed else None, session),
    )
    connection.commit()
    connection.close()


def _rows(file: Path) -> dict[str, int]:
    connection = sqlite3.connect(file)
    try:
        return {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in schema.OF_A_SESSION
        }
    finally:
        connection.close()


def _open_and_close(file: Path, keep: Retention) -> None:
    history = History.open(file, keep=keep)
    history.begin(session_row("own", time.time()))
    for _ in range(40):
        assert history.flush()
    history.close()


def _left(file: Path) -> list[str]:
    with HistoryReader(file) as reader:
        return sorted(row.session for row in reader.sessions() if row.session != "own")


def test_sessions_older_than_wanted_go_with_all_their_rows(file: Path) -> None:
    record(file, "old", queries=3)
    one = _rows(file)
    record(file, "new", queries=3)
    _age(file, "old", days=31)
    _open_and_close(file, Retention(days=30))
    assert _left(file) == ["new"]
    assert _rows(file) == {**one, "sessions": 2}


def test_a_session_that_may_be_running_is_never_removed(file: Path) -> None:
    for name in ("running", "killed"):
        record(file, name)
    _age(file, "running", days=0.5, closed=False)
    _age(file, "killed", days=1.5, closed=False)
    _open_and_close(file, Retention(days=0.25))
    assert _left(file) == ["running"]


def test_a_file_that_is_too_large_loses_its_oldest_sessions(file: Path) -> None:
    for number, name in enumerate(["first", "second", "third"]):
        record(file, name, queries=200)
        _age(file, name, days=10 - number)
    size = file.stat().st_size
    _open_and_close(file, Retention(max_bytes=int(size * 0.8)))
    assert _left(file) == ["second", "third"]
    assert file.stat().st_size < 0.8 * size, "the file has given the pages back"
    assert is_sound(file)


def test_a_running_session_that_is_too_large_loses_its_older_steps(file: Path) -> None:
    history = History.open(file, keep=Retention(max_bytes=100_000))
    history.begin(session_row("own", time.time()))
    history.flush()
    for number in range(300):
        history.asked(asked_row(f"q{number}"))
        for step in steps_of(f"q{number}", 10.0 * number):
            history.step(step)
    history.flush()
    history.close()
    connection = open_for_writing(file)
    for _ in tidying.tidy(connection, file, Retention(max_bytes=100_000), "own"):
        pass
    connection.close()
    with HistoryReader(file) as reader:
        assert len(reader.queries()) == 300
        assert reader.session().steps == 1200
        with pytest.raises(HistoryError, match=r"session own: its steps begin with \d+, because"):
            reader.journal("own")


def test_what_templates_took_outlives_their_sessions(file: Path) -> None:
    record(file, "old", queries=3)
    _age(file, "old", days=100)
    _open_and_close(file, Retention())
    assert _left(file) == []
    with HistoryReader(file) as reader:
        assert [row.template for row in reader.past()] == ["select ?"] * 3


def test_of_each_template_the_last_few_runs_are_kept(file: Path) -> None:
    history = History.open(file)
    history.begin(session_row("own", 1000.0))
    history.flush()
    for number in range(3 * tidying.RUNS):
        template = "rare" if number % 3 == 0 else "frequent"
        history.asked(asked_row(f"q{number}", template=template))
        history.ended(ended_row(f"q{number}", float(number), work_s=float(number)))
    history.close()
    connection = open_for_writing(file)
    for _ in tidying.tidy(connection, file, Retention(), "own"):
        pass
    connection.close()
    with HistoryReader(file) as reader:
        past = reader.past(limit=1000)
    works = [row.work_s for row in past if row.template == "frequent"]
    assert len(works) == tidying.RUNS
    assert works == sorted(works)
    assert works[-1] == 3 * tidying.RUNS - 1
    assert len(past) == 2 * tidying.RUNS


def test_the_past_as_a_whole_is_bounded(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tidying, "MOST_PAST", 10)
    history = History.open(file)
    history.begin(session_row("own", 1000.0))
    for number in range(50):
        history.asked(asked_row(f"q{number}", template=f"t{number}"))
        history.ended(ended_row(f"q{number}", float(number)))
    history.flush()
    history.close()
    connection = open_for_writing(file)
    for _ in tidying.tidy(connection, file, Retention(), "own"):
        pass
    connection.close()
    with HistoryReader(file) as reader:
        assert [row.template for row in reader.past()] == [f"t{n}" for n in range(40, 50)]


def test_tidying_goes_on_where_it_was_interrupted(file: Path) -> None:
    record(file, "old", queries=50)
    _age(file, "old", days=100)
    connection = open_for_writing(file)
    part = tidying.tidy(connection, file, Retention(), "own")
    for _ in range(4):
        next(part)
    connection.close()
    assert "old" in _left(file)
    _open_and_close(file, Retention())
    assert _left(file) == []
    assert sum(_rows(file).values()) == 1

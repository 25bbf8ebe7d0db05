"""Files of earlier and later versions, of other programs, and broken ones."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from history_samples import NODE_STEP, cost_row, is_sound, record, session_row, steps_of

from queryard.history import (
    ForecastRow,
    History,
    HistoryError,
    HistoryReader,
    HistoryWarning,
    PastRow,
    migrations,
    opening,
    schema,
    writing,
)

FILES = Path(__file__).parent / "files"
VERSIONS = range(1, migrations.VERSION + 1)


def _written_by(version: int, file: Path) -> None:
    """A file as that version left it: a session that was closed, and one that was killed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(file)
    connection.executescript((FILES / f"version_{version}.sql").read_text("utf-8"))
    connection.close()


def _version(file: Path) -> int:
    connection = sqlite3.connect(file)
    try:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
    finally:
        connection.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_of_every_version_is_read_and_brought_up_to_date(file: Path, version: int) -> None:
    _written_by(version, file)
    assert _version(file) == version
    with HistoryReader(file) as reader:
        closed, killed = reader.sessions()
        assert (closed.queries, closed.steps, closed.last_s, closed.lost) == (3, 6, 16.0, False)
        assert (killed.queries, killed.steps, killed.last_s, killed.lost) == (1, 3, 4.0, True)
        assert closed.profile == {"order": "fifo", "name": "fifo"}
        told = [(q.query, q.outcome, q.started_s, q.work_s, q.held_s) for q in reader.queries()]
        assert told == [
            ("q1", "finished", 10.0, 1.0, 2.5),
            ("q2", "finished", 10.0, 0.0, 0.0),
            ("q3", "cancelled", 13.5, 1.25, 2.5),
            ("q1", "lost", 1.0, None, 3.0),
        ]
        first, *_, last = reader.queries()
        assert (first.tenant, first.deadline_s, first.burst_s) == ("sales/emea", 30.0, 0.0)
        assert first.first_forecast == ForecastRow("q1", 10.0, 11.0, 14.0)
        assert first.last_forecast == ForecastRow("q1", 11.0, 12.0, 13.0)
        assert (last.ended_s, last.burst_s, last.first_forecast) == (None, None, None)
        table_bytes = 4096.0 if version >= 8 else 0.0
        assert reader.past() == [
            PastRow("select ?", 1.0, 5000, 1_700_000_012.0, 2.5, "finished", table_bytes),
            PastRow("select ?", 1.25, 5000, 1_700_000_015.0, 2.5, "cancelled"),
        ]
        steps = [NODE_STEP, *steps_of("q1", 10.0)]
        assert reader.journal("closed").steps[:-1] == steps
        assert [row["profile"]["name"] for row in reader.policies("closed")] == ["fair"]
        assert [row["outcome"] for row in reader.leases("closed")] == ["revoked", "finished"]
        assert [row["ended_s"] for row in reader.tasks("killed")] == [None]
        assert len(reader.costs("closed")) == (0 if version == 1 else 1)
        learnt = [(row.model, row.state) for row in reader.learnt()]
        assert learnt == ([("prices", {"prices": "x"})] if version >= 9 else [])
    assert _version(file) == migrations.VERSION


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_of_every_version_is_read_where_nothing_can_be_written(
    file: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _written_by(version, file)
    before = file.read_bytes()

    def refuse(place: Path) -> None:
        raise PermissionError(13, "Permission denied", str(place))

    monkeypatch.setattr(opening, "open_for_writing", refuse)
    with HistoryReader(file) as reader:
        first, *_ = reader.queries()
        assert (first.query, first.work_s) == ("q1", 1.0)
        assert first.foreseen_by == ("plan" if version >= 3 else "")
        assert len(reader.sessions()) == 2
    assert file.read_bytes() == before


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_of_every_version_is_written_to(
    file: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All of the tidying before the end, however slow the machine is.
    monkeypatch.setattr(writing, "TIDY_PART_S", 60.0)
    _written_by(version, file)
    record(file, "new", queries=2)
    assert _version(file) == migrations.VERSION
    with HistoryReader(file) as reader:
        # The one that was killed was last seen years ago, and is removed.
        assert {row.session for row in reader.sessions()} == {"closed", "new"}
        assert [row.burst_s for row in reader.queries(session="new")] == [0.0, 0.0]
        assert reader.costs("new") == [cost_row()]
        assert len(reader.past()) == 4
    assert is_sound(file)


def test_a_file_that_was_brought_up_to_date_has_the_tables_of_a_new_one(file: Path) -> None:
    new = file.with_name("new.sqlite")
    opening.open_for_writing(new).close()
    for version in VERSIONS:
        old = file.with_name(f"{version}.sqlite")
        _written_by(version, old)
        opening.open_for_writing(old).close()
        assert _tables(old) == _tables(new)


def _tables(file: Path) -> set[tuple[str, str]]:
    connection = sqlite3.connect(file)
    try:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        return set(rows)
    finally:
        connection.close()


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _written_by(1, file)
    broken = (*migrations.MIGRATIONS[1], "CREATE TABLE sessions (again TEXT)")
    monkeypatch.setattr(migrations, "MIGRATIONS", (migrations.MIGRATIONS[0], broken))
    with pytest.raises(HistoryError, match="already exists"):
        opening.open_for_writing(file)
    monkeypatch.undo()
    assert _version(file) == 1
    with HistoryReader(file) as reader:
        assert len(reader.queries()) == 4


def test_the_tables_of_a_new_file_are_those_of_the_schema(file: Path) -> None:
    record(file)
    connection = sqlite3.connect(file)
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    assert {name for (name,) in tables} == set(schema.COLUMNS)
    for table, columns in schema.COLUMNS.items():
        found = connection.execute(f"PRAGMA table_info({table})").fetchall()
        assert [name for _, name, *_ in found] == columns.split(", ")
        indexes = connection.execute(f"PRAGMA index_list({table})").fetchall()
        assert indexes, f"{table} is removed by session, so it needs an index"
    connection.close()


def test_a_file_of_a_later_version_is_left_alone(file: Path) -> None:
    record(file)
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(HistoryError) as told:
        HistoryReader(file)
    for word in (str(file), "version 99", f"up to {migrations.VERSION}", "newer Queryard"):
        assert word in str(told.value)
    history = _warned(file)
    assert history.error == str(told.value)


def test_a_database_of_another_program_is_left_alone(file: Path) -> None:
    file.parent.mkdir()
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE mine (a)")
    connection.commit()
    before = file.read_bytes()
    connection.close()
    with pytest.raises(HistoryError, match=r"not a history of Queryard's; name another file"):
        HistoryReader(file)
    history = _warned(file)
    assert history.error is not None
    assert "not a history" in history.error
    connection = sqlite3.connect(file)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]
    connection.close()
    assert file.read_bytes() == before


@pytest.mark.parametrize("content", [b"this is no database at all" * 100, b"SQLite format 3\0xxx"])
def test_a_file_that_is_no_database_is_left_alone(file: Path, content: bytes) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    with pytest.raises(HistoryError, match="move it away"):
        HistoryReader(file)
    history = _warned(file)
    assert history.error is not None
    assert "move it away" in history.error
    assert file.read_bytes() == content


def test_a_damaged_history_is_told(file: Path) -> None:
    record(file, queries=50)
    content = bytearray(file.read_bytes())
    for page in range(2, len(content) // 4096):
        content[page * 4096 : page * 4096 + 200] = b"\xff" * 200
    file.write_bytes(content)

    def read() -> None:
        with HistoryReader(file) as reader:
            reader.sessions()
            reader.queries()

    with pytest.raises(HistoryError, match="move it away"):
        read()


def test_no_history_says_how_one_comes_to_be(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="begins with the first query"):
        HistoryReader(tmp_path / "history.sqlite")


def test_an_empty_file_is_no_history_yet_and_becomes_one(file: Path) -> None:
    file.parent.mkdir()
    file.touch()
    record(file)
    with HistoryReader(file) as reader:
        assert len(reader.queries()) == 1


def _warned(file: Path) -> History:
    def session() -> History:
        history = History.open(file)
        history.begin(session_row())
        history.flush()
        history.close()
        return history

    with pytest.warns(HistoryWarning, match="no longer recorded"):
        return session()

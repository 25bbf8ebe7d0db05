"""Files of earlier and later versions, of other programs, and broken ones."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from history_samples import is_sound, record, session_row
from sqlalchemy import Float, Integer

from queryard.history import (
    History,
    HistoryError,
    HistoryReader,
    HistoryWarning,
    migrations,
    opening,
    schema,
)


def _first_version(file: Path) -> None:
    """A file as the first version left it, with a session of three queries."""
    file.parent.mkdir(parents=True, exist_ok=True)
    connection = opening._engine(str(file), "BEGIN IMMEDIATE").connect()
    with connection.begin():
        migrations.migrate(connection, str(file), upto=1)
        for text in (
            "INSERT INTO sessions VALUES ('old', 100, 4e9, 4e9, '0.0', 1, 2, 1000, '{}', '{}')",
            "INSERT INTO asked VALUES ('old', 'q1', 1, 'select 1', 'select ?', 'a', 0, NULL, "
            "'native', 10, 2.0, NULL, 'plan', '')",
            "INSERT INTO asked VALUES ('old', 'q2', 1, 'select 1', 'select ?', 'a', 0, NULL, "
            "'native', 10, 2.0, NULL, 'plan', 'q1')",
            "INSERT INTO ended VALUES ('old', 'q1', 4, 2, 'finished', '', 1.5, 2.5, 77, 1)",
            "INSERT INTO ended VALUES ('old', 'q2', 4, 2, 'finished', '', 0.0, 0.0, 77, 1)",
        ):
            connection.exec_driver_sql(text)
    connection.close()


def _version(file: Path) -> int:
    connection = sqlite3.connect(file)
    try:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
    finally:
        connection.close()


def test_a_file_of_the_first_version_is_brought_up_to_date_by_recording(file: Path) -> None:
    _first_version(file)
    assert _version(file) == 1
    record(file, "new")
    assert _version(file) == migrations.VERSION
    with HistoryReader(file) as reader:
        assert [session.session for session in reader.sessions()] == ["old", "new"]
        old = reader.queries(session="old")
        assert [(row.query, row.work_s, row.burst_s) for row in old] == [
            ("q1", 1.5, 0.0),
            ("q2", 0.0, 0.0),
        ]
        assert len(reader.costs("new")) == 1
    assert is_sound(file)


def test_a_file_of_the_first_version_is_brought_up_to_date_by_reading(file: Path) -> None:
    _first_version(file)
    with HistoryReader(file) as reader:
        (past,) = reader.past()
        assert (past.template, past.work_s, past.ended_at) == ("select ?", 1.5, 104.0)
        assert past.peak_memory_bytes == 77
    assert _version(file) == migrations.VERSION


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _first_version(file)
    broken = (*migrations.MIGRATIONS[1], "CREATE TABLE sessions (again TEXT)")
    monkeypatch.setattr(migrations, "MIGRATIONS", (migrations.MIGRATIONS[0], broken))
    with pytest.raises(HistoryError, match="already exists"):
        opening.open_for_writing(file)
    monkeypatch.undo()
    assert _version(file) == 1
    with HistoryReader(file) as reader:
        assert len(reader.queries()) == 2


def test_the_tables_of_a_new_file_are_those_of_the_schema(file: Path) -> None:
    record(file)
    connection = sqlite3.connect(file)
    for table in schema.metadata.sorted_tables:
        found = {
            name: kind
            for _, name, kind, *_ in connection.execute(f"PRAGMA table_info({table.name})")
        }
        known = {}
        for column in table.columns:
            number = "INTEGER" if isinstance(column.type, Integer) else "TEXT"
            known[column.name] = "FLOAT" if isinstance(column.type, Float) else number
        assert found == known
        indexes = connection.execute(f"PRAGMA index_list({table.name})").fetchall()
        assert indexes, f"{table.name} is removed by session, so it needs an index"
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

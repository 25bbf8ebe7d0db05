"""A history holds what was asked: only its user may read it."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from history_samples import asked_row, record, session_row

from queryard.history import History, HistoryReader, HistoryWarning, file_to_read, file_to_write
from queryard.history.places import make_private, tighten

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="other permissions here")


@pytest.fixture(params=[0o000, 0o022, 0o277])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_history_and_the_files_beside_it_are_its_users_only(
    tmp_path: Path, umask: int
) -> None:
    file = file_to_write(tmp_path / ".queryard")
    history = History.open(file)
    history.begin(session_row())
    history.asked(asked_row())
    assert history.flush()
    assert mode(file.parent) == 0o700
    found = {path.name: mode(path) for path in file.parent.iterdir() if path.is_file()}
    history.close()
    names = ("history.sqlite", "history.sqlite-shm", "history.sqlite-wal")
    assert found == dict.fromkeys(names, 0o600)


def test_a_history_that_others_could_read_is_tightened_when_it_is_written_to(file: Path) -> None:
    record(file, "before")
    file.chmod(0o644)
    record(file, "after")
    assert mode(file) == 0o600
    with HistoryReader(file) as reader:
        assert len(reader.queries()) == 2


def test_a_file_that_is_no_history_keeps_its_permissions(file: Path) -> None:
    file.parent.mkdir()
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE mine (a)")
    connection.close()
    file.chmod(0o644)

    def write() -> None:
        history = History.open(file)
        history.begin(session_row())
        history.flush()
        history.close()

    with pytest.warns(HistoryWarning, match="not a history"):
        write()
    assert mode(file) == 0o644


def test_a_folder_that_is_there_keeps_its_permissions(tmp_path: Path) -> None:
    folder = tmp_path / ".queryard"
    folder.mkdir()
    folder.chmod(0o775)
    file_to_write(folder)
    assert mode(folder) == 0o775


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_beside_the_history_of_another_user_ones_own_goes_to_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    other = tmp_path / ".queryard" / "history.sqlite"
    other.parent.mkdir()
    other.touch()
    other.chmod(0)
    assert file_to_write(other.parent).is_relative_to(tmp_path / "cache")
    assert file_to_read(other.parent) is None


def test_a_new_session_does_not_take_the_lock_from_one_that_writes(file: Path) -> None:
    """A descriptor of the file that is closed in this process would drop the locks of SQLite."""
    record(file)
    writes = sqlite3.connect(file, isolation_level=None)
    writes.execute("PRAGMA journal_mode = DELETE")
    writes.execute("BEGIN EXCLUSIVE")
    make_private(file)
    tighten(file)
    code = (
        "import sqlite3, sys\n"
        "other = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)\n"
        "try:\n    other.execute('BEGIN IMMEDIATE')\n"
        "except sqlite3.OperationalError:\n    print('locked')\n"
    )
    told = subprocess.run([sys.executable, "-c", code, file], capture_output=True, text=True)
    writes.close()
    assert (told.stdout, told.stderr) == ("locked\n", "")

"""`queryard shuffle`: making, listing and removing copies, and what can go wrong."""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path

import duckdb
import pytest

from queryard.engine.sampling import space


@pytest.fixture
def place(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    for file in ("trips.parquet", "cities.csv"):
        shutil.copy(folder / file, tmp_path / "data")
    return tmp_path / "data"


def test_a_copy_is_made_listed_and_removed(call, place: Path) -> None:
    assert "no shuffled copy here" in call("shuffle", "--list", "--data", place).out
    made = call("shuffle", "trips", "--data", place, "--files", 4)
    assert made.code == 0, made.err
    assert "trips: 1,000 rows in 4 files" in made.out
    assert "took" in made.out
    assert "it was there" in call("shuffle", "trips", "--data", place).out
    listed = call("shuffle", "--list", "--data", place)
    assert "trips" in listed.out
    assert "holds" in listed.out
    assert "Removed: 1 copy of trips" in call("shuffle", "trips", "--remove", "-d", place).out
    again = call("shuffle", "trips", "--remove", "--data", place)
    assert (again.code, again.out) == (0, "There is no copy of trips.\n")


def test_copies_of_tables_that_changed_or_are_gone(call, place: Path) -> None:
    for table in ("trips", "cities"):
        assert call("shuffle", table, "--data", place).code == 0
    (place / "cities.csv").write_text("name,motto\nBern,\n")
    (place / "trips.parquet").unlink()
    listed = call("shuffle", "--list", "--data", place).out
    assert listed.count("the table has changed") == 2
    assert "1 row in 1 file" in call("shuffle", "cities", "--data", place).out
    assert "Removed: 1 copy of trips" in call("shuffle", "trips", "--remove", "-d", place).out


@pytest.mark.parametrize(
    ("args", "code", "problem"),
    [
        (["trip"], 2, "did you mean 'trips'"),
        ([], 2, "name the table to be copied"),
        (["trip", "--remove"], 1, "did you mean 'trips'"),
        (["trips", "--memory", "much"], 2, "--memory"),
        (["trips", "--files", "0"], 2, "--files"),
    ],
)
def test_mistakes(call, place: Path, args: list[str], code: int, problem: str) -> None:
    ended = call("shuffle", *args, "--data", place)
    assert ended.code == code
    assert problem in ended.err


def test_no_room_and_no_place(call, place: Path, tmp_path: Path, monkeypatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(space, "SPARED_BYTES", 10**18)
        ended = call("shuffle", "trips", "--data", place)
        assert ended.code == 1
        assert "are free; free some" in ended.err
    shutil.rmtree(place / ".queryard")
    (place / ".queryard").write_text("no folder")
    (tmp_path / "cache").write_text("no folder")
    ended = call("shuffle", "trips", "--data", place)
    assert ended.code == 1
    assert "can be written to none of" in ended.err


def test_ctrl_c_leaves_nothing(start, place: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT i AS n, repeat(md5(i::VARCHAR), 8) AS wide FROM range(500000) AS r(i)) "
            f"TO '{place / 'wide.parquet'}'"
        )
    process = start("shuffle", "wide", "--data", place, "--memory", "200MB")
    shuffled = place / ".queryard" / "shuffled"
    until = time.monotonic() + 60
    while not list(shuffled.glob("*/copy")) and time.monotonic() < until:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=60)
    assert process.returncode == 130, words
    assert [found.name for found in shuffled.iterdir() if found.is_dir()] == []

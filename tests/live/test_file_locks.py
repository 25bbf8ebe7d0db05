"""A session that writes a database file keeps its lock, whatever else the process does.

Each test has a second process that must not get at the file meanwhile.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import queryard
from queryard.core.errors import QueryardError

PLAIN = """
import duckdb, sys
try:
    c = duckdb.connect(sys.argv[1])
    c.execute("INSERT INTO t VALUES (?)", [int(sys.argv[2])])
    c.close()
except duckdb.Error as error:
    sys.exit(f"refused: {error}")
"""
QUERYARD = """
import queryard, sys
from queryard.core.errors import QueryardError
try:
    with queryard.connect(sys.argv[1], write=True, slots=1, history=False) as qy:
        qy.sql(f"INSERT INTO t VALUES ({sys.argv[2]})")
except QueryardError as error:
    sys.exit(f"refused: {error}")
"""
OTHERS = pytest.mark.parametrize("other", [PLAIN, QUERYARD], ids=["plain DuckDB", "Queryard"])


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "data" / "shop.duckdb"
    path.parent.mkdir()
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT 0::BIGINT AS i")
    return path


def writer(place, **options):
    return queryard.connect(place, write=True, slots=2, history=False, **options)


def insert_elsewhere(other: str, file: Path, value: int) -> str:
    """Insert a row in another process; what it said if it could not."""
    done = subprocess.run(
        [sys.executable, "-c", other, str(file), str(value)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0 or "refused: " in done.stderr, done.stderr
    return done.stderr


def check_locked(other: str, file: Path) -> None:
    assert "lock" in insert_elsewhere(other, file, 99).lower()


def check_all_there(other: str, file: Path, ours: list[int]) -> None:
    """After we have closed it, the other process writes as well, and all rows are there."""
    assert insert_elsewhere(other, file, 100) == ""
    with duckdb.connect(str(file), read_only=True) as plain:
        found = plain.sql("SELECT i FROM t ORDER BY i").fetchall()
    assert [i for (i,) in found] == [0, *ours, 100]


@OTHERS
def test_a_refresh_keeps_the_lock(file, other):
    with writer(file) as qy:
        qy.sql("INSERT INTO t VALUES (1)")
        qy.refresh()
        check_locked(other, file)
        qy.sql("INSERT INTO t VALUES (2)")
        qy.refresh()
    check_all_there(other, file, [1, 2])


@OTHERS
def test_a_refused_second_session_keeps_the_lock(file, other):
    with writer(file) as qy:
        qy.sql("INSERT INTO t VALUES (1)")
        for write in (False, True):
            with pytest.raises(QueryardError, match=r"shop\.duckdb.*a session of"):
                queryard.connect(file, write=write, slots=1, history=False)
        check_locked(other, file)
        qy.sql("INSERT INTO t VALUES (2)")
    check_all_there(other, file, [1, 2])


@OTHERS
def test_a_session_on_the_folder_passes_the_file_over_and_keeps_the_lock(file, other):
    (file.parent / "numbers.csv").write_text("a\n1\n")
    with writer(file) as qy:
        qy.sql("INSERT INTO t VALUES (1)")
        with queryard.connect(file.parent, slots=1, history=False) as second:
            assert second.sql("FROM numbers").fetchall() == [(1,)]
            assert list(second.catalog.tables) == ["numbers"]
            [(place, reason)] = second.catalog.skipped
            assert place == str(file)
            assert reason.startswith("is written by a session")
            second.refresh()
        check_locked(other, file)
        qy.sql("INSERT INTO t VALUES (2)")
    check_all_there(other, file, [1, 2])


@OTHERS
def test_a_catalog_file_that_names_it_is_refused_and_keeps_the_lock(file, other, tmp_path):
    named = tmp_path / "catalog.toml"
    named.write_text(f'[databases]\nshop = "{file}"\n')
    with writer(file) as qy:
        qy.sql("INSERT INTO t VALUES (1)")
        with pytest.raises(QueryardError):
            queryard.connect(named, slots=1, history=False).close()
        check_locked(other, file)
    check_all_there(other, file, [1])


def test_a_catalog_file_writes_it_as_well(file, tmp_path):
    named = tmp_path / "catalog.toml"
    named.write_text(f'[databases]\nshop = "{file}"\n')
    with writer(named) as qy:
        qy.sql("INSERT INTO shop.t VALUES (1)")
        qy.sql("CREATE TABLE shop.made AS SELECT 5 AS five")
        assert "shop.made" in qy.refresh()
        check_locked(PLAIN, file)
    check_all_there(PLAIN, file, [1])


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_another_name_of_the_file_keeps_the_lock(file, link, tmp_path):
    second = tmp_path / "second.duckdb"
    link(file, second)
    with writer(file) as qy, writer(None) as attaching:
        qy.sql("INSERT INTO t VALUES (1)")
        with pytest.raises(QueryardError, match="a session of"):
            queryard.connect(second, slots=1, history=False)
        for options in ("", " (READ_ONLY)"):
            with pytest.raises(QueryardError, match="a session of"):
                attaching.sql(f"ATTACH '{second}' AS other{options}")
            with pytest.raises(QueryardError):
                qy.sql(f"ATTACH '{second}' AS other{options}")
        check_locked(PLAIN, file)
        qy.sql("INSERT INTO t VALUES (2)")
        assert qy.sql("SELECT count(*) FROM t").fetchall() == [(3,)]
    check_all_there(PLAIN, file, [1, 2])


def test_a_file_that_a_statement_attaches_is_locked_until_it_is_detached(file, tmp_path):
    with writer(tmp_path / "data", tables={}) as qy:
        qy.sql("DETACH shop")
        check = insert_elsewhere(PLAIN, file, 5)
        assert check == ""
    with writer(None) as qy:
        qy.sql(f"ATTACH '{file}' AS mine")
        qy.sql("INSERT INTO mine.t VALUES (6)")
        with pytest.raises(QueryardError, match="a session of"):
            queryard.connect(file, slots=1, history=False)
        qy.refresh()
        check_locked(PLAIN, file)
        qy.sql("DETACH mine")
        with queryard.connect(file, slots=1, history=False) as reading:
            assert reading.sql("SELECT sum(i) FROM t").fetchall() == [(11,)]
            with pytest.raises(QueryardError, match="read elsewhere"):
                qy.sql(f"ATTACH '{file}' AS mine")
    check_all_there(PLAIN, file, [5, 6])


def test_a_file_that_a_statement_makes_in_the_folder_is_seen_and_locked(file):
    made = file.parent / "made.duckdb"
    with writer(file.parent) as qy:
        qy.sql(f"ATTACH '{made}' AS made")
        qy.sql("CREATE TABLE made.t AS SELECT 0::BIGINT AS i")
        assert "made.t" in qy.refresh()
        qy.sql("INSERT INTO made.t VALUES (1)")
        check_locked(PLAIN, made)
        check_locked(PLAIN, file)
    check_all_there(PLAIN, made, [1])


def test_the_catalog_sees_tables_and_columns_that_are_made(file):
    with writer(file) as qy:
        qy.sql("CREATE TABLE made AS SELECT 1 AS one")
        qy.refresh()
        assert [column.name for column in qy.catalog["made"].columns] == ["one"]
        qy.sql("ALTER TABLE made ADD COLUMN two INTEGER")
        assert "made" in qy.refresh()
        assert [column.name for column in qy.catalog["made"].columns] == ["one", "two"]
        qy.sql("DROP TABLE made")
        qy.refresh()
        assert list(qy.catalog.tables) == ["t"]


def test_a_statement_may_not_open_the_file_by_its_path(file, tmp_path):
    with writer(file) as qy, queryard.connect(slots=1, history=False) as second:
        qy.sql("INSERT INTO t VALUES (1)")
        for sql, parameters in (
            (f"SELECT size FROM read_blob('{file}')", ()),
            (f"SELECT size FROM read_blob('{file.parent}/*')", ()),
            (f"FROM '{file}'", ()),
            ("SELECT size FROM read_blob(?)", [str(file)]),
        ):
            for session in (qy, second):
                with pytest.raises(QueryardError, match=r"a session of"):
                    session.sql(sql, parameters).fetchall()
        assert qy.sql(f"SELECT '{file}' = $1", [str(file)]).fetchall() == [(True,)]
        check_locked(PLAIN, file)
    check_all_there(PLAIN, file, [1])


def test_a_session_that_reads_cannot_attach_for_writing(file):
    with queryard.connect(slots=1, history=False) as qy:
        with pytest.raises(QueryardError, match="only reads"):
            qy.sql(f"ATTACH '{file}' AS shop (READ_ONLY false)")
        qy.sql(f"ATTACH '{file}' AS shop (READ_ONLY)")
        assert qy.sql("SELECT i FROM shop.t").fetchall() == [(0,)]


@pytest.mark.parametrize(
    "path", ["'{}'", "'duckdb:{}'", "$${}$$", "'/' || '{}'", '"{}"'], ids=lambda path: path
)
def test_however_the_path_of_an_attached_file_is_written(file, path):
    with writer(None) as qy:
        qy.sql(f"ATTACH {path.format(file)} AS mine")
        with pytest.raises(QueryardError, match="a session of"):
            queryard.connect(file, slots=1, history=False)
        assert qy.sql("SELECT i FROM mine.t").fetchall() == [(0,)]

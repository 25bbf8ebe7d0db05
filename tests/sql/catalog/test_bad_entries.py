"""One bad entry of a catalog hurts only the queries that name it."""

from __future__ import annotations

import os

import duckdb
import pytest
from fsspec import register_implementation
from fsspec.implementations.memory import MemoryFileSystem

import queryard
from queryard.core.errors import QueryardError
from queryard.sql.catalog import CatalogError, open_catalog

BAD = {
    "missing": ('bad = "none.csv"', "none.csv: no such file or folder"),
    "no match": ('bad = "none*.csv"', "no file matches the pattern"),
    "a pattern that is none": ('bad = "[x.csv"', "no file matches the pattern"),
    "no format": ('bad = "notes.txt"', "the ending does not tell the format"),
    "unknown format": ('bad = { path = "good.csv", format = "xlsx" }', "unknown format 'xlsx'"),
    "two formats": ('bad = ["good.csv", "more.jsonl"]', "must be of one format"),
    "another scheme": ('bad = "nosuch://x/y.csv"', "Protocol not known: nosuch"),
    "empty folder": ('bad = "empty/"', "the folder holds no data file"),
    "no database": ('[databases]\nbad = "good.csv"', "is not a DuckDB database file"),
    "no folder": ('[folders]\nbad = "good.csv"', "is no folder"),
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "good.csv").write_text("a\n1\n2\n")
    (tmp_path / "more.jsonl").write_text('{"a": 1}\n')
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize("case", BAD)
def test_the_other_tables_work_and_the_bad_one_says_why(folder, case):
    line, reason = BAD[case]
    file = folder / "c.toml"
    file.write_text(f'[tables]\ngood = "good.csv"\n{line}\n')
    catalog = open_catalog(file)
    assert list(catalog) == ["good"]
    ((place, told),) = catalog.skipped
    assert place == "bad"
    assert told.startswith("cannot be used: ")
    assert reason in told
    with pytest.raises(CatalogError) as caught:
        catalog["bad"]
    assert reason in str(caught.value)
    with queryard.connect(file, slots=1, history=False) as qy:
        assert qy.sql("SELECT sum(a) FROM good").fetchall() == [(3,)]
        for plan in ("native", "staged"):
            for name in ("bad", "Bad.t") if line.startswith("[") else ("bad",):
                with pytest.raises(QueryardError) as caught:
                    qy.sql(f"SELECT * FROM good, {name}", plan=plan).fetchall()
                assert reason in str(caught.value)
        # A column may bear the name.
        assert qy.sql("SELECT a AS bad FROM good LIMIT 1").fetchall() == [(1,)]


def test_a_bad_entry_comes_to_life_when_its_data_does(folder):
    (folder / "c.toml").write_text('[tables]\ngood = "good.csv"\nlate = "late/*.csv"\n')
    with queryard.connect(folder / "c.toml", slots=1, history=False) as qy:
        with pytest.raises(QueryardError, match="no file matches"):
            qy.sql("FROM late")
        (folder / "late").mkdir()
        (folder / "late" / "x.csv").write_text("b\n5\n")
        assert qy.sql("SELECT b FROM late").fetchall() == [(5,)]
        (folder / "late" / "x.csv").unlink()
        with pytest.raises(QueryardError, match="no file matches"):
            qy.sql("FROM late")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tables]\ngood = 'good.csv'\n[tables.x]\npath = 'good.csv'\ndelimeter = ','", "line 5: "),
        ("[tables.x]\npath = 'none.csv'\ndelimeter = ','", r"line 3: .*did you mean 'delimiter'"),
        ("[tables]\nx = { path = 'good.csv', header = 3 }", "line 2: .*header must be true"),
        ("[tables]\ngood = 'good.csv'\n\n[table]\nx = 1", "line 4: unknown key 'table'"),
        ("[tables]\ngood = 'good.csv'\nx = = 3", "line 3"),
    ],
)
def test_what_is_written_wrongly_is_an_error_of_the_file_with_its_line(folder, text, message):
    (folder / "c.toml").write_text(text)
    with pytest.raises(CatalogError, match=message):
        open_catalog(folder / "c.toml")


def test_an_entry_given_in_python_must_be_right_at_once(folder):
    with pytest.raises(CatalogError, match=r"table bad: .*none\.csv: no such file"):
        open_catalog(folder, {"bad": str(folder / "none.csv")})


def test_an_entry_given_in_python_whose_data_goes_away_holds_up_no_other(folder):
    catalog = open_catalog(tables={"a": str(folder / "good.csv"), "b": str(folder / "more.jsonl")})
    (folder / "good.csv").unlink()
    (folder / "more.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
    assert catalog.refresh() == ("a", "b")
    assert list(catalog) == ["b"]
    with pytest.raises(CatalogError, match=r"table a: .*good\.csv: no such file"):
        catalog["a"]


def test_two_databases_of_one_name_leave_the_rest_of_a_folder_usable(folder):
    for ending in ("duckdb", "ddb"):
        with duckdb.connect(str(folder / f"shop.{ending}")) as connection:
            connection.execute(f"CREATE TABLE in_{ending} AS SELECT 1 AS a")
    catalog = open_catalog(folder)
    assert "good" in catalog
    assert len(catalog.databases) == 1
    assert [place for place, _ in catalog.skipped] == [str(folder / "shop.duckdb")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_leaves_the_rest_usable(folder):
    (folder / "empty").chmod(0)
    try:
        catalog = open_catalog(folder)
    finally:
        (folder / "empty").chmod(0o755)
    assert "good" in catalog
    assert [place for place, _ in catalog.skipped] == [str(folder / "empty")]


class Failing(MemoryFileSystem):
    """Lists a file and cannot open it, as a server that went away."""

    protocol = "failing"

    def isfile(self, path):
        return True

    def info(self, path, **options):
        return {"name": path, "type": "file", "size": 10}

    def size(self, path):
        return None  # a server need not tell

    def ukey(self, path):
        return "1"

    def _open(self, path, *args, **options):
        raise OSError("connection reset")


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet"])
def test_a_failure_elsewhere_is_told_without_a_traceback(name):
    register_implementation("failing", Failing, clobber=True)
    with pytest.raises(CatalogError, match="connection reset") as caught:
        _ = open_catalog(tables={"t": f"failing://a/{name}"})["t"].columns
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize("plan", ["native", "staged"])
def test_a_query_on_a_table_elsewhere_says_what_to_do(plan):
    system = MemoryFileSystem()
    system.pipe("/bad_entries/x.csv", b"a\n1\n")
    tables = {"t": "memory://bad_entries/x.csv"}
    with (
        queryard.connect(tables=tables, slots=1, history=False, plan=plan) as qy,
        pytest.raises(QueryardError, match=r"does not lie on this machine.*copy it here"),
    ):
        qy.sql("FROM t")

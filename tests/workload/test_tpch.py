"""TPC-H: data that is made once, and 22 queries that run on it."""

from __future__ import annotations

import shutil
import stat
import sysconfig

import duckdb
import pytest

from queryard.workload import tpch
from queryard.workload.tpch import data

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tpch")
    seen = []
    files = tpch.generate(folder, 0.01, lambda share, line: seen.append((share, line)))
    shares = [share for share, _ in seen]
    assert shares == sorted(shares)
    assert seen[-1] == (1.0, "done")
    assert {file.stem for file in files} == set(tpch.TABLES)
    return folder


def test_all_queries_run(small):
    with duckdb.connect() as connection:
        for table in tpch.TABLES:
            connection.execute(f"CREATE VIEW {table} AS FROM '{small}/{table}.parquet'")
        assert connection.execute("SELECT count(*) FROM lineitem").fetchall() == [(60_175,)]
        answers = {n: connection.execute(sql).fetchall() for n, sql in tpch.queries().items()}
    assert list(answers) == list(range(1, 23))
    assert len(answers[1]) == 4
    # Brand, container and suppliers of queries 17 and 20 are rare at this scale.
    assert all(answers[number] for number in answers if number not in (17, 20))


def test_a_query_is_one_statement_without_a_semicolon():
    for sql in tpch.queries().values():
        assert ";" not in sql
        assert sql.startswith("-- ")


@pytest.mark.parametrize("number", [0, 23, -1])
def test_an_unknown_query(number):
    with pytest.raises(tpch.TpchError, match=r"unknown TPC-H query -?\d+ \(valid: 1 to 22\)"):
        tpch.query(number)


def test_data_of_the_scale_is_kept_and_what_is_missing_made(small, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(small, folder)
    (folder / "nation.parquet").unlink()
    before = (folder / "lineitem.parquet").stat().st_mtime_ns
    tpch.generate(folder, 0.01)
    assert (folder / "nation.parquet").exists()
    assert (folder / "lineitem.parquet").stat().st_mtime_ns == before
    left = {entry.name for entry in folder.iterdir()} - {f"{t}.parquet" for t in tpch.TABLES}
    assert left == {".queryard"}


def test_data_of_another_scale_or_origin_is_not_replaced(small, tmp_path):
    with pytest.raises(tpch.TpchError, match=r"holds TPC-H at scale 0.01, not 0.02"):
        tpch.generate(small, 0.02)
    (tmp_path / "orders.parquet").write_text("mine")
    with pytest.raises(tpch.TpchError, match=r"orders\.parquet of unknown scale"):
        tpch.generate(tmp_path, 0.01)
    assert (tmp_path / "orders.parquet").read_text() == "mine"


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), 1e9])
def test_scales_that_cannot_be(tmp_path, scale):
    with pytest.raises(tpch.TpchError, match="must be a number above 0"):
        tpch.generate(tmp_path, scale)


def test_folders_that_cannot_be(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(tpch.TpchError, match="is a file"):
        tpch.generate(tmp_path / "file", 0.01)
    with pytest.raises(tpch.TpchError, match="cannot be written"):
        tpch.generate(tmp_path / "file" / "below", 0.01)
    with pytest.raises(tpch.TpchError, match="GB are free"):
        tpch.generate(tmp_path / "huge", 100_000)


def test_without_the_generator(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(tpch.TpchError, match="pip install tpchgen-cli"):
        tpch.generate(tmp_path / "data", 0.01)


@pytest.mark.parametrize(
    ("says", "message"),
    [("No space left on device (os error 28)", "the disk is full"), ("odd", "code 3: odd")],
)
def test_a_generator_that_fails_leaves_nothing_behind(tmp_path, monkeypatch, says, message):
    program = tmp_path / "bin" / "tpchgen-cli"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit 3\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(data, "_program", lambda: str(program))
    with pytest.raises(tpch.TpchError, match=message):
        tpch.generate(tmp_path / "data", 0.01)
    assert [entry.name for entry in (tmp_path / "data").iterdir()] == [".queryard"]

"""`queryard tables`, `analyze`, `explain` and `tpch`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = ["sql", "shell", "tables", "analyze", "explain", "shuffle", "tpch"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches(call, command: str) -> None:
    ended = call(command, "--help")
    assert ended.code == 0
    assert f"queryard {command}" in ended.out
    assert "Examples" in ended.out


def test_help_needs_no_engine() -> None:
    code = (
        "import sys\n"
        "from queryard.cli import main\n"
        "try: main(['sql', '--help'])\n"
        "except SystemExit: pass\n"
        "slow = {'duckdb', 'pyarrow', 'sqlglot', 'numpy', 'prompt_toolkit', 'matplotlib'}\n"
        "sys.exit(' '.join(slow & set(sys.modules)) or 0)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


# --- tables --------------------------------------------------------------------------------------


def test_names_that_need_quotes_have_them(call, tmp_path: Path) -> None:
    (tmp_path / "my trips.csv").write_text("id,first name\n1,Ada\n")
    listed = call("tables", "--data", tmp_path)
    assert '"my trips"' in listed.out
    for name in ("my trips", '"my trips"'):
        shown = call("tables", name, "--data", tmp_path)
        assert shown.code == 0
        assert '"first name"' in shown.out
        assert "~1 row ·" in shown.out
    missing = call("sql", 'SELECT * FROM "my trip"', "--data", tmp_path)
    assert 'Did you mean "my trips"?' in missing.err


def test_listing_tables(call, folder: Path) -> None:
    ended = call("tables", "--data", folder)
    assert ended.code == 0
    assert "trips" in ended.out
    assert "1,000" in ended.out
    assert "csv" in ended.out


def test_tables_as_json(call, folder: Path) -> None:
    found = json.loads(call("tables", "--data", folder, "--json").out)
    by_name = {table["name"]: table for table in found["tables"]}
    trips = by_name["trips"]
    assert (trips["rows"], trips["rows_exact"], trips["columns"], trips["files"]) == (
        1000,
        True,
        3,
        1,
    )
    assert not by_name["cities"]["rows_exact"]


def test_one_table(call, folder: Path) -> None:
    ended = call("tables", "trips", "--data", folder)
    for text in ("price", "double", "249.75", "33.3 %"):
        assert text in ended.out
    found = json.loads(call("tables", "trips", "--data", folder, "--json").out)
    assert [column["name"] for column in found["columns"]] == ["id", "city", "price"]
    assert found["columns"][0]["max"] == 999


def test_a_broken_table_does_not_hide_the_others(call, folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "trips.parquet", tmp_path)
    (tmp_path / "broken.parquet").write_bytes(b"this is no Parquet file")
    ended = call("tables", "--data", tmp_path)
    assert ended.code == 0
    assert "1,000" in ended.out
    assert "broken" in ended.out


def test_an_empty_folder_and_an_unknown_table(call, tmp_path: Path, folder: Path) -> None:
    assert "No tables here" in call("tables", "--data", tmp_path).out
    ended = call("tables", "trip", "--data", folder)
    assert ended.code == 2
    assert "did you mean 'trips'" in ended.err


# --- analyze -------------------------------------------------------------------------------------


def test_analyzing(call, folder: Path, tmp_path: Path) -> None:
    for file in ("trips.parquet", "cities.csv"):
        shutil.copy(folder / file, tmp_path)
    ended = call("analyze", "--data", tmp_path)
    assert ended.code == 0, ended.err
    assert "Known now: 5 columns of 2 tables" in ended.out
    found = json.loads(call("tables", "cities", "--data", tmp_path, "--json").out)
    assert (found["statistics"], found["rows"]) == ("analysed", 3)
    assert "analyze" not in call("tables", "cities", "--data", tmp_path).out
    assert call("analyze", "trips", "--sample", "50%", "--data", tmp_path).code == 0


def test_analyzing_goes_on_behind_a_broken_table(call, tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"this is no Parquet file")
    (tmp_path / "plain.csv").write_text("id,n\n1,x\n2,y\n")
    ended = call("analyze", "--data", tmp_path)
    assert ended.code == 1
    assert "Known now: 2 columns of 1 table" in ended.out
    assert ended.err.startswith("error: ")
    assert ended.err.count("broken.parquet") == 1
    assert call("analyze", "plain", "--data", tmp_path).code == 0


@pytest.mark.parametrize("sample", ["0", "150%", "half"])
def test_samples_that_are_none(call, folder: Path, sample: str) -> None:
    ended = call("analyze", "--data", folder, "--sample", sample)
    assert ended.code == 2
    assert "--sample" in ended.err


# --- explain -------------------------------------------------------------------------------------

GROUPED = "SELECT city, count(*) AS n FROM trips WHERE price > 3 GROUP BY city ORDER BY n"


def test_explaining(call, folder: Path) -> None:
    ended = call("explain", GROUPED, "--data", folder)
    assert ended.code == 0, ended.err
    for text in ("native: one job", "groupby", "trips", "rows expected"):
        assert text in ended.out
    assert "slot time" not in ended.out


def test_explaining_with_figures_as_json(call, folder: Path) -> None:
    ended = call("explain", GROUPED, "--data", folder, "--analyze", "--json")
    found = json.loads(ended.out)
    assert found["jobs"][-1]["rows"] == 3


def test_explaining_the_staged_plan(call, folder: Path) -> None:
    ended = call("explain", GROUPED, "--data", folder, "--plan", "staged", "--analyze")
    assert ended.out.startswith("staged: ")
    window = "SELECT sum(id) OVER (ORDER BY id) FROM trips"
    ended = call("explain", window, "--data", folder, "--plan", "staged")
    assert "not staged: window" in ended.out


@pytest.mark.parametrize("ending", ["html", "png", "svg"])
def test_a_picture_of_the_plan(call, folder: Path, tmp_path: Path, ending: str) -> None:
    picture = tmp_path / f"plan.{ending}"
    sql = "SELECT * FROM trips JOIN cities ON city = name WHERE motto <> '$5 & <more>'"
    ended = call("explain", sql, "--data", folder, "--figure", picture)
    assert ended.code == 0, ended.err
    assert f"Figure: {picture}" in ended.out.replace("\n", "")
    assert picture.stat().st_size > 2000


def test_several_pictures_of_a_plan(call, folder: Path, tmp_path: Path) -> None:
    pictures = [tmp_path / "plan.svg", tmp_path / "plan.html"]
    sql = "SELECT count(*) FROM trips"
    options = [text for file in pictures for text in ("--figure", file)]
    ended = call("explain", sql, "--data", folder, "--plan", "staged", *options)
    assert ended.code == 0, ended.err
    for picture in pictures:
        assert picture.is_file()
        assert f"Figure: {picture}" in ended.out
    drawn = pictures[0].read_text()
    assert "1 map task<" in drawn.replace("+ 1 reduce task<", "1 map task<")
    assert "~1 row," in drawn


@pytest.mark.parametrize(
    ("args", "code", "problem"),
    [
        (["SELECT * FROM nowhere"], 1, "LINE 1: SELECT * FROM nowhere"),
        (["SELECT 1; SELECT 2"], 1, "one at a time"),
        (["SELECT 1", "--figure", "plan.doc"], 2, "unknown ending"),
        (["SELECT 1", "--figure", "/no/folder/plan.png"], 2, "no folder"),
        ([], 2, "there is none"),
    ],
)
def test_explaining_mistakes(call, folder: Path, args: list[str], code: int, problem: str) -> None:
    ended = call("explain", *args, "--data", folder)
    assert ended.code == code
    assert problem in ended.err


# --- tpch ----------------------------------------------------------------------------------------


def test_data_to_play_with(call, tmp_path: Path) -> None:
    place = tmp_path / "tpch"
    ended = call("tpch", place, "--scale", "0.01")
    assert ended.code == 0, ended.err
    assert "8 tables" in ended.out
    assert len(list((place / "queries").glob("q*.sql"))) == 22
    tried = call("sql", "-f", place / "queries" / "q06.sql", "--data", place)
    assert tried.out.startswith("revenue\n")
    again = call("tpch", place, "--scale", "1")
    assert again.code == 2
    assert "holds TPC-H at scale 0.01" in again.err


def test_a_place_in_the_place_of_a_table_is_told(call, tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    ended = call("tables", tmp_path)
    assert ended.code != 0
    assert f"queryard tables --data {tmp_path}" in " ".join(ended.err.split())

"""`queryard sql`: formats, files, pipes, errors and Ctrl-C."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import pty
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from waiting import wait_until

from .conftest import PATIENCE_S

SLOW = "SELECT count(*) FROM range(100000000000) a WHERE a.range % 7 = 9"


def test_into_a_pipe_it_is_csv(call, folder: Path) -> None:
    ended = call("sql", "SELECT * FROM trips ORDER BY id LIMIT 3", "--data", folder)
    assert ended.code == 0
    assert ended.out == "id,city,price\n0,Rome,0\n1,Oslo,0.25\n2,,0.5\n"
    assert ended.err == ""


def test_a_table_for_people(call, folder: Path) -> None:
    ended = call("sql", "FROM trips", "-d", folder, "--format", "table", "--rows", "2")
    assert "│     id │ city    │  price │" in ended.out
    assert "2 rows, and there are more" in ended.out
    assert "--rows shows more" in ended.out


def test_csv_can_be_read_again(call, folder: Path) -> None:
    sql = """SELECT 'a"b,c' AS quoted, e'two\nlines' AS lines, '' AS empty, NULL AS nothing,
             [1, 2] AS list, 1e-8::DECIMAL(18,10) AS small, TIMESTAMP '2024-01-02 03:04:05' AS t"""
    ended = call("sql", sql, "--format", "csv", "-d", folder)
    names, row = csv.reader(io.StringIO(ended.out, newline=""))
    assert names == ["quoted", "lines", "empty", "nothing", "list", "small", "t"]
    assert row == ['a"b,c', "two\nlines", "", "", "[1, 2]", "0.0000000100", "2024-01-02 03:04:05"]
    assert ',"",,' in ended.out  # an empty text and NULL are not the same


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_json(call, folder: Path, form: str) -> None:
    sql = """SELECT 1 AS n, 'a"\\ä' AS t, e'x\ny' AS control, 1.50::DECIMAL(9,2) AS d,
             'nan'::DOUBLE AS f, NULL AS nothing, {'a': [1, NULL]} AS nested, DATE '2024-01-02' AS w
             UNION ALL SELECT 2, 'b', 'c', 2, 0.5, NULL, NULL, NULL"""
    ended = call("sql", sql, "--format", form, "-d", folder)
    if form == "json":
        rows = json.loads(ended.out)
    else:
        rows = [json.loads(line) for line in ended.out.splitlines()]
    assert len(rows) == 2
    assert rows[0] == {
        "n": 1,
        "t": 'a"\\ä',
        "control": "x\ny",
        "d": 1.5,
        "f": None,
        "nothing": None,
        "nested": {"a": [1, None]},
        "w": "2024-01-02",
    }


def test_no_rows_are_still_json(call, folder: Path) -> None:
    assert json.loads(call("sql", "SELECT 1 WHERE false", "--format", "json").out) == []


@pytest.mark.parametrize("ending", ["csv", "tsv", "json", "jsonl", "parquet", "arrow", "txt"])
def test_the_ending_of_a_file_says_the_format(
    call, folder: Path, tmp_path: Path, ending: str
) -> None:
    file = tmp_path / f"rows.{ending}"
    sql = "SELECT id, INTERVAL 3 DAY AS i FROM trips ORDER BY id LIMIT 5"
    ended = call("sql", sql, "-d", folder, "-o", file)
    assert ended.code == 0, ended.err
    assert ended.out == ""
    if ending != "txt":
        assert "5 rows" in ended.err
    assert list(tmp_path.iterdir()) == [file]
    if ending == "parquet":
        assert pq.read_table(file)["id"].to_pylist() == [0, 1, 2, 3, 4]
    elif ending == "arrow":
        assert pyarrow.feather.read_table(file)["id"].to_pylist() == [0, 1, 2, 3, 4]
    else:
        assert "4" in file.read_text()


INTERVALS = "SELECT INTERVAL '1 month 2 days' AS i, NULL::INTERVAL AS n"


def test_intervals_in_files(call, tmp_path: Path) -> None:
    assert call("sql", INTERVALS, "--format", "csv").out == "i,n\n1 month 2 days,\n"
    assert json.loads(call("sql", INTERVALS, "--format", "jsonl").out)["i"] == "1 month 2 days"
    assert "1 month 2 days" in call("sql", INTERVALS, "--format", "table").out
    file = tmp_path / "i.parquet"
    assert "INTERVALs are text in Parquet (i, n)" in call("sql", INTERVALS, "-o", file).err
    back = call("sql", f"SELECT i::INTERVAL = INTERVAL '1 month 2 days' AS e, n FROM '{file}'")
    assert back.out == "e,n\ntrue,\n"
    call("sql", INTERVALS, "-o", tmp_path / "i.arrow")
    (row,) = pyarrow.feather.read_table(tmp_path / "i.arrow").to_pylist()
    assert row == {"i": pa.MonthDayNano([1, 2, 0]), "n": None}
    refused = call("sql", "SELECT {'a': [INTERVAL 1 DAY]} AS deep", "-o", tmp_path / "deep.parquet")
    assert refused.code == 1
    assert "column 'deep' holds INTERVALs" in refused.err
    assert not (tmp_path / "deep.parquet").exists()


@pytest.mark.parametrize("form", ["csv", "tsv", "json", "jsonl", "parquet", "arrow"])
def test_two_columns_of_one_name(call, tmp_path: Path, form: str) -> None:
    file = tmp_path / f"rows.{form}"
    ended = call("sql", "SELECT 1 AS a, 2 AS b, 3 AS a", "-o", file)
    if form in ("csv", "tsv"):
        assert ended.code == 0
        assert file.read_text().replace("\t", ",") == "a,b,a\n1,2,3\n"
        return
    assert ended.code == 1
    assert "2 columns are called 'a'" in ended.err
    assert "AS a_1" in ended.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["csv.gz", "csv.zst", "tsv", "tsv.gz", "json.gz", "jsonl.zst"])
def test_what_was_written_is_a_table_again(call, tmp_path: Path, ending: str) -> None:
    sql = """SELECT 1 AS n, e'a\tb' AS tab, 'c,d' AS comma, e'x"y\nz' AS quote, ' s ' AS blanks
             UNION ALL SELECT 2, 't', 'c', 'q', 'b'"""
    file = tmp_path / f"rows.{ending}"
    ended = call("sql", sql, "-o", file)
    assert ended.code == 0, ended.err
    assert "2 rows" in ended.err
    back = call("sql", "FROM rows ORDER BY n", "-d", file, "--format", "json")
    assert [list(row.values()) for row in json.loads(back.out)] == [
        [1, "a\tb", "c,d", 'x"y\nz', " s "],
        [2, "t", "c", "q", "b"],
    ]


@pytest.mark.parametrize("more", [[], ["--format", "parquet"]])
def test_parquet_is_not_compressed_twice(call, tmp_path: Path, more: list[str]) -> None:
    ended = call("sql", "SELECT 1", "-o", tmp_path / "x.parquet.gz", *more)
    assert ended.code != 0
    assert ".gz" in ended.err
    assert list(tmp_path.iterdir()) == []


def test_advice_is_about_the_catalog(call, tmp_path: Path) -> None:
    (tmp_path / "mixed.csv").write_text("v\n" + "7\n" * 30_000 + "oops\n")
    (tmp_path / "bad.duckdb").write_bytes(b"no database")
    ended = call("sql", "SELECT max(v) FROM mixed", "-d", tmp_path)
    assert ended.code == 1
    assert 'types = { v = "VARCHAR" }' in ended.err
    assert "sample_size" not in ended.err
    for command in ("sql", "explain"):
        ended = call(command, "FROM bad.t", "-d", tmp_path)
        assert ended.code == 1
        assert f"passed over: {tmp_path}/bad.duckdb, which is not a DuckDB database" in ended.err


def test_many_rows_are_written_in_groups(call, tmp_path: Path) -> None:
    file = tmp_path / "many.parquet"
    call("sql", "SELECT range AS n FROM range(500000)", "-o", file)
    found = pq.ParquetFile(file).metadata
    assert found.num_rows == 500_000
    assert 2 <= found.num_row_groups <= 8


def test_a_failed_query_leaves_no_file(call, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    sql = "SELECT CAST(if(range = 900000, 'x', '1') AS INTEGER) FROM range(1000000)"
    ended = call("sql", sql, "-o", file)
    assert ended.code == 1
    assert "Conversion Error" in ended.err
    assert list(tmp_path.iterdir()) == []


def test_rows_limits_every_format(call, folder: Path) -> None:
    ended = call("sql", "FROM trips", "-d", folder, "--rows", "7", "--format", "jsonl")
    assert len(ended.out.splitlines()) == 7


def test_statements_from_a_file_and_a_table_by_name(call, folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text("CREATE TEMP TABLE t AS FROM towns;\n-- then\nSELECT count(*) AS n FROM t;\n")
    ended = call("sql", "-f", script, "--table", f"towns={folder}/cities.csv")
    assert ended.out == "n\n3\n"


def test_of_several_statements_tables_show_all(call) -> None:
    script = "SELECT 11 AS a; SELECT 22 AS b"
    assert call("sql", script).out == "b\n22\n"
    shown = call("sql", script, "--format", "table").out
    assert "11" in shown
    assert "22" in shown


def test_writing_must_be_allowed(call, tmp_path: Path) -> None:
    sql = f"COPY (SELECT 1 AS a) TO '{tmp_path}/a.csv'"
    refused = call("sql", sql)
    assert refused.code == 1
    assert "--write" in refused.err
    assert call("sql", sql, "--write").code == 0
    assert (tmp_path / "a.csv").read_text() == "a\n1\n"


def test_the_staged_plan_gives_the_same(call, folder: Path) -> None:
    sql = "SELECT city, sum(price) AS s FROM trips GROUP BY city ORDER BY city"
    native = call("sql", sql, "-d", folder, "--slots", "2", "--memory", "1GB")
    staged = call("sql", sql, "-d", folder, "--plan", "staged")
    assert native.code == staged.code == 0
    assert native.out == staged.out


@pytest.mark.parametrize(
    ("args", "code", "problem"),
    [
        (["SELECT * FROM nowhere"], 1, "nowhere"),
        (["SELEC 1"], 1, "LINE 1: SELEC 1"),
        ([""], 1, "no statement"),
        ([], 2, "there is none"),
        (["SELECT 1", "-f", "x.sql"], 2, "both were given"),
        (["-f", "/no/file.sql"], 2, "No such file"),
        (["SELECT 1", "--data", "/no/folder"], 2, "no such file or folder"),
        (["SELECT 1", "--format", "xml"], 2, "unknown format 'xml'"),
        (["SELECT 1", "-o", "rows.xyz"], 2, "does not tell the format"),
        (["SELECT 1", "-o", "/no/folder/rows.csv"], 2, "no folder"),
        (["SELECT 1", "--plan", "stage"], 2, "native, staged"),
        (["SELECT 1", "--memory", "much"], 2, "memory"),
        (["SELECT 1", "--time-limit", "soon"], 2, "--time-limit"),
        (["SELECT 1", "--table", "x"], 2, "NAME=PATH"),
        (["SELECT 1", "--slots", "0"], 2, "slots"),
        ([SLOW, "--time-limit", "200ms"], 1, "time limit of 200ms"),
    ],
)
def test_mistakes(
    call, tmp_path: Path, monkeypatch, args: list[str], code: int, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = call("sql", *args)
    assert ended.code == code
    assert problem in ended.err
    assert "Traceback" not in ended.err
    assert ended.out == ""


def test_the_current_folder_is_the_data(call, folder: Path, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    assert call("sql", "SELECT count(*) AS n FROM trips").out == "n\n1000\n"
    monkeypatch.setenv("QUERYARD_DATA", str(folder / "cities.csv"))
    assert call("sql", "SELECT count(*) AS n FROM cities").out == "n\n3\n"


# --- as a process --------------------------------------------------------------------------------


def test_statements_from_stdin_and_binary_to_stdout(start) -> None:
    process = start("sql", "-", "--format", "arrow")
    out, err = process.communicate(b"SELECT 42 AS answer;", timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, b"")
    assert pa.ipc.open_stream(out).read_all().to_pylist() == [{"answer": 42}]


def test_a_reader_that_leaves_is_no_error(start) -> None:
    process = start("sql", "SELECT range AS n FROM range(1000000000000)", "--format", "csv")
    assert process.stdout.readline() == b"n\n"
    process.stdout.close()
    process.stdin.close()
    process.wait(timeout=PATIENCE_S)
    assert process.stderr.read() == b""
    process.stdout = process.stdin = None


def test_ctrl_c_cancels(start, tmp_path: Path) -> None:
    process = start("sql", "FROM range(1000000000000)", "-o", tmp_path / "never.csv")
    wait_until(lambda: any(tmp_path.iterdir()))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert err == b"cancelled\n"
    assert list(tmp_path.iterdir()) == []


def test_answers_that_refine_are_shown_not_saved(call, folder: Path) -> None:
    ask = ("sql", "SELECT count(*) AS n FROM trips", "-d", folder, "--online")
    assert "exact" in call(*ask, "--time-limit", "60s").out
    for option in (("--format", "csv"), ("-o", "rows.csv")):
        ended = call(*ask, *option)
        assert ended.code != 0
        assert f"leave out {option[0]}" in ended.err


def test_ctrl_c_keeps_the_last_refining_answer(start, tmp_path: Path) -> None:
    table = pa.table({"v": [i % 10 for i in range(200_000)]})
    pq.write_table(table, tmp_path / "many.parquet", row_group_size=2_000)
    # Its exact answer is far away: each row is compared with all of a small table.
    pq.write_table(pa.table({"w": list(range(2_000))}), tmp_path / "few.parquet")
    sql = "SELECT sum(v) AS total FROM many JOIN few ON (v + 1) * w % 7 = 3"
    leader, follower = pty.openpty()
    process = start("sql", sql, "-d", tmp_path, "--online", stdout=follower)
    os.close(follower)
    shown = b""
    with contextlib.suppress(OSError):  # the end of the terminal
        while piece := os.read(leader, 4096):
            shown += piece
            if b"Ctrl-C keeps this answer" in shown and process.poll() is None:
                process.send_signal(signal.SIGINT)
                break
        while piece := os.read(leader, 4096):
            shown += piece
    os.close(leader)
    assert process.wait(timeout=PATIENCE_S) == 0
    last = shown.rpartition(b"total")[2]
    assert b"stopped" in last
    assert b"% of random blocks" in last
    assert b"Traceback" not in process.stderr.read()


def test_a_refining_answer_says_how_it_ended(call, tmp_path: Path) -> None:
    table = pa.table({"v": [i % 10 for i in range(200_000)]})
    pq.write_table(table, tmp_path / "many.parquet", row_group_size=2_000)
    ask = ("sql", "SELECT sum(v) AS s FROM many", "-d", tmp_path, "--online")
    assert "near enough" in call(*ask, "--stop-at", "0.9").out
    assert "near enough" not in call(*ask, "--within", "1 ms").out

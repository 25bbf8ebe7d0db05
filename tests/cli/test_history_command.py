"""`queryard history`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from queryard.history import AskedRow, CostRow, EndedRow, ForecastRow, History, SessionRow


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the history of five queries of two tenants."""
    history = History.open(tmp_path / ".queryard" / "history.sqlite")
    session = "0f3a9c2b7d11"
    began_at = time.time() - 60.0
    history.begin(
        SessionRow(session, began_at, "0.1", 1, 2, 10**9, {}, {"name": "marshal", "order": "fifo"})
    )
    for number in range(1, 6):
        query = f"{session}-{number}"
        history.asked(
            AskedRow(
                query=query,
                time_s=float(number),
                sql=f"SELECT sum(x)\n  FROM t{number}\n  WHERE y > 3",
                template=f"select sum(x) from t{number} where y > ?",
                tenant="sales" if number < 4 else "ops/night",
                priority=0.0,
                deadline_s=None,
                plan="native",
                memory_bytes=10**8,
                predicted_work_s=2.0,
                predicted_memory_bytes=None,
                predicted_by="plan",
                twin_of=f"{session}-1" if number == 2 else "",
            )
        )
        if number == 5:
            continue
        history.forecast(ForecastRow(query, number, number + 0.5, number + 3.0))
        history.ended(
            EndedRow(
                query=query,
                time_s=number + 2.0,
                started_s=number + 0.5,
                outcome="failed" if number == 4 else "finished",
                error="out of luck" if number == 4 else "",
                work_s=0.0 if number == 2 else 1.0 * number,
                held_s=2.0,
                peak_memory_bytes=None,
                rows=1,
                burst_s=0.0,
            )
        )
    history.cost(CostRow(10.0, 200, 0.05, 0.1, 0.05, 0.03, 4.0, 150_000_000, 0, 0, 2, 0.4))
    history.close()
    assert history.error is None
    return tmp_path


def test_recent_queries(call, place: Path) -> None:
    ended = call("history", "--data", place)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("0f3a-")] == [
        f"0f3a-{number}" for number in range(1, 6)
    ]
    first = next(line for line in lines if line.startswith("0f3a-1"))
    for text in ("sales", "0.50", "1.50", "1.00", "2.00", "-50 %", "ok"):
        assert text in first
    assert "shared" in next(line for line in lines if line.startswith("0f3a-2"))
    assert "failed" in next(line for line in lines if line.startswith("0f3a-4"))
    assert "open" in next(line for line in lines if line.startswith("0f3a-5"))
    assert all(len(line) <= 80 for line in lines)


def test_columns_that_say_nothing_are_left_out(call, place: Path) -> None:
    out = call("history", "--data", place, "--tenant", "sales").out
    assert "tenant" not in out
    assert "ended" not in out
    assert "SELECT sum(x) FROM t3" in out


def test_queries_are_chosen(call, place: Path) -> None:
    def ids(*options: object) -> list[str]:
        found = json.loads(call("history", "--data", place, "--json", *options).out)
        return [row["query"].rpartition("-")[2] for row in found]

    assert ids() == ["1", "2", "3", "4", "5"]
    assert ids("--last", 2) == ["4", "5"]
    assert ids("--tenant", "ops") == ["4", "5"]
    assert ids("--failed") == ["4", "5"]
    assert ids("--session", "0f3a") == ["1", "2", "3", "4", "5"]


def test_as_json_all_is_told(call, place: Path) -> None:
    first = json.loads(call("history", "--data", place, "--json").out)[0]
    assert first["sql"].startswith("SELECT sum(x)\n")
    assert first["predicted_by"] == "plan"
    assert first["first_forecast"]["end_s"] == 4.0
    assert first["outcome"] == "finished"


def test_summed_up_by_tenant_and_template(call, place: Path) -> None:
    out = call("history", "--data", place, "--by", "tenant").out
    assert "ops/night" in out
    found = json.loads(call("history", "--data", place, "--by", "tenant", "--json").out)
    by_name = {row["name"]: row for row in found}
    sales = by_name["sales"]
    assert (sales["queries"], sales["unanswered"], sales["mean_response_s"]) == (3, 0, 2.0)
    assert (sales["work_s"], sales["work_share"]) == (4.0, 0.5)
    assert sales["off_by"] == pytest.approx(1.75)  # of 2 against 1 and 2 against 3
    assert by_name["ops/night"]["unanswered"] == 2
    assert "from t3 where" in call("history", "--data", place, "--by", "template").out


def test_sessions(call, place: Path) -> None:
    out = call("history", "--data", place, "--sessions").out
    assert "0f3a9c2b7d11" in out
    assert "marshal" in out
    (session,) = json.loads(call("history", "--data", place, "--sessions", "--json").out)
    assert (session["queries"], session["slots"]) == (5, 2)


def test_what_queryard_itself_takes(call, place: Path) -> None:
    out = call("history", "--data", place, "--costs").out
    line = next(line for line in out.splitlines() if line.startswith("0f3a"))
    for text in ("200", "0.25", "1.00", "0.50", "0.30", "1.80", "150.0 MB", "0.40"):
        assert text in line
    found = json.loads(call("history", "--data", place, "--costs", "--json").out)
    assert found["0f3a9c2b7d11"][0]["decisions"] == 200


def test_export(call, place: Path, tmp_path: Path) -> None:
    ended = call("history", "--data", place, "--export", tmp_path / "out")
    assert ended.code == 0
    assert "15 tables" in ended.out
    assert pq.read_table(tmp_path / "out" / "asked.parquet").num_rows == 5


def test_a_history_file_can_be_named_itself(call, place: Path) -> None:
    file = place / ".queryard" / "history.sqlite"
    assert "0f3a-5" in call("history", "--data", file).out


# --- mistakes ------------------------------------------------------------------------------------


def test_no_history_says_where_it_was_looked_for_and_how_one_comes_to_be(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for command in ("history", "replay"):
        ended = call(command, "--data", tmp_path)
        assert ended.code == 2
        assert str(tmp_path / ".queryard" / "history.sqlite") in ended.err
        assert "queryard sql" in ended.err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--by", "tenants"], "did you mean 'tenant'?"),
        (["--by", "tenant", "--costs"], "--by and --costs show different things"),
        (["--session", "zzz"], "there is no session 'zzz'; there are 0f3a9c2b7d11"),
    ],
)
def test_wrong_options(call, place: Path, options: list[str], told: str) -> None:
    ended = call("history", "--data", place, *options)
    assert ended.code == 2
    assert told in " ".join(ended.err.split())


def test_a_place_that_is_not_there(call, tmp_path: Path) -> None:
    ended = call("history", "--data", tmp_path / "nowhere")
    assert ended.code == 2
    assert "no such file or folder" in ended.err


def test_nothing_of_the_kind(call, place: Path) -> None:
    assert "nothing of the kind" in call("history", "--data", place, "--tenant", "none").out
    out = call("history", "--data", place, "--failed", "--tenant", "sales").out
    assert "nothing of the kind" in out


@pytest.mark.parametrize("command", ["history", "replay"])
def test_help_teaches_and_needs_neither_engine_nor_store(command: str) -> None:
    code = (
        "import sys\n"
        "from queryard.cli import main\n"
        f"try: main(['{command}', '--help'])\n"
        "except SystemExit: pass\n"
        "slow = {'duckdb', 'pyarrow', 'sqlglot', 'sqlite3'}\n"
        "sys.exit(' '.join(slow & set(sys.modules)) or 0)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Examples" in ended.stdout
    assert f"queryard {command}" in ended.stdout


def test_showing_a_history_needs_no_engine(place: Path) -> None:
    code = (
        "import sys\n"
        "from queryard.cli import main\n"
        f"try: main(['history', '--data', {str(place)!r}])\n"
        "except SystemExit: pass\n"
        "sys.exit(' '.join({'duckdb', 'pyarrow'} & set(sys.modules)) or 0)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")

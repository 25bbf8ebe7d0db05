"""`queryard load`: what it prints, writes and refuses."""

from __future__ import annotations

import io
import json
import re
import signal
from pathlib import Path

import pytest

from .conftest import PATIENCE_S

SPEC = """
name = "mine"
queries = 6
slots = 2
memory = "400 MB"
[data]
place = "."
sql = "sql"
[arrivals]
rate = 20
[[tenants]]
name = "web"
mix = "count"
[[tenants]]
name = "batch"
tightness = 1000
mix = "sums"
"""


@pytest.fixture
def spec(folder: Path, tmp_path: Path) -> Path:
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "count.sql").write_text("SELECT count(*) FROM trips")
    (tmp_path / "sql" / "sums.sql").write_text("SELECT city, sum(price) FROM trips GROUP BY city")
    file = tmp_path / "mine.toml"
    file.write_text(SPEC.replace('place = "."', f'place = "{folder}"'))
    return file


def test_help_teaches(call) -> None:
    ended = call("load", "--help")
    assert ended.code == 0
    assert "queryard load" in ended.out
    assert "Examples" in ended.out


def test_one_policy_looked_at_closely(call, spec: Path, tmp_path: Path) -> None:
    ended = call("load", spec, "--data-dir", tmp_path / "data", "--quiet")
    assert ended.code == 0, ended.err
    assert "queries finished" in ended.out
    assert "6 of 6" in ended.out
    assert "Queryard itself" in ended.out
    assert "predicted work off by" in ended.out
    assert "clairvoyant SRPT" in ended.out
    assert "marshal answers in" in ended.out
    assert ended.err == ""
    assert (tmp_path / "data" / "load-history.sqlite").exists()


def test_policies_side_by_side_on_the_same_requests(call, spec: Path, tmp_path: Path) -> None:
    figure, saved = tmp_path / "out.html", tmp_path / "asked.csv"
    ended = call(
        "load", spec, "--data-dir", tmp_path / "data", "--compare", "duckdb,fifo",
        "--figure", figure, "--save", saved,
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert ended.out.index("duckdb") < ended.out.index("fifo")
    assert "deadlines" in ended.out
    assert f"Figure: {figure}" in ended.out
    assert "fifo" in figure.read_text()
    assert len(saved.read_text().splitlines()) == 7
    # Without a terminal there are lines instead of a table.
    assert "6 of 6 submitted" in ended.err
    assert not (tmp_path / "data" / "load-history.sqlite").exists()


def test_the_table_while_it_runs() -> None:
    from rich.console import Console

    from queryard.cli.load_live import drawn, headline
    from queryard.load import Board, Glance, Outcome, Request

    def outcome(number: int, state: str, **known: float) -> Outcome:
        request = Request(f"r{number}", 0.0, "web", "small.q06", "SELECT 1")
        return Outcome(request, state=state, **known)  # type: ignore[arg-type]

    outcomes = [
        outcome(1, "finished", ended_s=2.0, due_s=1.0),
        outcome(2, "under way"),
        outcome(3, "under way", due_s=90.0),
        outcome(4, "to come"),
        *(outcome(number, "under way") for number in range(5, 20)),
    ]
    board = Board("marshal", 2, outcomes)
    board.glances = {"r3": Glance(True, 2, 0.5, 30.0), "r2": Glance(False)}
    assert headline(board) == (
        "marshal 0 s, 18 of 19 submitted, 1 running, 16 waiting, 1 done, 1 late"
    )
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(drawn(board))
    lines = console.export_text().splitlines()
    first = lines[2].split()
    assert first[:4] == ["r3", "web", "small.q06", "2"]
    assert first[-2:] == ["━━━━━╌╌╌╌╌", "50%"]
    assert any("7 more" in line for line in lines)
    assert lines[-1].split() == ["web", "18", "1", "16", "1", "1", "2.00", "s"]


def test_seeds_medians_and_json(call, spec: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.json"
    ended = call(
        "load", spec, "--data-dir", tmp_path / "data", "--compare", "marshal,duckdb",
        "--repeat", 2, "--seed", 5, "--alone", alone, "--json", "--quiet",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert [row["name"] for row in found["policies"]] == ["marshal", "duckdb"]
    assert [row["name"] for row in found["references"]] == ["ideal PS", "clairvoyant SRPT"]
    assert [run["seed"] for run in found["seeds"]] == [5, 6]
    assert {run["requests"] for run in found["seeds"]} == {6}
    means = [run["runs"][0]["summary"]["response_s"]["mean"] for run in found["seeds"]]
    assert found["policies"][0]["mean_response_s"] == pytest.approx(sum(means) / 2)
    assert found["load"]["slots"] == 2
    assert set(json.loads(alone.read_text())["alone"]) == {"count", "sums"}


def test_a_query_that_always_fails_is_told(call, spec: Path, tmp_path: Path) -> None:
    (tmp_path / "sql" / "sums.sql").write_text("SELECT nothing FROM trips")
    ended = call("load", spec, "--data-dir", tmp_path / "data", "-q", "--compare", "marshal,duckdb")
    assert ended.code == 0, ended.err
    assert "Queries without a result: marshal 3, duckdb 3." in ended.out
    assert "sums fails even alone" in ended.out


def test_ctrl_c_reports_what_ended(start, spec: Path, tmp_path: Path) -> None:
    text = spec.read_text().replace("queries = 6", "queries = 2000")
    spec.write_text(text)
    process = start("load", spec, "--data-dir", tmp_path / "data", "--compare", "marshal,duckdb")
    for line in process.stderr:
        if re.search(rb"[1-9]\d* done", line):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, err
    assert b"Interrupted" in out
    assert b"marshal answers in" in out
    counted = int(re.search(rb"([\d,]+) queries, ", out)[1].replace(b",", b""))
    assert 0 < counted < 2000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--compare", "fiifo"], "unknown policy 'fiifo'; did you mean 'fifo'"),
        (["--history", "old"], "--history old: choose one of fresh, keep"),
        (["--figure", "out.gif"], "unknown ending '.gif'"),
    ],
)
def test_mistakes_are_told_before_anything_runs(
    call, spec: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    ended = call("load", spec, "--data-dir", tmp_path / "data", *options)
    assert ended.code == 2
    assert message in ended.err
    assert not (tmp_path / "data").exists()


def test_a_mistake_in_the_spec(call, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text("querys = 3\n[data]\ntpch = { s = 1 }\n")
    ended = call("load", file)
    assert ended.code == 2
    assert "bad.toml, line 1, querys: unknown field 'querys'; did you mean 'queries'?" in ended.err

"""Statements and errors that others have written cannot reach a terminal as escape sequences."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from waiting import wait_until

import queryard
from cli.test_top_command import a_present, drawn
from queryard.cli.policy_told import show_policies
from queryard.cli.why import show_queries

# It sets the title of a window; a bell and a backspace beside.
EVIL = "\x1b]0;owned\x07\x08"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("QUERYARD_SERVER", "QUERYARD_TOKEN", "QUERYARD_DATA", "QUERYARD_SERVER_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "160")
    pq.write_table(pa.table({"n": list(range(1000))}), tmp_path / "numbers.parquet")
    return tmp_path


def is_plain(text: str) -> bool:
    return all(sign.isprintable() or sign == "\n" for sign in text)


def test_of_a_server_at_one_moment():
    told = a_present()
    for query in (*told["running"], *told["waiting"]):
        query.update(sql=f"SELECT 1 -- {EVIL}", tenant=f"sales{EVIL}", why=f"behind {EVIL}")
    told["tenants"][0]["name"] += EVIL
    told["policy"]["name"] += EVIL
    text = drawn(told)
    assert is_plain(text)
    assert text.count("]0;owned") >= 5


def test_of_queries_and_policies(capfd):
    row = {"id": "a-1", "tenant": EVIL, "status": "running", "sql": EVIL, "slots": 1}
    times = {"progress": 0.5, "now_s": 2.0, "submitted_s": 1.0, "forecast_end_s": None}
    show_queries([row | times], as_json=False)
    policy = {"name": "fifo", "since_at": 0.0, "by": EVIL, "reason": f"{EVIL} floods the queue"}
    show_policies([("yard", {"policy": policy})], as_json=False)
    out = capfd.readouterr().out
    assert is_plain(out)
    assert "floods the queue" in out


def test_of_a_session_and_its_history(call, place: Path):
    slow = f"SELECT sum(hash(n, r)::HUGEINT) FROM numbers, range(100000000) t(r) -- {EVIL}"
    with queryard.connect(place, slots=1, memory="1 GB") as session:
        failed = session.submit(f"SELECT error('{EVIL}') FROM numbers")
        failed.wait()
        query = session.submit(slow)
        wait_until(lambda: query.status == "running")
        for command in (("top", "--once"), ("why",), ("why", query.id), ("cancel", query.id)):
            ended = call(*command, "--data", place)
            assert ended.code == 0, ended.err
            assert is_plain(ended.out + ended.err), command
        query.wait()
    for command in (("history",), ("history", "--by", "template"), ("why", failed.id)):
        ended = call(*command, "--data", place)
        assert ended.code == 0, ended.err
        assert is_plain(ended.out + ended.err), command
        assert "]0;owned" in ended.out or "--by" in command

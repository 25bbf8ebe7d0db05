"""`queryard replay`."""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path

import pytest
from replay.recorded_runs import keep

import queryard
from queryard.core.model import Divisible, Job, Node, Query
from queryard.policies import resolve_profile
from queryard.sim import simulate
from queryard.workload.model import Arrival, JobTruth, Workload

NODES = (Node("local", 2, 1e9),)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the history of a simulated session under `fifo`."""
    draw = random.Random(5)
    arrivals = []
    for number in range(30):
        work_s = 12.0 if number % 10 == 3 else draw.uniform(0.2, 1.0)
        query = Query(
            f"abc123-{number}", (Job("query", divisible=Divisible(2)),), submit_s=1.2 * number
        )
        arrivals.append(Arrival(query, {"query": JobTruth(work_s=work_s)}))
    load = Workload("mix", tuple(arrivals), nodes=NODES)
    file = tmp_path / ".queryard" / "history.sqlite"
    keep(simulate(load, NODES, resolve_profile("fifo")).journal, file)
    return tmp_path


def test_the_decisions_are_made_again_and_the_simulation_agrees(call, place: Path) -> None:
    ended = call("replay", "--data", place)
    assert ended.code == 0, ended.err
    assert "A fresh kernel makes the same 59 decisions again" in ended.out
    for name in ("as recorded", "fifo (simulated)", "ideal PS", "clairvoyant SRPT"):
        assert name in ended.out
    found = json.loads(call("replay", "--data", place, "--json").out)
    assert found["agrees"]
    assert abs(found["simulation_error"]) < 0.03
    assert found["queries"] == 30


def test_other_policies_stand_beside_it(call, place: Path) -> None:
    ended = call("replay", "abc", "--data", place, "--policy", "srtf,query-fair", "--json")
    found = json.loads(ended.out)
    mean_s = {row["name"]: row["mean_response_s"] for row in found["runs"]}
    assert list(mean_s) == ["as recorded", "fifo (simulated)", "srtf", "query-fair"]
    assert mean_s["srtf"] < 0.7 * mean_s["as recorded"]
    least_s = found["references"][1]["mean_response_s"]
    assert all(value >= least_s - 0.01 for value in mean_s.values())


def test_a_decision_that_differs_is_shown(call, place: Path) -> None:
    file = place / ".queryard" / "history.sqlite"
    with sqlite3.connect(file) as connection:
        where = "number = (SELECT min(number) FROM steps WHERE commands LIKE '%Grant%')"
        connection.execute(f"UPDATE steps SET commands = '[]' WHERE {where}")
    ended = call("replay", "--data", place)
    assert ended.code == 1
    assert "decides otherwise at step" in ended.out
    assert "recorded: nothing" in ended.out
    assert "Grant(" in ended.out
    found = json.loads(call("replay", "--data", place, "--json").out)
    assert not found["agrees"]
    assert "Grant(" in found["first_difference"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--policy", "fivo"], "did you mean 'fifo'?"),
        (["zzz"], "there is no session 'zzz'; there are abc123"),
    ],
)
def test_wrong_options(call, place: Path, options: list[str], told: str) -> None:
    ended = call("replay", "--data", place, *options)
    assert ended.code == 2
    assert told in ended.err


def test_compare_takes_a_window_of_the_history(call, tmp_path):
    (tmp_path / "t.csv").write_text("n\n1\n2\n")
    with queryard.connect(tmp_path, slots=2, memory="300 MB") as qy:
        for number in range(4):
            qy.sql(f"SELECT sum(n) + {number} FROM t").fetchall()
    told = call(
        "compare", "--history", tmp_path, "--since", "1 h", "--policy", "fifo,srtf", "--json"
    )
    assert told.code == 0, told
    found = json.loads(told.out)
    assert [row["policy"] for row in found["policies"]] == ["fifo", "srtf"]
    assert found["references"][0]["name"] == "as recorded"
    assert found["policies"][0]["scores"]["queries"] == 4
    for wrong, said in (
        (("--history", tmp_path, "--since", "soon"), "how long ago"),
        (("--history", tmp_path, "--demo"), "--history is one by itself"),
        (("--demo", "--since", "1 h"), "name it with --history"),
        (("--history", tmp_path, "--until", "2 h"), "no query has run"),
    ):
        told = call("compare", *wrong)
        assert told.code != 0
        assert said in told.err

"""Benches and the demonstration on Ray, in the parts that need no cluster."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bench.ray.demo_figure import Mark, save_nodes_figure
from bench.ray.left import Left
from bench.ray.nodes import Nodes
from bench.ray.peer_programs.asking import check, is_same
from bench.ray.processes import Process, descendants, end
from queryard.core.model import Divisible, Job, Node, Query, TaskId
from queryard.metrics import LaunchRow, NodeRow, QueryRow, RunRows
from queryard.metrics.rows import LeaseRow, Reading

JOBS = (Job("scan", divisible=Divisible(2)),)
IDLE = Left(0, 0, 0, 3, 4, 0, 0, Counter({"queryard-news": 3}), 100)


def test_a_figure_shows_a_run_in_which_a_node_is_lost(tmp_path):
    pytest.importorskip("matplotlib")
    run = RunRows(
        queries={
            name: QueryRow(Query(name, JOBS, tenant=tenant), 0.0, 0.0, 9.0, "finished")
            for name, tenant in (("a", "web"), ("b", "lab"))
        },
        launches=[
            LaunchRow(1, "n1", (TaskId("a/scan", "map", 0),), "", 0.0, Reading(), 4.0, "lost"),
            LaunchRow(2, "n2", (TaskId("a/scan", "map", 0),), "", 4.0, Reading(), 9.0, "finished"),
        ],
        leases=[LeaseRow("b/native", "n2", 1, 0.0, 4.0, "finished")],
        nodes=[NodeRow(Node("n1", 1), 0.0, 4.0), NodeRow(Node("n2", 1), 0.0)],
        last_step_s=9.0,
    )
    file = tmp_path / "nodes.png"
    save_nodes_figure(file, run, [Mark("a node is killed", 4.0)])
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, []),
        ({"objects": 2}, ["objects at nodes: 2, expected at most 0"]),
        ({"actors": 4}, ["actors: 4, expected at most 3"]),
        ({"files": 1}, ["temporary files: 1, expected at most 0"]),
        ({"threads": Counter({"queryard-news": 5})}, ["threads: {'queryard-news': 2}"]),
        ({"open_files": 120}, []),
    ],
)
def test_what_is_left_too_much_is_told(changed, told):
    now = Left(**{name: getattr(IDLE, name) for name in IDLE.__slots__} | changed)
    assert now.more_than(IDLE, nodes=3) == told


def test_answers_of_peers_are_compared_by_their_rows_and_numbers():
    found = check([("x", 1, 2.5, True), ("y", Decimal("0.5"), None, False)])
    assert found == [2, 4.0]
    assert is_same(found, [2, 4.0 + 1e-9])
    assert not is_same(found, [3, 4.0])
    assert not is_same(found, [2, 4.1])


def test_processes_are_ended_by_their_ids_and_no_other_of_the_same_id():
    before = descendants(0)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        (started,) = {each for each in descendants(0) - before if each.pid == child.pid}
        Process(started.pid, started.began + 1).kill()  # an earlier one of this id
        assert started.lives
        end([started], 0.0)
        child.wait(10)
    assert not started.lives


def test_a_node_that_takes_too_long_to_start_is_ended_and_started_again(tmp_path: Path):
    started: list[subprocess.Popen[bytes]] = []

    class Slow:
        address = "127.0.0.1:1"

        def add_node(self, **given: Any) -> str:
            started.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]))
            if len(started) == 1:
                raise Exception("The current node timed out during startup.")
            return "a node"

    made = Nodes(Slow(), tmp_path, 1 << 20)
    try:
        assert made.add(1) == "a node"
        assert made.alive == ["a node"]
        assert started[0].wait(10) < 0
        assert started[1].poll() is None
        assert made.left_of_killed() == []
    finally:
        for process in started:
            process.kill()
            process.wait()

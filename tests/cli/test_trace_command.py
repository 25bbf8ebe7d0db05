"""Traces on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "spark-eventlog.gz")


def test_what_is_inside(call):
    shown = call("trace", "info", EXAMPLE)
    assert shown.code == 0
    for part in ("Spark event log", "203", "2 nodes, 8 slots", "dashboard", "response as recorded"):
        assert part in shown.out
    assert re.search("█.*▃", shown.out)


def test_what_is_inside_as_json(call):
    facts = json.loads(call("trace", "info", EXAMPLE, "--json").out)
    assert (facts["queries"], facts["tasks"], facts["slots"]) == (16, 203, 8)
    assert sum(facts["submitted"]) == 16


@pytest.mark.parametrize("ending", ["html", "png"])
def test_a_figure(call, tmp_path: Path, ending: str):
    file = tmp_path / f"trace.{ending}"
    assert call("trace", "info", EXAMPLE, "--figure", str(file)).code == 0
    assert file.stat().st_size > 10_000


def test_a_replay_stands_beside_what_was_recorded(call):
    shown = call("compare", EXAMPLE, "--policy", "fifo,fair")
    words = " ".join(shown.out.split())
    assert "As recorded, mean response was 25.4 s; under fifo 25.3 s, under fair 12.1 s." in words


def test_a_trace_on_other_nodes_with_deadlines(call):
    args = ("--trace", "deadlines=0.5,first=8", "--nodes", "1x4", "--policy", "edf", "--json")
    found = json.loads(call("compare", EXAMPLE, *args).out)
    assert found["workload"]["slots"] == 4
    assert found["workload"]["queries"] == 8
    assert found["policies"][0]["scores"]["deadlines"] == 4


def test_one_policy_looked_at_closely(call):
    assert "tls" in call("simulate", EXAMPLE, "--policy", "tls").out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("trace", "info", "nowhere.gz"), "nowhere.gz: cannot be read"),
        (("trace", "info", EXAMPLE, "--trace", "lod=1"), "--trace: unknown key 'lod'"),
        (("compare", "--demo", "--trace", "load=1"), "give the file of one"),
        (("compare", __file__), "is no trace that can be read"),
    ],
)
def test_mistakes(call, args: tuple[str, ...], message: str):
    ended = call(*args)
    assert ended.code == 2
    assert message in " ".join(ended.err.split())
    assert "Traceback" not in ended.err

"""Traces on the command line."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

WORKLOAD = str(Path(__file__).parents[2] / "examples" / "first.toml")
EXAMPLE = str(Path(__file__).parents[2] / "examples" / "spark-eventlog.gz")


def test_what_is_inside(call):
    shown = call("trace", "info", EXAMPLE)
    assert shown.code == 0
    for part in ("Spark event log", "203", "2 nodes, 8 slots", "dashboard", "response as recorded"):
        assert part in shown.out
    assert re.search("█.*▃", shown.out)


def test_bytes_failures_and_where_input_was(call, tmp_path: Path):
    text = gzip.decompress(Path(EXAMPLE).read_bytes()).decode()
    file = tmp_path / "log"
    file.write_text(text.replace('"Success"', '"TaskKilled"', 3))
    words = " ".join(call("trace", "info", file).out.split())
    assert "GB read, 3.6 GB shuffled, 0 B written" in words
    assert "failures tasks TaskKilled: 3" in words
    assert "input of tasks 200 local" in words
    facts = json.loads(call("trace", "info", file, "--json").out)
    assert facts["failures"] == {"tasks TaskKilled": 3}
    assert facts["locality"] == {"local": 200}
    assert facts["bytes"]["read"] > 1e10


def test_a_file_of_a_folder_that_cannot_be_read_is_named_as_it_is(call, tmp_path: Path):
    (tmp_path / "app").write_bytes(Path(EXAMPLE).read_bytes())
    (tmp_path / "old [copy].bz2").write_bytes(b"BZh9" + b"nonsense" * 9)
    words = " ".join(call("trace", "info", tmp_path).out.split())
    assert "203" in words
    assert "old [copy].bz2: cannot be decompressed" in words


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
    words = " ".join(call("simulate", EXAMPLE, "--policy", "tls").out.split())
    assert "tls" in words
    assert "Note: planning and other work of the driver is not replayed" in words


ONE = {"compare": ("compare", "--policy", "srtf"), "simulate": ("simulate", "--policy", "srtf")}


@pytest.mark.parametrize("command", ONE)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "With estimates regression (policies learn from tasks that have ended"),
        (("--estimates", "oracle"), "With estimates oracle (policies know what every task takes)."),
        (("--estimates", "observed"), "With estimates observed."),
    ],
)
def test_what_policies_know_of_a_trace_is_said(call, command: str, given, said: str):
    assert said in " ".join(call(*ONE[command], EXAMPLE, *given).out.split())


@pytest.mark.parametrize("command", ONE)
def test_policies_learn_from_a_trace_and_are_told_of_a_workload_of_our_own(call, command: str):
    for file, given, used in (
        (EXAMPLE, (), "regression"),
        (EXAMPLE, ("--estimates", "oracle"), "oracle"),
        (WORKLOAD, (), "oracle"),
        (WORKLOAD, ("--estimates", "basic"), "basic"),
    ):
        found = json.loads(call(*ONE[command], file, *given, "--json").out)
        assert found["settings"]["estimates"] == used
    assert "estimates" not in call(*ONE[command], WORKLOAD).out


def test_the_help_says_what_policies_know(call):
    words = " ".join(re.sub("[│─╭╮╰╯]", " ", call("compare", "--help").out).split())
    assert "Default: oracle; for traces regression" in words


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("trace", "info", "nowhere.gz"), "nowhere.gz: cannot be read"),
        (("trace", "info", EXAMPLE, "--trace", "lod=1"), "--trace: unknown key 'lod'"),
        (("compare", "--demo", "--trace", "load=1"), "give the file of one"),
        (("compare", __file__), "is no trace that can be read"),
        (
            ("compare", EXAMPLE, "--trace", "load=0.5", "--nodes", "2x4"),
            "--nodes names the cluster, and --trace load=0.5 says what it is as well",
        ),
        (
            ("trace", "info", EXAMPLE, "--trace", "topology=x.json,load=0.5"),
            "--trace: topology=x.json names a cluster, and load=0.5 makes one up",
        ),
        (("trace", "info", EXAMPLE, "--trace", "first=nan"), "first=nan: expected a whole number"),
        (("trace", "info", EXAMPLE, "--trace", "load=1e-300"), "nodes of 12 slots"),
        (("compare", EXAMPLE, "--estimates", "magic"), "'magic'"),
    ],
)
def test_mistakes(call, args: tuple[str, ...], message: str):
    ended = call(*args)
    assert ended.code == 2
    assert message in " ".join(ended.err.split())
    assert "Traceback" not in ended.err

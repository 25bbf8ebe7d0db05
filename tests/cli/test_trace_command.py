"""Traces on the command line."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from queryard.workload.traces import read_trace
from research import EXPERIMENTS
from research.recorded.workloads import FACEBOOK_2009, FACEBOOK_2010

WORKLOAD = str(Path(__file__).parents[2] / "examples" / "first.toml")
TINY = str(Path(__file__).parents[2] / "examples" / "tiny.json")
DOCS = Path(__file__).parents[2] / "docs" / "traces.md"
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


def test_the_help_says_what_the_cluster_is(call):
    words = " ".join(re.sub("[│─╭╮╰╯]", " ", call("trace", "info", "--help").out).split())
    assert "Default: those of the trace, else a cluster made up for an offered load of 70%" in words
    assert "first submission to the last end of a query or a task that is recorded" in words


def two_jobs(folder: Path, gap_s: int, length_s: int = 1) -> Path:
    """A SLS trace: two jobs of a container each, on one host, of which the second has no end."""
    jobs = []
    for number, at_s in enumerate((0, gap_s)):
        container = {"container.host": "/r/n", "container.start.ms": at_s * 1000}
        container["container.end.ms"] = (at_s + length_s) * 1000
        job = {"job.id": f"j{number}", "job.start.ms": at_s * 1000, "job.tasks": [container]}
        jobs.append(job if number else {**job, "job.end.ms": (at_s + 5 * length_s) * 1000})
    file = folder / "sls.json"
    file.write_text(json.dumps(jobs))
    return file


def test_the_offered_load_is_the_same_wherever_it_stands(call):
    words = " ".join(call("trace", "info", EXAMPLE, "--trace", "load=2").out.split())
    assert "offered load 184.0 %: work / (3 slots × 135 s, first submission to last end)" in words
    assert "all work is 184% of what it can do from the first submission to the last end" in words


def test_the_command_that_replays_can_be_pasted(call, tmp_path: Path):
    file = tmp_path / "with space.gz"
    file.write_bytes(Path(EXAMPLE).read_bytes())
    assert f"queryard compare '{file}'\n" in call("trace", "info", file).out


def test_long_spans_are_days(call, tmp_path: Path):
    words = " ".join(call("trace", "info", two_jobs(tmp_path, 219_057_766)).out.split())
    assert "submitted within 2,535 days" in words
    assert "offered load below 0.1 %: work / (1 slot × 2,535 days, first submission" in words
    assert "the highest bar is 1 query in 42.3 days" in words


def test_queries_that_come_at_once_need_no_picture(call, tmp_path: Path):
    shown = call("trace", "info", two_jobs(tmp_path, 0))
    assert "all 2 queries were submitted at once" in shown.out
    assert "highest bar" not in shown.out
    alone = call("trace", "info", two_jobs(tmp_path, 9), "--trace", "first=1")
    assert "highest bar" not in alone.out


def test_means_over_other_queries_are_told_apart(call, tmp_path: Path):
    shown = call("compare", two_jobs(tmp_path, 100), "--policy", "fair")
    words = " ".join(shown.out.split())
    assert "was 5.00 s (of 1 query with a known end); under fair 1.00 s (of 2 queries)." in words
    assert "how long a query took is known of 1 of 2" in words


def test_where_no_query_waits_policies_cannot_differ(call, tmp_path: Path):
    for gap_s, said in ((100, True), (0, False)):
        words = " ".join(
            call("compare", two_jobs(tmp_path, gap_s, 10), "--nodes", "1x1").out.split()
        )
        assert ("No query ever waits for another, so that policies cannot" in words) == said
        assert ("try a smaller cluster" in words) == said


def test_the_python_of_the_docs_runs(monkeypatch, capsys):
    monkeypatch.chdir(DOCS.parents[1])
    (snippet,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    exec(snippet, {})
    printed = [f"{float(line):.1f}" for line in capsys.readouterr().out.split()]
    assert printed == re.findall(r"# ([\d.]+),", snippet)


def test_the_docs_name_all_experiments_that_need_traces():
    section = DOCS.read_text().partition("how experiments find them")[2].partition("\n## ")[0]
    readers = {
        name
        for row in re.findall(r"^\| `[^|]*\|([^|]*)\|", section, re.MULTILINE)
        for name in re.findall(r"[a-z]+(?:-[a-z]+)*(?=,| \(|\s*$)", row)
    }
    needing = {name for name, found in EXPERIMENTS.items() if found.needs_traces}
    assert needing <= readers
    assert readers <= set(EXPERIMENTS)
    for place in (FACEBOOK_2009, FACEBOOK_2010):
        assert f"`{place}`" in section


def test_the_stages_in_the_docs_can_be_read(tmp_path: Path):
    (text,) = re.findall(r"```\n(\{.*?)```", DOCS.read_text(), re.DOTALL)
    file = tmp_path / "tpch-2g.json"
    file.write_text(text)
    assert read_trace(file).workload.tasks == 4


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
        (("trace", "info", WORKLOAD), "is a workload file and no trace; run it with: queryard"),
        (("compare", TINY, "--trace", "load=0.9"), "tiny.json: is a workload file and no trace"),
        (("trace", "info", EXAMPLE, "--trace", f"topology={TINY}"), "line 1: is no topology"),
    ],
)
def test_mistakes(call, args: tuple[str, ...], message: str):
    ended = call(*args)
    assert ended.code == 2
    assert message in " ".join(ended.err.split())
    assert "Traceback" not in ended.err

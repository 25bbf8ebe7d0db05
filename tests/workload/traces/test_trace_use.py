"""What is wanted of a trace: the first queries, a load, a cluster; and what cannot be had."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from trace_files import rumen_job, rumen_text, written

from queryard.core.errors import InvalidRecord
from queryard.workload import parse_nodes
from queryard.workload.traces import parse_use, use_trace


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Two jobs of Hadoop's, two seconds apart."""
    return written(tmp_path, "days-trace.json", rumen_text())


def test_the_first_queries_are_those_submitted_first(tmp_path: Path) -> None:
    jobs = [rumen_job(number, at, [1000], []) for number, at in ((1, 9000), (2, 5000), (3, 7000))]
    file = written(tmp_path, "days-trace.json", "\n".join(json.dumps(job) for job in jobs))
    trace = use_trace(file, parse_use("first=2"))
    assert [arrival.query.id for arrival in trace.workload.arrivals] == ["job_2", "job_3"]
    assert set(trace.finished_s) == {"job_2", "job_3"}
    assert {task.job for task in trace.tasks} == {"job_2/job", "job_3/job"}
    assert "of 3 queries the first 2 by submission are kept" in trace.notes[-1]
    assert not any("are kept" in note for note in use_trace(file, parse_use("first=3")).notes)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "nan", "-1", "0", "2.5"])
@pytest.mark.parametrize("key", ["first", "slots", "executors"])
def test_counts_that_are_none(key: str, number: str) -> None:
    with pytest.raises(InvalidRecord, match=f"{key}={number}: expected a whole number"):
        parse_use(f"{key}={number}")


@pytest.mark.parametrize("text", ["slots=1e18", "executors=1e18"])
def test_counts_that_are_too_large(text: str) -> None:
    with pytest.raises(InvalidRecord, match=r"at most 1.*000 can be simulated"):
        parse_use(text)


@pytest.mark.parametrize("number", ["1e999", "nan", "-1", "x"])
@pytest.mark.parametrize("key", ["load", "deadlines", "until", "block"])
def test_quantities_that_are_none(key: str, number: str) -> None:
    with pytest.raises(InvalidRecord):
        parse_use(f"{key}={number}")


@pytest.mark.parametrize("load", ["1e-300", "5e-324", "1e-09"])
def test_a_load_that_would_take_too_many_nodes(file: Path, load: str) -> None:
    message = r"days-trace.json: a load of [\d.]+e-\d+ would take .* nodes of 12 slots.*--nodes"
    with pytest.raises(InvalidRecord, match=message):
        use_trace(file, parse_use(f"load={load}"))


def test_the_least_load_that_is_named_can_be_had(file: Path) -> None:
    with pytest.raises(InvalidRecord) as refused:
        use_trace(file, parse_use("load=1e-9,slots=1"))
    least = str(refused.value).partition("ask for ")[2].split()[0]
    assert use_trace(file, parse_use(f"load={least},slots=1")).workload.nodes


def test_a_huge_load_is_a_cluster_of_one_slot(file: Path) -> None:
    (node,) = use_trace(file, parse_use("load=1e300")).workload.nodes
    assert node.slots == 1


def test_a_topology_and_a_load_contradict_each_other() -> None:
    with pytest.raises(InvalidRecord, match=r"topology=nodes.json names .*load=0.5 makes one up"):
        parse_use("topology=nodes.json, load=0.5")


@pytest.mark.parametrize("text", ["load=0.5", "slots=4", "topology=nodes.json"])
def test_nodes_contradict_what_says_what_the_nodes_are(file: Path, text: str) -> None:
    with pytest.raises(InvalidRecord, match=f"--nodes names the cluster, and --trace {text}"):
        use_trace(file, parse_use(text), parse_nodes("2x2"))


@pytest.mark.parametrize(("text", "of"), [("block=64MiB", "SWIM"), ("executors=50", "Decima")])
def test_what_a_format_does_not_know_is_refused_even_if_it_is_the_default(
    file: Path, text: str, of: str
) -> None:
    with pytest.raises(InvalidRecord, match=f"is for {of}"):
        use_trace(file, parse_use(text))

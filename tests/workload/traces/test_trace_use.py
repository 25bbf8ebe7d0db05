"""What is wanted of a trace: the first queries, a load, a cluster; and what cannot be had."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from trace_files import as_lines, rumen_job, rumen_text, spark_events, written

from queryard.core.errors import InvalidRecord
from queryard.workload import parse_nodes
from queryard.workload.traces import Trace, parse_use, use_trace


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


def noted(trace: Trace, part: str) -> bool:
    return any(part in note for note in trace.notes)


def test_notes_on_the_nodes_of_a_trace_are_not_made_of_others(tmp_path: Path) -> None:
    events = spark_events()
    events[1] |= {"Timestamp": 3000}  # after the first task has begun
    log = written(tmp_path, "log", as_lines(events))
    tree = {"name": "<root>", "children": [{"name": "rack1", "children": [{"name": "node1"}]}]}
    topology = written(tmp_path, "days-topology.json", json.dumps(tree))
    jobs = written(tmp_path, "days-trace.json", rumen_text())
    for file, part in ((log, "came and went"), (jobs, "the 1 host is that of days-topology")):
        assert noted(use_trace(file, parse_use("first=1")), part)
        assert not noted(use_trace(file, parse_use(""), parse_nodes("2x2")), part)
        for text in ("load=0.5", "slots=7", f"topology={topology},slots=9"):
            assert not noted(use_trace(file, parse_use(text)), part)


def test_a_topology_that_is_found_by_itself_may_be_named(tmp_path: Path, file: Path) -> None:
    text = '{"name": "<root>", "children": [{"name": "a"}]}'
    topology = written(tmp_path, "days-topology.json", text)
    trace = use_trace(file, parse_use(f"topology={topology}"))
    assert sum("host is that of" in note for note in trace.notes) == 1


def test_a_load_that_cannot_be_reached_is_said_to_be_so(tmp_path: Path) -> None:
    jobs = [rumen_job(number, at, [1000], []) for number, at in ((1, 0), (2, 8000))]
    file = written(tmp_path, "days-trace.json", "\n".join(json.dumps(job) for job in jobs))
    (note,) = [n for n in use_trace(file, parse_use("load=0.9")).notes if "made up" in n]
    assert "1 node of 1 slot; all work is 22% of what it can do from the first" in note
    assert "to the last end; a load of 0.9 cannot be reached, since there is no smaller" in note
    (note,) = [n for n in use_trace(file, parse_use("load=0.15")).notes if "made up" in n]
    assert "; a load of 0.15 cannot be reached, since nodes and slots come whole" in note
    (note,) = [n for n in use_trace(file, parse_use("load=0.22")).notes if "made up" in n]
    assert "reached" not in note


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "tiny", "nodes": "2x2", "queries": []}',
        '{"nodes": [{"node": "a"}]}',
        '{"rack": "r", "children": 3}',
        '{"name": "<root>", "children": ["a"]}',
        '{"name": "<root>", "children": [{"children": []}]}',
        '{"rack": "r", "nodes": [{"host": "a"}]}',
        '{"rack": "r", "nodes": "2x2"}',
    ],
)
def test_what_is_no_topology(tmp_path: Path, file: Path, text: str) -> None:
    nodes = written(tmp_path, "nodes.json", text)
    with pytest.raises(
        InvalidRecord, match=r"nodes.json, line 1: (is no topology|racks and hosts)"
    ):
        use_trace(file, parse_use(f"topology={nodes}"))


def test_of_how_many_queries_the_recorded_times_are(tmp_path: Path) -> None:
    jobs = [rumen_job(1, 0, [1000], []), {**rumen_job(2, 5000, [1000], []), "finishTime": -1}]
    file = written(tmp_path, "days-trace.json", "\n".join(json.dumps(job) for job in jobs))
    assert noted(use_trace(file, parse_use("")), "how long a query took is known of 1 of 2")
    assert not noted(use_trace(file, parse_use("first=1")), "how long a query took")


def test_until_counts_from_the_first_submission(tmp_path: Path) -> None:
    lines = [f"job{at}\t{at}\t0\t1000\t0\t0\n" for at in (50, 52, 60)]
    file = written(tmp_path, "day.tsv", "".join(lines))
    for until, queries in (("1ms", 1), ("2", 1), ("2.5", 2), ("1 min", 3)):
        trace = use_trace(file, parse_use(f"until={until}"))
        assert len(trace.workload.arrivals) == queries
    with pytest.raises(InvalidRecord, match="until must be above 0"):
        parse_use("until=0")


def test_the_span_of_a_log_without_its_end_goes_to_its_last_task(tmp_path: Path) -> None:
    events = spark_events()
    for kept, seconds, last in ((len(events), 4.0, "end"), (12, 3.5, "end of a task")):
        trace = use_trace(written(tmp_path, "log", as_lines(events[:kept])), parse_use(""))
        assert trace.span == (pytest.approx(seconds), last)
        assert trace.load_on(parse_nodes("1x2")) == pytest.approx(3.5 / (2 * seconds))
    day = written(tmp_path, "day.tsv", "a\t5\t0\t1\t0\t0\nb\t9\t4\t1\t0\t0\n")
    assert use_trace(day, parse_use("")).span == (4.0, "submission")


@pytest.mark.parametrize(("days", "said"), [(1, ""), (3, "up to 3 days pass"), (900, "900 days")])
def test_days_without_a_submission(tmp_path: Path, days: int, said: str) -> None:
    jobs = [rumen_job(number, at, [1000], []) for number, at in ((1, 0), (2, days * 86_400_000))]
    file = written(tmp_path, "days-trace.json", "\n".join(json.dumps(job) for job in jobs))
    notes = [note for note in use_trace(file, parse_use("")).notes if "days pass" in note]
    assert bool(notes) == bool(said)
    assert all(said in note and "--trace first=" in note for note in notes)


def test_logs_of_different_days_are_better_taken_one_at_a_time(tmp_path: Path) -> None:
    written(tmp_path, "app-1", as_lines(spark_events()))
    late = spark_events()
    for event, key in ((2, "Timestamp"), (3, "time")):
        late[event][key] += 10 * 86_400_000
    written(tmp_path, "app-2", as_lines(late))
    assert noted(use_trace(tmp_path, parse_use("")), "up to 10 days pass")
    assert noted(use_trace(tmp_path, parse_use("")), "take one log at a time")


def test_what_is_assumed_of_the_nodes_of_a_topology_is_said(tmp_path: Path, file: Path) -> None:
    for more, said in (("", "4 slots each"), (', "vcores": 9', "4 slots each, but for those of")):
        nodes = f'[{{"node": "a"}}, {{"node": "b"{more}}}]'
        racks = written(tmp_path, "nodes.json", f'{{"rack": "r", "nodes": {nodes}}}')
        trace = use_trace(file, parse_use(f"topology={racks}"))
        assert noted(trace, f"the 2 hosts are those of nodes.json, with {said}")
        assert not noted(use_trace(file, parse_use(f"topology={racks},slots=9")), "slots each")


def test_what_is_said_of_a_shuffle_is_said_where_there_is_one(tmp_path: Path, file: Path) -> None:
    assert noted(use_trace(file, parse_use("")), "the shuffle of a reduce counts")
    maps = written(tmp_path, "maps-trace.json", json.dumps(rumen_job(1, 0, [1000], [])))
    assert noted(use_trace(maps, parse_use("")), "each job is a query")
    assert not noted(use_trace(maps, parse_use("")), "shuffle")


def test_why_there_is_no_job_to_replay(tmp_path: Path) -> None:
    begun = 'TASKID="task_1_m_0" TASK_TYPE="MAP" TASK_ATTEMPT_ID="attempt_1_m_0_0"'
    lines = [
        'Meta VERSION="1" .',
        'Job JOBID="job_1" USER="ada" SUBMIT_TIME="1000" .',
        f'MapAttempt {begun} START_TIME="2000" .',
        'Job JOBID="job_1" FINISH_TIME="4500" JOB_STATUS="FAILED" .',
    ]
    whole = written(tmp_path, "job_1", "\n".join(lines))
    with pytest.raises(InvalidRecord, match=r"replayed: 1 job \(failed\) without a task that"):
        use_trace(whole, parse_use(""))
    cut = written(tmp_path, "job_2", "\n".join(lines[:3]))
    with pytest.raises(InvalidRecord, match="the file ends at line 3 without the end of 1 job"):
        use_trace(cut, parse_use(""))


def test_a_folder_without_logs_says_where_some_are(tmp_path: Path) -> None:
    (tmp_path / "spark" / "old").mkdir(parents=True)
    written(tmp_path / "spark" / "old", "app-1", as_lines(spark_events()))
    with pytest.raises(InvalidRecord, match=r"no Spark event log.* some in .*spark.old; other"):
        use_trace(tmp_path, parse_use(""))
    written(tmp_path, "job_1.jhist", "Avro-Json\n{}\n")
    with pytest.raises(InvalidRecord, match=r"one by one.*job_1.jhist; .*Rumen makes one trace"):
        use_trace(tmp_path, parse_use(""))

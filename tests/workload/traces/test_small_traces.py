"""Every format with a small file made here: what is read, and what is said of broken ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from trace_files import SQL, as_lines, history_lines, rumen_job, rumen_text, spark_events, written

from queryard.core.errors import InvalidRecord
from queryard.sim import simulate
from queryard.workload import load_workload, save_workload
from queryard.workload.traces import ReadOptions, Trace, parse_use, read_trace, use_trace


@pytest.fixture
def spark_file(tmp_path: Path) -> Path:
    return written(tmp_path, "app-1", as_lines(spark_events()))


def check_spark(trace: Trace) -> None:
    (arrival,) = trace.workload.arrivals
    query = arrival.query
    assert (query.id, query.tenant, query.submit_s) == ("sql7", "reports", 1.0)
    assert query.class_name == "count rows"
    # Stage 1 is stage 0 again.
    assert [(job.name, job.upstream) for job in query.jobs] == [("s0", ()), ("s1", ("s0",))]
    assert arrival.truth["s0"].map_times_s == (1.0, 2.0)
    assert trace.responses_s == {"sql7": 4.0}
    assert [(node.id, node.slots) for node in trace.workload.nodes] == [("h1", 2)]
    assert [(t.kind, t.input_bytes, t.locality) for t in trace.tasks] == [
        ("map", 100, "local"),
        ("map", 200, "local"),
        ("reduce", 50, "local"),
    ]


def test_a_spark_log(spark_file: Path) -> None:
    trace = read_trace(spark_file)
    check_spark(trace)
    run = simulate(trace.workload, trace.workload.nodes, {"order": "fifo"})
    assert run.ends == {"sql7": pytest.approx(1.0 + 2.0 + 0.5)}


@pytest.mark.parametrize("codec", ["gzip", "zstd", "bz2", "lz4"])
def test_a_compressed_spark_log(spark_file: Path, codec: str) -> None:
    import pyarrow as pa

    file = spark_file.with_suffix(f".{codec}")
    with pa.CompressedOutputStream(str(file), codec) as out:
        out.write(spark_file.read_bytes())
    check_spark(read_trace(file))


def test_spark_compression_that_only_spark_reads(tmp_path: Path) -> None:
    file = tmp_path / "app.lz4"
    file.write_bytes(b"LZ4Block" + bytes(50))
    with pytest.raises(InvalidRecord, match=r"lz4.*codec=zstd"):
        read_trace(file)


def test_a_rolling_spark_log_is_read_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    events = spark_events()
    parts = [events[:4], *([event] for event in events[4:14]), events[14:]]
    for number, part in enumerate(parts, 1):
        written(tmp_path, f"events_{number}_app-1", as_lines(part))
    written(tmp_path, "appstatus_app-1", "")
    check_spark(read_trace(tmp_path))
    (tmp_path / "events_3_app-1").unlink()
    with pytest.raises(InvalidRecord, match="parts of the rolling log are missing"):
        read_trace(tmp_path)


def test_a_folder_of_spark_logs_is_one_workload(tmp_path: Path) -> None:
    late = json.loads(as_lines(spark_events()).replace("app-1", "app-2").split("\n")[2])
    late["Timestamp"] += 500
    events = spark_events()
    events[2] = late
    written(tmp_path, "one", as_lines(spark_events()))
    written(tmp_path, "two", as_lines(events))
    written(tmp_path, "notes.txt", "not a log")
    trace = read_trace(tmp_path)
    assert [a.query.id for a in trace.workload.arrivals] == ["app-1.sql7", "app-2.sql7"]
    assert trace.counts["applications"] == 2


@pytest.mark.parametrize("kept", [6, 9, 12])
def test_a_spark_log_that_is_still_written(tmp_path: Path, kept: int) -> None:
    text = as_lines(spark_events()[:kept])
    file = written(tmp_path, "app.inprogress", text + '{"Event": "SparkListenerTa')
    trace = read_trace(file)
    assert trace.counts["lines"] == kept
    assert len(trace.tasks) == {6: 1, 9: 2, 12: 3}[kept]
    assert "is cut off" in trace.notes[0]
    assert not trace.responses_s


def test_a_compressed_spark_log_that_was_cut(tmp_path: Path, spark_file: Path) -> None:
    whole = gzip.compress(as_lines(spark_events() * 200).encode())
    file = tmp_path / "app.gz"
    file.write_bytes(whole[: len(whole) // 2])
    trace = read_trace(file)
    assert len(trace.tasks) == 3
    assert "ends in the middle" in trace.notes[0]


def test_a_compressed_spark_log_that_was_cut_early(tmp_path: Path) -> None:
    """There is less of it than one looks at to see what it is."""
    whole = gzip.compress(as_lines(spark_events()).encode())
    file = tmp_path / "app.gz"
    file.write_bytes(whole[: len(whole) * 9 // 10])
    assert "ends in the middle" in read_trace(file).notes[0]
    file.write_bytes(whole[:12])
    with pytest.raises(InvalidRecord, match="cannot be decompressed"):
        read_trace(file)


def test_a_spark_log_that_is_broken_names_the_line(tmp_path: Path) -> None:
    lines = as_lines(spark_events()).splitlines()
    lines[5] = lines[5][:30]
    file = written(tmp_path, "app", "\n".join(lines))
    with pytest.raises(InvalidRecord, match="app, line 6: not valid JSON"):
        read_trace(file)
    lines[5] = json.dumps({"Event": "SparkListenerTaskEnd", "Task Info": {}})
    written(tmp_path, "app", "\n".join(lines))
    with pytest.raises(InvalidRecord, match=r"line 6: SparkListenerTaskEnd is not as Spark"):
        read_trace(file)


def test_jobs_of_an_application_without_sql_follow_one_another(tmp_path: Path) -> None:
    events = [event for event in spark_events() if not event["Event"].startswith(SQL)]
    for event in events:
        event.pop("Properties", None)
    trace = read_trace(written(tmp_path, "app", as_lines(events)))
    (arrival,) = trace.workload.arrivals
    assert arrival.query.id == "app"
    assert arrival.query.tenant == "ada"
    assert [job.upstream for job in arrival.query.jobs] == [(), ("s0",)]
    assert trace.responses_s == {"app": pytest.approx(3.5)}


def test_a_rumen_trace(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, "days-trace.json", rumen_text()))
    first, second = trace.workload.arrivals
    assert (first.query.id, first.query.tenant, first.query.class_name) == (
        "job_1",
        "daily/ada",
        "sort",
    )
    assert second.query.submit_s == 2.0
    truth = first.truth["job"]
    assert truth.map_times_s == (1.0, 2.0)
    assert (truth.shuffle_s, truth.merge_s, truth.reduce_s) == (1.0, 0.0, 4.0)
    assert trace.responses_s == {"job_1": 7.0, "job_2": 3.0}
    assert [task.locality for task in trace.tasks] == ["local"] * 4
    assert [(node.id, node.slots) for node in trace.workload.nodes] == [("node1", 2)]


def test_the_topology_beside_a_rumen_trace(tmp_path: Path) -> None:
    hosts = [{"name": f"node{number}", "children": None} for number in (1, 2)]
    racks = {"name": "<root>", "children": [{"name": "rack1", "children": hosts}]}
    written(tmp_path, "days-topology.json", json.dumps(racks))
    trace = read_trace(written(tmp_path, "days-trace.json", rumen_text()))
    assert [(node.id, node.rack) for node in trace.workload.nodes] == [
        ("node1", "rack1"),
        ("node2", "rack1"),
    ]
    with pytest.raises(
        InvalidRecord, match=r"give a trace, and --trace topology=.*days-topology.json beside"
    ):
        read_trace(tmp_path / "days-topology.json")


def test_a_rumen_trace_that_was_cut(tmp_path: Path) -> None:
    text = rumen_text()
    file = written(tmp_path, "days-trace.json", text[: len(text) - 30])
    with pytest.raises(InvalidRecord, match=r"line \d+: not valid JSON"):
        read_trace(file)


def test_sls_jobs(tmp_path: Path) -> None:
    container = {"container.host": "/rack1/n1", "container.start.ms": 1000, "container.type": "map"}
    job = {
        "am.type": "mapreduce",
        "job.start.ms": 0,
        "job.end.ms": 9000,
        "job.queue.name": "q",
        "job.id": "job_1",
        "job.user": "ada",
        "job.tasks": [
            {**container, "container.end.ms": 3000},
            {**container, "container.end.ms": 5000, "container.request.delay": 10},
            {
                "container.host": "/rack1/n2",
                "container.start.ms": 5000,
                "container.end.ms": 8000,
                "container.priority": 10,
            },
        ],
    }
    trace = read_trace(
        written(tmp_path, "sls.json", json.dumps(job) + json.dumps(job | {"job.id": "b"}))
    )
    first = trace.workload.arrivals[0]
    assert first.query.tenant == "q/ada"
    assert first.truth["job"].map_times_s == (2.0, 4.0)
    assert first.query.jobs[0].reduce is not None
    assert trace.responses_s == {"job_1": 9.0, "b": 9.0}
    assert any("container.request.delay" in note for note in trace.notes)


def test_sls_nodes(tmp_path: Path) -> None:
    nodes = {
        "rack": "r1",
        "nodes": [{"node": "a", "memory-mb": 2048, "vcores": 6}, {"node": "b"}, {}],
    }
    written(tmp_path, "nodes.json", json.dumps(nodes))
    file = written(tmp_path, "days-trace.json", rumen_text())
    use = parse_use(f"topology={tmp_path / 'nodes.json'}")
    trace = use_trace(file, use)
    assert [(n.id, n.slots, n.rack) for n in trace.workload.nodes] == [
        ("a", 6, "r1"),
        ("b", 4, "r1"),
    ]
    assert trace.workload.nodes[0].memory_bytes == 2048 * 2**20


def test_a_job_history_in_text(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, "job_1", "\n".join(history_lines())))
    (arrival,) = trace.workload.arrivals
    assert arrival.query.class_name == "word.count"
    (task,) = trace.tasks
    assert (task.seconds, task.input_bytes, task.locality, task.node) == (2.0, 500, "rack", "n2")
    assert trace.responses_s == {"job_1": 3.5}


def test_a_job_history_in_text_that_was_cut(tmp_path: Path) -> None:
    lines = history_lines()
    lines[4] = lines[4][:60]
    with pytest.raises(InvalidRecord, match="line 5: the record of a MapAttempt does not end"):
        read_trace(written(tmp_path, "job_1", "\n".join(lines)))
    with pytest.raises(InvalidRecord, match=r"line 5: .*is the file cut off"):
        read_trace(written(tmp_path, "job_1", "\n".join(lines[:5])))
    with pytest.raises(InvalidRecord, match="line 2: a record of Meta"):
        read_trace(written(tmp_path, "job_1", 'Meta VERSION="1" .\nhello'))


def test_a_job_history_in_avro(tmp_path: Path) -> None:
    def event(kind: str, **values: Any) -> str:
        return json.dumps({"type": kind, "event": {"org.apache.X": values}})

    attempt = {"taskid": "task_1_r_0", "taskType": "REDUCE", "attemptId": "attempt_1_r_0_0"}
    lines = [
        "Avro-Json",
        "{}",
        event("JOB_SUBMITTED", jobid="job_1", jobName="sort", userName="ada", submitTime=1000),
        event("REDUCE_ATTEMPT_STARTED", **attempt, startTime=2000),
        "",
        event(
            "REDUCE_ATTEMPT_FINISHED",
            **attempt,
            shuffleFinishTime=3000,
            sortFinishTime=3500,
            finishTime=6000,
            hostname="n1",
            rackname="/r1",
            counters={"groups": [{"counts": [{"name": "REDUCE_SHUFFLE_BYTES", "value": 70}]}]},
        ),
        event("JOB_FINISHED", jobid="job_1", finishTime=7000),
    ]
    trace = read_trace(written(tmp_path, "job_1.jhist", "\n".join(lines)))
    (task,) = trace.tasks
    assert (task.kind, task.seconds, task.shuffle_s, task.merge_s) == ("reduce", 4.0, 1.0, 0.5)
    assert task.input_bytes == 70
    assert trace.responses_s == {"job_1": 6.0}
    lines[3] = lines[3][:20]
    with pytest.raises(InvalidRecord, match="line 4: an event with its type is expected"):
        read_trace(written(tmp_path, "job_1.jhist", "\n".join(lines)))


SWIM = "job0\t10\t10\t150000000\t0\t1000\njob1\t30\t20\t0\t600000000\t50\n"


def test_a_swim_day(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, "day.tsv", SWIM), ReadOptions(block_bytes=64e6))
    scan, shuffle = trace.workload.arrivals
    assert (scan.query.submit_s, scan.query.jobs[0].reduce) == (10.0, None)
    assert scan.query.jobs[0].map is not None
    assert scan.query.jobs[0].map.tasks == 3
    assert shuffle.query.jobs[0].map is not None
    assert shuffle.query.jobs[0].map.tasks == 1
    assert shuffle.query.jobs[0].reduce is not None
    assert shuffle.query.jobs[0].reduce.tasks == 3
    assert any("times are made up" in note for note in trace.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SWIM + "job2\tx\t1\t1\t1\t1\n", "line 3: five numbers .*'x'"),
        (SWIM + "job2\t1\t1\t1\n", "line 3: six fields or more.*cut off"),
        (SWIM + "job2\t5\t1\t1\t1\t1\n", "line 3: submitted at 5 s, before"),
        (SWIM + "job2\t50\t1\t-4\t1\t1\n", "line 3: times and bytes cannot be negative"),
        ("hello, world\n", "is no trace that can be read; known are"),
        ("", "is empty"),
    ],
)
def test_what_is_no_swim_day(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidRecord, match=message):
        read_trace(written(tmp_path, "day.tsv", text))


def decima_text() -> str:
    def stage(number: int, first: list[int], rest: list[int]) -> dict[str, Any]:
        return {
            "stage": number,
            "num_tasks": len(first) + len(rest),
            "fresh_durations": {"2": first},
            "first_wave": {"2": first, "10": [9000] * len(first)},
            "rest_wave": {"2": rest, "10": [9000] * len(rest)},
        }

    query = {
        "query": 6,
        "edges": [[0, 1]],
        "stages": [stage(0, [100, 200], [300]), stage(1, [50], [])],
    }
    return json.dumps({"scale": "2g", "queries": [query]})


def test_a_load_of_queries_that_come_at_once_cannot_be_set(tmp_path: Path) -> None:
    file = written(tmp_path, "tpch-2g.json", decima_text())
    with pytest.raises(InvalidRecord, match=r"load=0.5 cannot be set.*at once.*--nodes"):
        use_trace(file, parse_use("load=0.5"))
    first = written(tmp_path, "day.tsv", SWIM)
    assert len(use_trace(first, parse_use("first=1")).workload.nodes) == 4


def test_the_stages_of_decima(tmp_path: Path) -> None:
    file = written(tmp_path, "tpch-2g.json", decima_text())
    trace = read_trace(file, ReadOptions(executors=3))
    (arrival,) = trace.workload.arrivals
    assert arrival.query.id == "q06"
    assert [job.upstream for job in arrival.query.jobs] == [(), ("s0",)]
    assert arrival.truth["s0"].map_times_s == (0.1, 0.2, 0.3)
    assert len(trace.workload.nodes) == 3
    with pytest.raises(InvalidRecord, match="query 6: edges must be a list, and is not there"):
        read_trace(written(tmp_path, "tpch-2g.json", decima_text().replace("edges", "edge")))


def test_a_trace_can_be_saved_as_a_workload(tmp_path: Path) -> None:
    workload = read_trace(written(tmp_path, "days-trace.json", rumen_text())).workload
    save_workload(workload, tmp_path / "saved.json")
    assert load_workload(tmp_path / "saved.json").arrivals == workload.arrivals


def test_a_cluster_made_for_a_load(tmp_path: Path) -> None:
    lines = [f"job{n}\t{n * 10}\t10\t640000000\t0\t0" for n in range(101)]
    file = written(tmp_path, "day.tsv", "\n".join(lines))
    trace = use_trace(file, parse_use("load=0.5, slots=2, deadlines=0.3, until=500 s"), seed=4)
    workload = trace.workload
    assert len(workload.arrivals) == 50
    work_s = sum(arrival.work_s for arrival in workload.arrivals)
    slots = sum(node.slots for node in workload.nodes)
    assert work_s / (490 * slots) == pytest.approx(0.5, rel=0.1)
    due = [a for a in workload.arrivals if a.query.deadline_s is not None]
    assert len(due) == 15
    assert use_trace(file, parse_use("load=0.5,deadlines=0.3,until=500 s,slots=2"), seed=4) == trace


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("blok=3", "unknown key 'blok'; did you mean 'block'"),
        ("load", "write load=VALUE"),
        ("load=0", "load must be above 0"),
        ("first=2.5", "expected a whole number"),
        ("deadlines=3", "between 0 and 1"),
        ("executors=x", "expected a number"),
    ],
)
def test_wrong_wishes(text: str, message: str) -> None:
    with pytest.raises(InvalidRecord, match=message):
        parse_use(text)


def test_executors_that_replace_one_another_are_not_added_up(tmp_path: Path) -> None:
    events = [event for event in spark_events() if event["Event"] != "SparkListenerExecutorAdded"]
    for number, (came, left) in enumerate([(0, 1000), (1000, 2000), (2000, 0)], 1):
        info = {"Host": "h1", "Total Cores": 4}
        events.insert(
            1,
            {
                "Event": "SparkListenerExecutorAdded",
                "Timestamp": came,
                "Executor ID": str(number),
                "Executor Info": info,
            },
        )
        if left:
            gone = {"Event": "SparkListenerExecutorRemoved", "Timestamp": left}
            events.append({**gone, "Executor ID": str(number)})
    for number, event in enumerate(event for event in events if "Task Info" in event):
        event["Task Info"] = {**event["Task Info"], "Executor ID": str(number % 3 + 1)}
    trace = read_trace(written(tmp_path, "log", as_lines(events)))
    assert [(node.id, node.slots) for node in trace.workload.nodes] == [("h1", 4)]


def test_an_application_that_was_tried_again(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in ("app_1", "app_2"):
        written(folder, name, as_lines(spark_events()))
    trace = read_trace(folder)
    ids = [arrival.query.id for arrival in trace.workload.arrivals]
    assert len(set(ids)) == len(ids) > 0


@pytest.mark.parametrize(
    "task",
    [
        {"taskType": "MAP", "attempts": [3]},
        {"taskType": "MAP", "attempts": 3},
        {"taskType": "MAP", "preferredLocations": [3]},
    ],
)
def test_an_odd_task_of_a_rumen_trace_names_the_line(tmp_path: Path, task: Any) -> None:
    job = {**rumen_job(1, 0, [1000], []), "mapTasks": [task]}
    with pytest.raises(InvalidRecord, match=r"days-trace.json.*mapTasks"):
        read_trace(written(tmp_path, "days-trace.json", json.dumps(job)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("job1\t30\t30\tnan\t0\t0", "line 2: times and bytes must be finite"),
        ("job0\t30\t30\t10\t0\t0", "line 2: another line is about the job 'job0'"),
    ],
)
def test_an_odd_line_of_a_swim_day(tmp_path: Path, line: str, message: str) -> None:
    file = written(tmp_path, "day.tsv", f"job0\t0\t0\t1000\t0\t0\n{line}\n")
    with pytest.raises(InvalidRecord, match=message):
        read_trace(file)


def test_a_broken_xz(tmp_path: Path) -> None:
    file = tmp_path / "log.xz"
    file.write_bytes(b"\xfd7zXZ\x00" + b"nonsense" * 9)
    with pytest.raises(InvalidRecord, match="cannot be decompressed"):
        read_trace(file)


@pytest.mark.parametrize("load", [0.5, 0.9, 1.5])
def test_a_cluster_for_a_load_has_nodes_that_fit(load: float) -> None:
    example = Path(__file__).parents[3] / "examples" / "spark-eventlog.gz"
    trace = use_trace(example, parse_use(f"load={load}"))
    (note,) = [note for note in trace.notes if "made up" in note]
    reached = trace.load_on(trace.workload.nodes)
    assert reached == pytest.approx(load, rel=0.1)
    assert f"all work is {reached:.0%} of what it can do from the first submission" in note


@pytest.mark.parametrize(("text", "of"), [("block=1MiB", "SWIM"), ("executors=8", "Decima")])
def test_what_a_format_does_not_know_is_not_left_unheard(text: str, of: str) -> None:
    example = Path(__file__).parents[3] / "examples" / "spark-eventlog.gz"
    with pytest.raises(InvalidRecord, match=f"is for {of}.*Spark event log"):
        use_trace(example, parse_use(text))

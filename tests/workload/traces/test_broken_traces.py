"""Corrupt files and numbers that cannot be: what is said names the place, and is no traceback."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trace_files import as_lines, rumen_job, rumen_text, spark_events, spark_task, written

from queryard.core.errors import InvalidRecord
from queryard.workload.traces import parse_use, read_trace, use_trace

# Numbers that are valid JSON to Python, and neither times nor sizes.
IMPOSSIBLE = ("1e999", "-1e999", "NaN", "1e300", "9" * 400)


def flipped(data: bytes, at: int) -> bytes:
    at %= len(data)
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def zstd(data: bytes) -> bytes:
    import pyarrow as pa

    return bytes(pa.compress(data, "zstd", asbytes=True))


@pytest.mark.parametrize(
    ("compress", "at"),
    [(gzip.compress, -6), (gzip.compress, 200), (bz2.compress, -6), (lzma.compress, -40)],
    ids=["gzip's checksum", "gzip's data", "bzip2's end", "xz's end"],
)
def test_what_is_corrupt_is_not_taken_for_unfinished(
    tmp_path: Path, compress: Callable[[bytes], bytes], at: int
) -> None:
    """The beginning is sound and long enough to be known for a log."""
    whole = as_lines(spark_events() * 300).encode()
    packed = compress(whole[: len(whole) // 2]) + compress(whole[len(whole) // 2 :])
    second = len(compress(whole[: len(whole) // 2]))
    file = tmp_path / "app"
    file.write_bytes(packed[:second] + flipped(packed[second:], at))
    with pytest.raises(InvalidRecord, match=r"app, line \d+: (is corrupt from here on|not valid)"):
        read_trace(file)


def test_a_checksum_that_is_wrong_names_the_line_behind_the_last_one(tmp_path: Path) -> None:
    file = tmp_path / "app.gz"
    file.write_bytes(flipped(gzip.compress(as_lines(spark_events()).encode()), -6))
    line = len(spark_events()) + 1
    with pytest.raises(InvalidRecord, match=rf"app.gz, line {line}: is corrupt.*copy it again"):
        read_trace(file)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress, zstd])
def test_what_ends_too_soon_is_unfinished(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    file = tmp_path / "app"
    file.write_bytes(compress(as_lines(spark_events() * 300).encode())[:-3])
    assert "ends in the middle" in read_trace(file).notes[0]


@pytest.mark.parametrize(("keep", "message"), [(-3, "ends in the middle"), (None, "is corrupt")])
def test_a_compressed_rumen_trace_that_is_broken(
    tmp_path: Path, keep: int | None, message: str
) -> None:
    packed = gzip.compress(rumen_text().encode())
    file = tmp_path / "days-trace.json.gz"
    file.write_bytes(packed[:keep] if keep else flipped(packed, -6))
    with pytest.raises(InvalidRecord, match=f"days-trace.json.gz.*{message}"):
        read_trace(file)


def replaced(event: dict[str, Any], path: tuple[str, ...], number: str) -> str:
    """The event as JSON with something in place of one of its numbers."""
    event = json.loads(json.dumps(event))
    inner = event
    for key in path[:-1]:
        inner = inner.setdefault(key, {})
    inner[path[-1]] = "@"
    return json.dumps(event).replace('"@"', number)


SPARK_NUMBERS = [
    (1, ("Timestamp",)),
    (1, ("Executor Info", "Total Cores")),
    (2, ("Timestamp",)),
    (3, ("time",)),
    (4, ("Job ID",)),
    (4, ("Submission Time",)),
    (5, ("Stage ID",)),
    (5, ("Task Info", "Index")),
    (5, ("Task Info", "Launch Time")),
    (5, ("Task Info", "Finish Time")),
    (5, ("Task Metrics", "Executor Run Time")),
    (5, ("Task Metrics", "Input Metrics", "Bytes Read")),
    (5, ("Task Metrics", "Output Metrics", "Bytes Written")),
    (5, ("Task Metrics", "Shuffle Read Metrics", "Remote Bytes Read")),
    (5, ("Task Metrics", "Shuffle Read Metrics", "Fetch Wait Time")),
    (5, ("Task Metrics", "Shuffle Write Metrics", "Shuffle Bytes Written")),
    (9, ("Completion Time",)),
    (14, ("time",)),
    (15, ("Timestamp",)),
]


@pytest.mark.parametrize("number", IMPOSSIBLE)
@pytest.mark.parametrize(("at", "path"), SPARK_NUMBERS)
def test_an_impossible_number_of_a_spark_log(
    tmp_path: Path, at: int, path: tuple[str, ...], number: str
) -> None:
    lines = as_lines(spark_events()).splitlines()
    lines[at] = replaced(spark_events()[at], path, number)
    file = written(tmp_path, "app", "\n".join(lines))
    if path[-1] in ("Job ID", "Stage ID", "Index") and number in ("1e300", "9" * 400):
        read_trace(file)  # a name like any other
        return
    with pytest.raises(
        InvalidRecord, match=rf"app, line {at + 1}: .*SparkListener.*delete the line"
    ):
        read_trace(file)


def test_a_task_that_was_launched_before_1970(tmp_path: Path) -> None:
    lines = as_lines(spark_events()).splitlines()
    lines[5] = replaced(spark_events()[5], ("Task Info", "Launch Time"), "-1")
    with pytest.raises(InvalidRecord, match=r"app, line 6: .*Launch Time must be .*got -1"):
        read_trace(written(tmp_path, "app", "\n".join(lines)))


@pytest.mark.parametrize("path", [path for at, path in SPARK_NUMBERS if "Metrics" in str(path)])
def test_negative_bytes_of_a_spark_log(tmp_path: Path, path: tuple[str, ...]) -> None:
    lines = as_lines(spark_events()).splitlines()
    lines[5] = replaced(spark_events()[5], path, "-5")
    with pytest.raises(InvalidRecord, match=rf"app, line 6: .*{path[-1]} must be .*got -5"):
        read_trace(written(tmp_path, "app", "\n".join(lines)))


@pytest.mark.parametrize("number", [*IMPOSSIBLE, "-5"])
@pytest.mark.parametrize("key", ["submitTime", "finishTime", "startTime", "hdfsBytesRead"])
def test_an_impossible_number_of_a_rumen_trace_counts_as_unknown(
    tmp_path: Path, key: str, number: str
) -> None:
    bad = json.dumps(rumen_job(1, 10_000, [1000], [500])).replace(f'"{key}": ', f'"{key}": @', 1)
    before, _, after = bad.partition("@")
    rest = after[after.index(",") :]
    text = f"{before}{number}{rest}\n{json.dumps(rumen_job(2, 12_000, [3000], []))}"
    trace = read_trace(written(tmp_path, "days-trace.json", text))
    assert trace.workload.arrivals[-1].query.id == "job_2"
    assert all(0 < task.seconds < 100 for task in trace.tasks)


def test_a_number_of_thousands_of_digits(tmp_path: Path) -> None:
    text = rumen_text().replace("10000", "9" * 5000)
    with pytest.raises(InvalidRecord, match=r"days-trace.json, line 1: cannot be read"):
        read_trace(written(tmp_path, "days-trace.json", text))


def test_a_job_that_is_there_twice_names_both_lines(tmp_path: Path) -> None:
    text = "\n".join(json.dumps(rumen_job(1, at, [1000], [])) for at in (0, 5000))
    with pytest.raises(
        InvalidRecord, match=r"days-trace.json, line 2: the job 'job_1' .*first on line 1; delete"
    ):
        read_trace(written(tmp_path, "days-trace.json", text))


def sls_job(**more: Any) -> str:
    task = {"container.start.ms": 0, "container.end.ms": 1000} | more.pop("task", {})
    return json.dumps({"job.start.ms": 0, "job.id": "a", "job.tasks": [task], **more})


def test_an_sls_job_that_is_there_twice(tmp_path: Path) -> None:
    with pytest.raises(InvalidRecord, match=r"sls.json, line 2: the job 'a' is there twice"):
        read_trace(written(tmp_path, "sls.json", f"{sls_job()}\n{sls_job()}"))


def test_copies_of_sls_jobs_and_containers(tmp_path: Path) -> None:
    text = sls_job(**{"job.count": 2, "task": {"count": 3}})
    arrivals = read_trace(written(tmp_path, "sls.json", text)).workload.arrivals
    assert [(a.query.id, a.query.jobs[0].maps) for a in arrivals] == [("a-1", 3), ("a-2", 3)]


@pytest.mark.parametrize("count", [1e300, float("inf"), float("nan"), 10**12, -3])
def test_more_copies_than_anybody_simulates(tmp_path: Path, count: float) -> None:
    for more in ({"job.count": count}, {"task": {"count": count}}):
        with pytest.raises(InvalidRecord, match=r"sls.json, line 1: .*count must be a whole"):
            read_trace(written(tmp_path, "sls.json", sls_job(**more)))


def test_a_swim_job_of_more_bytes_than_there_are(tmp_path: Path) -> None:
    file = written(tmp_path, "day.tsv", f"job0\t0\t0\t{10**30}\t0\t0\n")
    with pytest.raises(InvalidRecord, match=r"day.tsv, line 1: .*64 bits"):
        read_trace(file)


@pytest.mark.parametrize("block", ["1", "1e-300"])
def test_blocks_so_small_that_there_is_no_end_of_maps(tmp_path: Path, block: str) -> None:
    file = written(tmp_path, "day.tsv", f"job0\t0\t0\t{10**12}\t0\t0\n")
    with pytest.raises(InvalidRecord, match=r"day.tsv, line 1: blocks of .* --trace block=…"):
        use_trace(file, parse_use(f"block={block}"))


def decima(**stage: Any) -> str:
    waves = {"first_wave": {"2": [100]}, "rest_wave": {"2": []}}
    stages = [{"stage": 0, "num_tasks": 1, **waves, **stage}]
    return json.dumps({"queries": [{"query": 6, "edges": [], "stages": stages}]})


def edged(edges: Any) -> str:
    return decima().replace('"edges": []', f'"edges": {json.dumps(edges)}')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (decima(num_tasks=float("inf")), "query 6: stage 0: num_tasks must be .*, got Infinity"),
        (decima(first_wave={"2": [float("nan")]}), "stage 0: a duration with 2 .*, got NaN"),
        (decima(first_wave={"2": [float("inf")]}), "stage 0: a duration .*, got Infinity"),
        (decima(first_wave={"2": [-3]}), "stage 0: a duration .* milliseconds, got -3"),
        (decima(first_wave={"2": ["x"]}), 'stage 0: a duration .*, got "x"'),
        (decima(first_wave={"2": []}), "stage 0: has no durations with 2 executors"),
        (decima(first_wave={"2": 5}), "stage 0: first_wave of 2 executors must be a list, got 5"),
        (decima(first_wave={"two": [5]}), 'stage 0: first_wave has "two" where a number of exec'),
        (decima(first_wave={"9" * 5000: [5]}), "stage 0: first_wave has .*… where a number of"),
        (decima(first_wave={}, rest_wave={}), "stage 0: has no measured tasks"),
        (decima(first_wave=[3]), r"stage 0: first_wave must be an object .*, got \[3\]"),
        (decima().replace("rest_wave", "rest"), "stage 0: rest_wave .*, and is not there"),
        (decima(stage=float("inf")), "query 6: stage must be a whole number, got Infinity"),
        (decima().replace('"stages": [{', '"stages": [3, {'), 'an object with "stage" .*, got 3'),
        (edged([[0, 0]]), "query 6: the edges lead in a circle, from stage 0 to 0"),
        (edged([[99, 0]]), r"query 6: the edge \[99, 0\] names the stage 99: there is none"),
        (edged([[0, "0"]]), r'query 6: the edge \[0, "0"\] names the stage "0": there is none'),
        (edged([3]), "query 6: an edge is a pair of stages, got 3"),
        (edged("x"), 'query 6: edges must be a list, got "x"'),
        (decima().replace('"query": 6', '"query": Infinity'), "query number 1 .* got Infinity"),
        (decima().replace('"queries": [', '"queries": [7, '), "query number 1 .*, got 7"),
    ],
)
def test_impossible_stages_of_decima(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidRecord, match=rf"tpch.json: .*{message}") as refused:
        read_trace(written(tmp_path, "tpch.json", text))
    assert not any(name in str(refused.value) for name in ("Error", "Invalid"))


@pytest.mark.parametrize("what", ["query", "stage"])
def test_queries_and_stages_of_decima_that_are_there_twice(tmp_path: Path, what: str) -> None:
    data = json.loads(decima())
    inside = data["queries"] if what == "query" else data["queries"][0]["stages"]
    inside.append(inside[0])
    message = {"query": "query 6: is there twice", "stage": "query 6: stage 0 is there twice"}
    with pytest.raises(InvalidRecord, match=message[what]):
        read_trace(written(tmp_path, "tpch.json", json.dumps(data)))


def test_stages_of_decima_that_wait_for_one_another(tmp_path: Path) -> None:
    data = json.loads(edged([[0, 1], [1, 0]]))
    stages = data["queries"][0]["stages"]
    stages.append({**stages[0], "stage": 1})
    with pytest.raises(InvalidRecord, match=r"a circle, from stage (0 to 1 to 0|1 to 0 to 1)"):
        read_trace(written(tmp_path, "tpch.json", json.dumps(data)))


@pytest.mark.parametrize(
    "values",
    [{"taskid": 4}, {"taskid": "task_1_m_0", "splitLocations": 5}],
)
def test_an_odd_event_of_a_job_history(tmp_path: Path, values: Any) -> None:
    lines = ["Avro-Json", "{}", json.dumps({"type": "TASK_STARTED", "event": {"x": values}})]
    file = written(tmp_path, "job.jhist", "\n".join(lines))
    with pytest.raises(InvalidRecord, match=r"job.jhist, line 3: .* is not as Hadoop writes it"):
        read_trace(file)


def test_names_of_a_job_history_that_are_numbers(tmp_path: Path) -> None:
    task = {"taskid": "task_1_m_0", "taskType": "MAP", "attemptId": 5}
    events = [
        ("JOB_SUBMITTED", {"jobid": "job_1", "userName": 7, "jobName": [], "submitTime": 0}),
        ("MAP_ATTEMPT_STARTED", {**task, "startTime": 10}),
        ("MAP_ATTEMPT_FINISHED", {**task, "finishTime": 20}),
    ]
    lines = [json.dumps({"type": kind, "event": {"x": values}}) for kind, values in events]
    file = written(tmp_path, "job.jhist", "\n".join(["Avro-Json", "{}", *lines]))
    (arrival,) = read_trace(file).workload.arrivals
    assert arrival.query.tenant == "7"


@pytest.mark.parametrize("text", ['{"rack": "r", "nodes": 5}', '{"name": "<root>", "children": 5}'])
def test_an_odd_topology(tmp_path: Path, text: str) -> None:
    nodes = written(tmp_path, "nodes.json", text)
    file = written(tmp_path, "days-trace.json", rumen_text())
    with pytest.raises(InvalidRecord, match=r"nodes.json, line 1: racks and hosts"):
        use_trace(file, parse_use(f"topology={nodes}"))


def broken_bz2(folder: Path) -> None:
    (folder / "backup.bz2").write_bytes(b"BZh9" + b"nonsense" * 9)


def test_a_broken_file_beside_logs_is_named_and_left_out(tmp_path: Path) -> None:
    written(tmp_path, "app-1", as_lines(spark_events()))
    events = spark_events()
    events[5] = spark_task(0, 0, 2200, 3200, read=-1)
    written(tmp_path, "app-2", as_lines(events))
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    broken_bz2(tmp_path)
    trace = read_trace(tmp_path)
    assert [arrival.query.id for arrival in trace.workload.arrivals] == ["sql7"]
    left_out = [note for note in trace.notes if note.startswith("left out, since")]
    for part, note in zip(("app-2, line 6", "backup.bz2", "gone"), left_out, strict=True):
        assert part in note


def test_a_file_of_another_kind_beside_logs_is_named_and_left_out(tmp_path: Path) -> None:
    written(tmp_path, "app-1", as_lines(spark_events()))
    for name, text in ((".app-1.crc", "x"), ("_SUCCESS", ""), ("costs.csv", "a,b\n1,2\n")):
        written(tmp_path, name, text)
    note = read_trace(tmp_path).notes[0]
    assert note == "left out, since no event log of Spark's: costs.csv"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": {"queries": 3}}', r"foreign.json: is JSON, but neither a trace nor a workload"),
        ("[]", r"is JSON, but neither"),
        ('{"a": ', r"is no trace that can be read"),
        ('{"name": "w", "queries": []}', r"workload file and no trace; .*foreign.json$"),
        ('{"workloads": [], "job_classes": []}', r"and has none, so that it cannot be read$"),
    ],
)
def test_json_that_is_no_trace(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidRecord, match=message):
        use_trace(written(tmp_path, "foreign.json", text), parse_use(""))


def test_a_workload_file_takes_no_trace_option(tmp_path: Path) -> None:
    file = written(tmp_path, "my load.json", '{"queries": []}')
    with pytest.raises(InvalidRecord, match=r"compare '.*my load.json', without --trace$"):
        use_trace(file, parse_use("load=0.9"))


def test_where_a_compressed_file_of_one_line_ends(tmp_path: Path) -> None:
    file = tmp_path / "tpch.json.gz"
    text = f"{decima()[:-1]}, {' ' * 200_000}}}"
    file.write_bytes(gzip.compress(text.encode())[:-12])
    with pytest.raises(InvalidRecord, match=r"tpch.json.gz: ends in the middle \(on line 1: "):
        read_trace(file)


def test_a_folder_in_which_nothing_can_be_read(tmp_path: Path) -> None:
    broken_bz2(tmp_path)
    with pytest.raises(InvalidRecord, match=r"no Spark event log in this folder.*backup.bz2"):
        read_trace(tmp_path)

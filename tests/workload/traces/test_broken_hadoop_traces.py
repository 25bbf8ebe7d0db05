"""Hadoop's files that are damaged or say too little: an error or a note that names the line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from trace_files import history_lines, rumen_job, rumen_text, written

from queryard.core.errors import InvalidRecord
from queryard.sim import Conditions, simulate
from queryard.workload.traces import Trace, is_trace, parse_use, read_trace, use_trace


def noted(trace: Trace, part: str) -> bool:
    return any(part in note for note in trace.notes)


@pytest.mark.parametrize(
    ("line", "old", "new", "message"),
    [
        (5, 'FINISH_TIME="4000"', 'FINISH_TIME="4000', r"after FINISH_TIME, got '/r1/n2"),
        (5, 'TASK_STATUS="S', "TASK_STATUS=S", "after TASK_ATTEMPT_ID, got 'TASK_STATUS=SUCC"),
        (4, 'START_TIME="2000"', 'START_TIME="2000', "after TASK_ATTEMPT_ID, got 'START_TIME="),
        (2, 'USER="ada" ', 'USER="ada"', "after USER, got 'SUBMIT_TIME="),
        (2, "JOBID=", "jobid=", "of a Job .* are expected in it, got 'jobid="),
        (2, "JOBID=", "JOBD=", "a Job without JOBID; is the key misspelt"),
        (3, "TASKID=", "TASKD=", "a Task without TASKID"),
        (4, "TASK_ATTEMPT_ID=", "ATTEMPT_ID=", "a MapAttempt without TASK_ATTEMPT_ID"),
        (5, "TASK_STATUS=", "TASK_STATS=", "a MapAttempt has ended and has no TASK_STATUS"),
    ],
)
def test_a_damaged_record_of_a_job_history(
    tmp_path: Path, line: int, old: str, new: str, message: str
) -> None:
    lines = history_lines()
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new)
    with pytest.raises(InvalidRecord, match=rf"job_1, line {line}: .*{message}"):
        read_trace(written(tmp_path, "job_1", "\n".join(lines)))


def test_a_damaged_record_of_several_lines_is_named_by_its_first(tmp_path: Path) -> None:
    lines = history_lines()
    failed = 'Task TASKID="task_1_m_1" TASK_TYPE="MAP" TASK_STATUS="FAILED"'
    lines[5:5] = [f'{failed} ERROR="out of', 'memory" .']
    assert len(read_trace(written(tmp_path, "job_1", "\n".join(lines))).tasks) == 1
    lines[6] = "memory .\n" + lines[6]
    with pytest.raises(InvalidRecord, match=r"line 6: .* after TASK_STATUS, got 'ERROR="):
        read_trace(written(tmp_path, "job_1", "\n".join(lines)))


def test_a_record_that_ends_inside_of_a_key_is_read_up_to_there(tmp_path: Path) -> None:
    lines = history_lines()
    lines.insert(5, 'Task TASKID="task_1_m_0" TASK_TY .')
    trace = read_trace(written(tmp_path, "job_1", "\n".join(lines)))
    assert "1 record is cut short (line 6), and read up to there" in trace.notes
    assert len(trace.tasks) == 1
    lines.insert(6, "Task TASK .")
    trace = read_trace(written(tmp_path, "job_1", "\n".join(lines)))
    assert noted(trace, "2 records are cut short (the first: line 6)")


def other_map(line: str) -> str:
    return line.replace("_1_m_0", "_1_m_1")


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        (4, 'START_TIME="2000"', 'START_TIME="x2000"'),
        (4, "START_TIME", "STRT_TIME"),
        (5, 'FINISH_TIME="4000"', 'FINISH_TIME="x4000"'),
        (5, 'FINISH_TIME="4000"', 'FINISH_TIME="1999"'),
        (5, "FINISH_TIME", "FINISHED"),
    ],
)
def test_a_map_without_sound_times_is_named_by_the_line_of_what_is_wrong(
    tmp_path: Path, line: int, old: str, new: str
) -> None:
    lines = history_lines()
    good = [other_map(line) for line in lines[2:5]]
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new)
    trace = read_trace(written(tmp_path, "job_1", "\n".join(lines[:5] + good + lines[5:])))
    said = f"1 map without sound times is left out (task_1_m_0, line {line})"
    assert said in trace.notes
    assert len(trace.tasks) == 1


def test_of_several_maps_that_never_succeeded_the_first_is_named(tmp_path: Path) -> None:
    lines = [line.replace('STATUS="SUCCESS"', 'STATUS="FAILED"') for line in history_lines()[:5]]
    lines += [other_map(line) for line in lines[2:]]
    lines += [line.replace("_1_m_0", "_1_m_2") for line in history_lines()[2:]]
    trace = read_trace(written(tmp_path, "job_1", "\n".join(lines)))
    said = "2 maps that never succeeded are left out (the first: task_1_m_0, line 5)"
    assert said in trace.notes


def avro(*events: tuple[str, dict[str, Any]], schema: str = '{"type": "record"}') -> str:
    lines = [json.dumps({"type": kind, "event": {"x": values}}) for kind, values in events]
    return "\n".join(["Avro-Json", schema, *lines])


def test_a_map_of_a_jhist_without_sound_times(tmp_path: Path) -> None:
    task = {"taskid": "task_1_m_0", "taskType": "MAP", "attemptId": "a"}
    text = avro(
        ("JOB_SUBMITTED", {"jobid": "job_1", "submitTime": 0}),
        ("MAP_ATTEMPT_STARTED", {**task, "startTime": 10}),
        ("MAP_ATTEMPT_FINISHED", {**task, "finishTime": "x"}),
    )
    trace = read_trace(written(tmp_path, "job.jhist", text))
    assert "1 map without sound times is left out (task_1_m_0, line 5)" in trace.notes
    assert noted(trace, "job (no end) without a task that succeeded is left out (job_1, line 3)")


@pytest.mark.parametrize(
    "text", ["Avro-Json", "Avro-Json\n", "Avro-Json\n\n", avro(schema='{"type": "rec')]
)
def test_a_jhist_that_is_cut_off_inside_of_its_schema(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidRecord, match=r"job.jhist, line 2: .*schema.*; is the file cut off"):
        read_trace(written(tmp_path, "job.jhist", text))


def test_a_jhist_in_binary_avro_says_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "job.jhist"
    file.write_bytes(b'Avro-Binary\n{"type": "record"}\n\x00\xff\xfe\x02job_1\x80')
    assert is_trace(file)
    message = r"job.jhist: .*binary Avro.*Rumen.*mapreduce.jobhistory.jhist.format=json"
    with pytest.raises(InvalidRecord, match=message):
        read_trace(file)


def sls(*tasks: dict[str, Any]) -> str:
    return json.dumps({"job.start.ms": 0, "job.id": "a", "job.tasks": list(tasks)})


SOUND = {"container.start.ms": 1000, "container.end.ms": 3000}


@pytest.mark.parametrize(
    "odd",
    [
        {"container.start.ms": 1000, "container.ende.ms": 3000},
        {"container.begin.ms": 1000, "container.end.ms": 3000},
        {"container.start.ms": 3000, "container.end.ms": 1000},
        {"container.length.ms": 3000},
        {},
    ],
)
def test_an_sls_container_without_sound_times_is_named(tmp_path: Path, odd: dict[str, int]) -> None:
    file = written(tmp_path, "sls.json", sls(SOUND).replace('"a"', '"b"') + "\n" + sls(SOUND, odd))
    trace = read_trace(file)
    said = "1 map without sound times is left out (container 2 of a, in the job on line 2)"
    assert said in trace.notes
    assert [task.seconds for task in trace.tasks] == [2.0, 2.0]


@pytest.mark.parametrize("key", ["container.duration.ms", "duration.ms"])
def test_how_long_an_sls_container_takes_may_be_all_that_is_said(tmp_path: Path, key: str) -> None:
    text = sls({key: 5000}, {**SOUND, key: 4000})
    trace = read_trace(written(tmp_path, "sls.json", text))
    assert [task.seconds for task in trace.tasks] == [5.0, 4.0]
    assert not noted(trace, "left out (")


def test_a_map_of_a_rumen_trace_without_sound_times_is_named(tmp_path: Path) -> None:
    job = rumen_job(2, 5000, [1000, 1000], [])
    job["mapTasks"][1]["attempts"][0]["finishTime"] = 17
    text = f"{json.dumps(rumen_job(1, 0, [1000], []))}\n{json.dumps(job)}"
    trace = read_trace(written(tmp_path, "days-trace.json", text))
    said = "1 map without sound times is left out (task_2_m_1, in the job on line 2)"
    assert said in trace.notes


NOT_REPLAYED = "is not replayed: placement, remote_penalty and rack_penalty have no effect"


def test_that_places_of_blocks_are_not_replayed_is_said_where_they_are_known(
    tmp_path: Path,
) -> None:
    """And it is true: whatever reading from afar costs, the replay is the same."""
    jobs = written(tmp_path, "days-trace.json", rumen_text())
    assert noted(use_trace(jobs, parse_use("")), f"where blocks lay {NOT_REPLAYED}")
    history = written(tmp_path, "job_1", "\n".join(history_lines()))
    assert noted(read_trace(history), f"where blocks lay {NOT_REPLAYED}")
    workload = read_trace(jobs).workload
    ends = [
        simulate(
            workload,
            workload.nodes,
            {"order": "fifo", "placement": "locf"},
            conditions=Conditions(remote_penalty=penalty, rack_penalty=penalty),
        ).ends
        for penalty in (0.0, 2.0)
    ]
    assert ends[0] == ends[1]
    unknown = json.loads(json.dumps(rumen_job(1, 0, [1000], [])))
    del unknown["mapTasks"][0]["preferredLocations"]
    trace = read_trace(written(tmp_path, "other-trace.json", json.dumps(unknown)))
    assert not noted(trace, "is not replayed")


def test_that_hosts_of_sls_containers_are_not_replayed_is_said(tmp_path: Path) -> None:
    text = sls({**SOUND, "container.host": "/rack1/n1"})
    assert noted(read_trace(written(tmp_path, "sls.json", text)), NOT_REPLAYED)
    assert not noted(read_trace(written(tmp_path, "sls.json", sls(SOUND))), NOT_REPLAYED)

"""What is made of Spark's stages and executors: names that come again, nodes that were there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trace_files import SQL, as_lines, spark_events, spark_job, spark_task, stage_info, written

from queryard.workload.traces import Trace, read_trace


def statement(number: int, at: int, first_stage: int) -> list[dict[str, Any]]:
    """The same two stages whenever it runs, under Spark's next numbers."""
    scan, join = first_stage, first_stage + 3  # some were skipped in between
    infos = [stage_info(scan, [], scan * 10), stage_info(join, [scan], join * 10)]
    done = {"Completion Time": at + 900, "Job Result": {"Result": "JobSucceeded"}}
    return [
        {"Event": f"{SQL}Start", "executionId": number, "description": "daily", "time": at},
        spark_job(number, at, infos, sql_execution_id=str(number)),
        spark_task(scan, 0, at, at + 400),
        spark_task(join, 0, at + 500, at + 900),
        {"Event": "SparkListenerJobEnd", "Job ID": number, **done},
        {"Event": f"{SQL}End", "executionId": number, "time": at + 900},
    ]


def test_a_statement_that_comes_again_has_the_same_jobs(tmp_path: Path) -> None:
    frame = spark_events()
    events = [*frame[:3], *statement(1, 2000, 0), *statement(2, 4000, 17), frame[-1]]
    trace = read_trace(written(tmp_path, "log", as_lines(events)))
    first, again = (arrival.query for arrival in trace.workload.arrivals)
    assert first.class_name == again.class_name == "daily"
    assert [(job.name, job.upstream) for job in first.jobs] == [("s0", ()), ("s1", ("s0",))]
    assert first.jobs == again.jobs
    assert [task.job for task in trace.tasks] == ["sql1/s0", "sql1/s1", "sql2/s0", "sql2/s1"]


def test_thousands_of_skipped_stages_between_two_that_ran(tmp_path: Path) -> None:
    last = 5000
    infos = [stage_info(number, [number - 1] if number else [], number) for number in range(last)]
    events = [
        *spark_events()[:3],
        spark_job(0, 2000, infos),
        spark_task(0, 0, 2000, 3000),
        spark_task(last - 1, 0, 3000, 4000),
    ]
    (arrival,) = read_trace(written(tmp_path, "log", as_lines(events))).workload.arrivals
    assert [job.upstream for job in arrival.query.jobs] == [(), ("s0",)]


def with_executors(
    folder: Path, stays: list[tuple[str, int, int | None]], ends: list[int]
) -> Trace:
    """Executors of four cores (host, came, left), each with a task of a second that ends then."""
    events = [spark_events()[0]]
    start, end = spark_events()[2], spark_events()[-1]
    events += [start, spark_job(0, 1000, [stage_info(0, [], 0)])]
    for number, (host, came, left) in enumerate(stays):
        about = {"Timestamp": came, "Executor ID": str(number)}
        info = {"Host": host, "Total Cores": 4}
        events.append({"Event": "SparkListenerExecutorAdded", **about, "Executor Info": info})
        task = spark_task(0, number, ends[number] - 1000, ends[number])
        task["Task Info"] |= {"Host": host, "Executor ID": str(number)}
        events.append(task)
        if left is not None:
            gone = {**about, "Timestamp": left}
            events.append({"Event": "SparkListenerExecutorRemoved", **gone})
    return read_trace(written(folder, "log", as_lines([*events, end | {"Timestamp": 90_000}])))


def shape(trace: Trace) -> dict[str, int]:
    return {node.id: node.slots for node in trace.workload.nodes}


def came_and_went(trace: Trace) -> list[str]:
    return [note for note in trace.notes if "came and went" in note]


def test_hosts_that_were_never_there_together_are_not_added_up(tmp_path: Path) -> None:
    stays = [("a", 1000, 11_000), ("b", 1000, 6000), ("c", 6000, None)]
    trace = with_executors(tmp_path, stays, [2000, 6000, 21_000])
    assert shape(trace) == {"a": 4, "b": 4}
    # 8 slots for 10 s of the 20 s from the first task to the last, then 4.
    (note,) = came_and_went(trace)
    assert "the 8 slots that were there at most" in note
    assert "there were 6.0 on average" in note


def test_executors_that_stay_need_no_note(tmp_path: Path) -> None:
    trace = with_executors(tmp_path, [("a", 500, None), ("a", 600, None)], [3000, 4000])
    assert shape(trace) == {"a": 8}
    assert not came_and_went(trace)


def later_events(later: int) -> list[dict[str, Any]]:
    """The usual application, so many milliseconds later."""
    events = spark_events()
    for event in events:
        for key in ("Timestamp", "time", "Submission Time", "Completion Time"):
            if key in event:
                event[key] += later
        for key in ("Launch Time", "Finish Time"):
            if "Task Info" in event:
                event["Task Info"][key] += later
    events[1] |= {"Timestamp": 1000 + later}
    return events


def test_executors_leave_with_their_application(tmp_path: Path) -> None:
    for name, later in (("app-1", 0), ("app-2", 10_000)):
        written(tmp_path, name, as_lines(later_events(later)).replace("app-1", name))
    trace = read_trace(tmp_path)
    assert shape(trace) == {"h1": 2}
    # From the first task to the last are 13.3 s; one is there for 4.8 s of them, one for 4.5 s.
    assert f"{2 * (4.8 + 4.5) / 13.3:.1f} on average" in came_and_went(trace)[0]


def test_executors_of_a_log_that_is_cut_leave_at_its_last_event(tmp_path: Path) -> None:
    written(tmp_path, "app-1", as_lines(later_events(0)[:-1]))
    written(tmp_path, "app-2", as_lines(later_events(10_000)).replace("app-1", "app-2"))
    trace = read_trace(tmp_path)
    assert shape(trace) == {"h1": 2}
    # As above, but for the last second of the first one: its last event is at 6 s.
    assert f"{2 * (3.8 + 4.5) / 13.3:.1f} on average" in came_and_went(trace)[0]


def test_what_is_left_out_of_several_logs_is_counted_in_one_note(tmp_path: Path) -> None:
    for app in ("app-1", "app-2"):
        idle = [spark_job(number, 6500, [stage_info(number, [], number)]) for number in (8, 9)]
        events = [*spark_events()[:-1], *idle, spark_events()[-1]]
        written(tmp_path, app, as_lines(events).replace("app-1", app))
    assert "4 queries of which no task had ended are left out" in read_trace(tmp_path).notes


def test_tasks_that_finished_before_their_launch_are_told_of(tmp_path: Path) -> None:
    events = spark_events()
    events[7] = spark_task(0, 1, 4700, 2700)
    trace = read_trace(written(tmp_path, "log", as_lines(events)))
    assert len(trace.tasks) == 2
    assert "tasks that finished before their launch and are left out: 1" in trace.notes


@pytest.mark.parametrize("cores", [0, -4])
def test_executors_without_cores_do_not_count(tmp_path: Path, cores: int) -> None:
    events = spark_events()
    events[1]["Executor Info"]["Total Cores"] = cores
    trace = read_trace(written(tmp_path, "log", as_lines(events)))
    assert shape(trace) == {"executor": 2}

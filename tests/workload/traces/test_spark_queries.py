"""Which of Spark's jobs and stages make a query: by job group, and where events are missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trace_files import SQL, as_lines, spark_events, spark_job, spark_task, stage_info, written

from queryard.sim import Conditions, simulate
from queryard.workload.traces import Trace, read_trace

Events = list[dict[str, Any]]


def read(folder: Path, events: Events) -> Trace:
    return read_trace(written(folder, "log", as_lines(events)))


def application(events: Events) -> Events:
    """Begins at 1 s and ends at 1,000 s."""
    frame = spark_events()
    return [*frame[:3], *events, frame[-1] | {"Timestamp": 1_000_000}]


def submitted(info: dict[str, Any], at: int, **properties: str) -> dict[str, Any]:
    job = spark_job(0, at, [], **properties)
    return {
        "Event": "SparkListenerStageSubmitted",
        "Stage Info": info | {"Submission Time": at},
        "Properties": job["Properties"],
    }


def shape(trace: Trace) -> dict[str, list[tuple[int, tuple[str, ...]]]]:
    return {
        arrival.query.id: [(job.maps, job.upstream) for job in arrival.query.jobs]
        for arrival in trace.workload.arrivals
    }


def notes_with(trace: Trace, words: str) -> list[str]:
    return [note for note in trace.notes if words in note]


def without_second_start(**properties: str) -> Events:
    """The usual application without the start of its second job, which had listed two stages."""
    events = spark_events()
    info = stage_info(2, [1], 9)
    # RDD 7 is of the same stage, RDD 5 what stage 0 has computed.
    info["RDD Info"] = [{"RDD ID": 7, "Parent IDs": [5]}, {"RDD ID": 9, "Parent IDs": [7]}]
    events[10] = submitted(info, 4900, **properties)
    return events


def test_a_stage_without_a_job_is_of_the_execution_that_it_names(tmp_path: Path) -> None:
    lost = read(tmp_path, without_second_start(sql_execution_id="7", scheduler_pool="reports"))
    whole = read(tmp_path, spark_events())
    assert lost.workload.arrivals == whole.workload.arrivals
    assert (lost.tasks, lost.responses_s) == (whole.tasks, whole.responses_s)
    assert shape(lost) == {"sql7": [(2, ()), (1, ("s0",))]}
    assert notes_with(lost, "stages that no job lists go to the query they name")[0][-3:] == ": 1"
    assert not notes_with(whole, "no job lists")


def test_a_stage_without_a_job_outside_of_sql_is_a_query_with_all_it_needs(tmp_path: Path) -> None:
    events = [
        submitted(stage_info(3, [], 20), 5600),
        spark_task(3, 0, 5600, 5700),
        submitted(stage_info(4, [], 21), 5600),
        spark_task(4, 0, 5600, 5800),
        submitted(stage_info(5, [3, 4], 22), 5800),
        spark_task(5, 0, 5800, 5900),
    ]
    frame = spark_events()
    trace = read(tmp_path, [*frame[:-1], *events, frame[-1]])
    assert shape(trace)["stage5"] == [(1, ()), (1, ()), (1, ("s0", "s1"))]
    assert trace.responses_s["stage5"] == pytest.approx(0.3)
    assert notes_with(trace, "go to the query they name")[0][-3:] == ": 3"


def test_tasks_of_unknown_origin_are_counted(tmp_path: Path) -> None:
    events = spark_events()
    del events[10]
    trace = read(tmp_path, events)
    assert shape(trace) == {"sql7": [(2, ())]}
    assert "1 task of stages that no job lists is left out" in trace.notes


def test_without_sql_they_are_of_the_application(tmp_path: Path) -> None:
    events = [event for event in spark_events() if not event["Event"].startswith(SQL)]
    for event in events:
        event.pop("Properties", None)
    whole = read(tmp_path, events)
    del events[9]  # the start of the second job
    lost = read(tmp_path, events)
    assert shape(lost) == shape(whole) == {"app": [(2, ()), (1, ("s0",))]}
    assert not notes_with(lost, "left out")
    # The end of the second job is not known for its own, but that of its last task is.
    assert whole.responses_s["app"] - lost.responses_s["app"] == pytest.approx(0.1)


def test_an_application_of_which_no_job_has_a_start(tmp_path: Path) -> None:
    events = [event for event in spark_events() if event["Event"] != "SparkListenerJobStart"]
    events = [event for event in events if not event["Event"].startswith(SQL)]
    (jobs,) = shape(read(tmp_path, events)).values()
    assert [maps for maps, _ in jobs] == [2, 1]


def test_jobs_of_an_execution_without_a_start_are_one_query(tmp_path: Path) -> None:
    events = [event for event in spark_events() if event["Event"] != f"{SQL}Start"]
    trace = read(tmp_path, events)
    assert shape(trace) == {"sql7": [(2, ()), (1, ("s0",))]}
    assert trace.responses_s == {"sql7": pytest.approx(3.5)}


def test_a_log_without_the_start_of_its_application(tmp_path: Path) -> None:
    events = spark_events()
    del events[2]
    trace = read(tmp_path, events)
    assert notes_with(trace, "the log has no SparkListenerApplicationStart")
    (arrival,) = trace.workload.arrivals
    assert arrival.query.submit_s == 0.0
    assert trace.responses_s == {"sql7": 4.0}
    assert not notes_with(read(tmp_path, spark_events()), "ApplicationStart")


def test_one_of_several_logs_without_the_start_of_its_application(tmp_path: Path) -> None:
    events = spark_events()
    del events[2]
    written(tmp_path, "one", as_lines(events))
    trace = read(tmp_path, spark_events())
    assert not notes_with(trace, "ApplicationStart")
    trace = read_trace(tmp_path)
    assert notes_with(trace, "1 of the logs have no SparkListenerApplicationStart")
    assert [arrival.query.submit_s for arrival in trace.workload.arrivals] == [1.0, 1.0]


def job(number: int, at: int, took: int = 500, **properties: str) -> Events:
    """A job of one stage and one task."""
    result = {"Job Result": {"Result": "JobSucceeded"}, "Completion Time": at + took}
    return [
        spark_job(number, at, [stage_info(number, [], number)], **properties),
        spark_task(number, 0, at, at + took),
        {"Event": "SparkListenerJobEnd", "Job ID": number, **result},
    ]


def test_the_jobs_of_a_group_are_a_query(tmp_path: Path) -> None:
    first = {"jobGroup_id": "1", "job_description": "train  a model"}
    events = [
        *job(0, 2000),
        *job(1, 3000, **first),
        *job(2, 3100, jobGroup_id="b/2"),
        *job(3, 9000, **first),
        *job(4, 9900),
    ]
    trace = read(tmp_path, application(events))
    assert shape(trace) == {
        "app": [(1, ()), (1, ("s0",))],
        "group-1": [(1, ()), (1, ("s0",))],
        "group-b-2": [(1, ())],
    }
    queries = {arrival.query.id: arrival.query for arrival in trace.workload.arrivals}
    assert [query.class_name for query in queries.values()] == ["app-1", "train a model", "b/2"]
    assert {query.tenant for query in queries.values()} == {"ada"}
    assert queries["group-1"].submit_s == 2.0
    assert trace.responses_s["group-1"] == pytest.approx(6.5)
    assert trace.counts["job groups"] == 2
    assert notes_with(trace, "job groups: 2; those with jobs outside of SQL executions form")


def test_a_group_that_comes_again_after_a_minute_is_another_query(tmp_path: Path) -> None:
    times = (2000, 61_000, 121_500, 500_000)
    events = [
        event for number, at in enumerate(times) for event in job(number, at, jobGroup_id="p|1")
    ]
    # What a group is called and what another one is called after it came again.
    events += job(9, 300_000, jobGroup_id="p|1.2")
    trace = read(tmp_path, application(events))
    submitted_s = {a.query.id: a.query.submit_s for a in trace.workload.arrivals}
    assert submitted_s == {
        "group-p|1": 1.0,
        "group-p|1.2": 120.5,
        "group-p|1.3": 499.0,
        "group-p|1.2.2": 299.0,
    }
    assert shape(trace)["group-p|1"] == [(1, ()), (1, ("s0",))]
    assert {a.query.class_name for a in trace.workload.arrivals} == {"p|1", "p|1.2"}
    assert trace.counts["job groups"] == 2


def test_a_long_job_is_no_pause(tmp_path: Path) -> None:
    events = [
        *job(0, 2000, 100_000, jobGroup_id="a"),
        *job(1, 3000, 1000, jobGroup_id="a"),
        *job(2, 110_000, jobGroup_id="a"),
    ]
    trace = read(tmp_path, application(events))
    assert shape(trace) == {"group-a": [(1, ()), (1, ()), (1, ("s0",))]}


def test_a_group_of_jobs_of_which_nothing_ran(tmp_path: Path) -> None:
    idle = spark_job(7, 900_000, [stage_info(7, [], 7)], jobGroup_id="a")
    untimed = idle | {"Job ID": 8, "Stage IDs": [8], "Stage Infos": [stage_info(8, [], 8)]}
    del untimed["Submission Time"]
    trace = read(tmp_path, application([*job(0, 2000, jobGroup_id="a"), idle, untimed]))
    assert shape(trace) == {"group-a": [(1, ())]}
    assert "1 query of which no task had ended is left out" in trace.notes


def test_groups_beside_sql(tmp_path: Path) -> None:
    """What an SQL execution runs is its own, whatever the group."""
    frame = spark_events()
    frame[4]["Properties"]["spark.jobGroup.id"] = "a"
    more = [*job(10, 6100, jobGroup_id="a"), *job(11, 6200, jobGroup_id="a"), *job(12, 6300)]
    trace = read(tmp_path, [*frame[:-1], *more, frame[-1]])
    assert shape(trace) == {
        "sql7": [(2, ()), (1, ("s0",))],
        "group-a": [(1, ()), (1, ())],
        "job12": [(1, ())],
    }
    trace = read(tmp_path, frame)
    assert "job groups: 1, with jobs of SQL executions only" in trace.notes
    assert not notes_with(read(tmp_path, spark_events()), "job group")


def test_a_stage_without_a_job_is_of_the_group_that_it_names(tmp_path: Path) -> None:
    events = [
        *job(0, 2000, jobGroup_id="a"),
        submitted(stage_info(1, [], 1), 3000, jobGroup_id="a"),
        spark_task(1, 0, 3100, 3600),
    ]
    trace = read(tmp_path, application(events))
    assert shape(trace) == {"group-a": [(1, ()), (1, ("s0",))]}
    assert trace.responses_s == {"group-a": pytest.approx(1.6)}


def test_a_stage_that_two_queries_list_runs_once(tmp_path: Path) -> None:
    shared = stage_info(0, [], 0)
    events = [
        spark_job(0, 2000, [shared, stage_info(1, [0], 1)], jobGroup_id="a"),
        spark_job(1, 2010, [shared, stage_info(2, [0], 2)], jobGroup_id="b"),
        spark_task(0, 0, 2100, 2500),
        spark_task(1, 0, 2500, 2600),
        spark_task(2, 0, 2500, 2600),
    ]
    trace = read(tmp_path, application(events))
    assert shape(trace) == {"group-a": [(1, ()), (1, ("s0",))], "group-b": [(1, ())]}


def test_a_later_attempt_of_a_stage_adds_the_partitions_that_were_left(tmp_path: Path) -> None:
    events = [spark_job(0, 2000, [stage_info(0, [], 0)])]
    for partition, index, attempt in ((0, 0, 0), (1, 1, 0), (1, 0, 1), (2, 1, 1)):
        at = 2000 + 1000 * attempt
        task = spark_task(0, index, at, at + 100 * (partition + 1))
        task["Task Info"]["Partition ID"] = partition
        events.append(task | {"Stage Attempt ID": attempt})
    (arrival,) = read(tmp_path, application(events)).workload.arrivals
    assert arrival.truth["s0"].map_times_s == (0.1, 0.2, 0.3)


def test_where_blocks_lay_is_told_and_changes_nothing(tmp_path: Path) -> None:
    events = spark_events()
    trace = read(tmp_path, events)
    assert notes_with(trace, "where blocks lay is not replayed")
    ends = [
        simulate(trace.workload, trace.workload.nodes, profile, conditions=conditions).ends
        for profile in ("fifo", "locf")
        for conditions in (None, Conditions(remote_penalty=5.0))
    ]
    assert all(end == ends[0] for end in ends)
    for event in events:
        event.get("Task Info", {}).pop("Locality", None)
    assert not notes_with(read(tmp_path, events), "where blocks lay")

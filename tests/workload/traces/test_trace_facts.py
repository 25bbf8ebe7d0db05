"""Readers against counts and sums that others have taken from public traces, where these are."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from queryard.workload.traces import ReadOptions, Trace, read_trace

TRACES = Path(__file__).parents[4] / "shared" / "traces"
FACTS: dict[str, Any] = (
    json.loads((TRACES / "facts.json").read_text()) if (TRACES / "facts.json").is_file() else {}
)
pytestmark = pytest.mark.skipif(not FACTS, reason=f"there are no public traces in {TRACES}")


@cache
def read(name: str) -> Trace:
    return read_trace(TRACES / name)


def of(*folders: str) -> list[str]:
    return [name for name in FACTS if name.startswith(folders)]


@pytest.mark.parametrize("name", of("spark-eventlogs"))
def test_a_spark_log_has_what_was_counted(name: str) -> None:
    facts, trace = FACTS[name], read(name)
    counts = trace.counts
    same = {
        "lines": "lines",
        "executors_added": "executors added",
        "executors_removed": "executors removed",
        "jobs": "jobs",
        "jobs_failed": "jobs failed",
        "stages_listed_in_job_starts": "stages listed",
        "stage_attempts_completed": "stage attempts completed",
        "stage_attempts_failed": "stage attempts failed",
        "stages_with_parents": "stages with parents",
        "sql_executions": "SQL executions",
        "task_ends": "task ends",
        "speculative": "speculative tasks",
        "task_ms_sum": "task ms",
        "executor_run_ms_sum": "executor run ms",
        "input_bytes": "input bytes",
        "shuffle_write_bytes": "shuffle write bytes",
        "shuffle_read_bytes": "shuffle read bytes",
    }
    found = {fact: counts.get(ours, 0) for fact, ours in same.items()}
    assert found == {fact: facts[fact] for fact in same}
    reasons = {reason: counts[f"task ends {reason}"] for reason in facts["task_end_reasons"]}
    assert reasons == facts["task_end_reasons"]
    places = {place: counts[f"locality {place}"] for place in facts["locality"]}
    assert places == facts["locality"]
    if facts["app_seconds"] is not None:
        assert counts["application ms"] / 1e3 == pytest.approx(facts["app_seconds"])
    else:
        assert any("not complete" in note for note in trace.notes)


def tasks_that_count(name: str) -> int:
    """Partitions of which a task succeeded, however often one did."""
    place = TRACES / name
    done = set()
    for file in sorted(place.glob("events_*")) if place.is_dir() else [place]:
        with gzip.open(file, "rt") as lines:
            for line in lines:
                if '"SparkListenerTaskEnd"' in line and '"Reason":"Success"' in line:
                    event = json.loads(line)
                    info = event["Task Info"]
                    done.add((event["Stage ID"], info.get("Partition ID", info["Index"])))
    return len(done)


@pytest.mark.parametrize("name", of("spark-eventlogs"))
def test_every_task_that_counts_is_in_one_query(name: str) -> None:
    trace = read(name)
    assert trace.workload.tasks == len(trace.tasks) == tasks_that_count(name)
    assert not any("that no job lists are left out" in note for note in trace.notes)
    for arrival in trace.workload.arrivals:
        known = {job.name for job in arrival.query.jobs}
        assert all(known.issuperset(job.upstream) for job in arrival.query.jobs)


def test_stages_that_adaptive_execution_lists_again_are_the_ones_that_ran() -> None:
    trace = read("spark-eventlogs/rapids-tools/nds_q72_dataproc_2_2.gz")
    largest = max(trace.workload.arrivals, key=lambda arrival: len(arrival.query.jobs))
    tasks = sum(job.map.tasks for job in largest.query.jobs if job.map)
    # 18 jobs list 31 stages, of which 18 ran.
    assert (len(largest.query.jobs), tasks) == (18, 1441)
    # Stages with broadcast rows are needed, too: all of them lead to the last one.
    needed = {name for job in largest.query.jobs for name in job.upstream}
    assert [job.name for job in largest.query.jobs if job.name not in needed] == ["s17"]
    assert trace.responses_s[largest.query.id] == pytest.approx(71, abs=2)
    assert sum(node.slots for node in trace.workload.nodes) == 128


def test_stages_of_a_job_without_a_start_are_in_the_execution_that_they_name() -> None:
    trace = read("spark-eventlogs/rapids-tools/tasks_executors_fail.gz")
    # The starts of jobs 20, 22, 47, 51 and 70 are missing: 299 tasks.
    assert len(trace.tasks) == 8550
    queries = {arrival.query.id: arrival.query for arrival in trace.workload.arrivals}
    jobs = {
        name: [(job.maps, job.upstream) for job in queries[name].jobs] for name in ("sql7", "sql21")
    }
    # A scan, a shuffle, and five takes of ever more partitions, one after the other.
    assert [maps for maps, _ in jobs["sql7"]] == [12, 200, 1, 4, 20, 100, 75]
    assert jobs["sql7"][3:] == [
        (4, ("s1", "s2")),
        (20, ("s1", "s3")),
        (100, ("s1", "s4")),
        (75, ("s1", "s5")),
    ]
    # The same query, of which no event is missing.
    assert jobs["sql7"] == jobs["sql21"]


def test_a_replay_has_no_more_slots_than_dynamic_allocation_ever_gave_at_once() -> None:
    trace = read("spark-eventlogs/rapids-tools/4nodes_8cores_dynamic_alloc.gz")
    # Six executors of four cores, from the 170th second of the application to the 173rd.
    assert sum(node.slots for node in trace.workload.nodes) == 24
    (note,) = [note for note in trace.notes if "came and went" in note]
    assert "the 24 slots" in note
    assert "15.1 on average" in note


@pytest.mark.parametrize("name", ["inputsls.json", "sls_dag.json"])
def test_the_jobs_that_come_with_sls(name: str) -> None:
    file = TRACES / "hadoop-sls" / name
    if not file.exists():
        pytest.skip(f"there is no {file}")
    trace = read_trace(file)
    assert trace.format == "SLS jobs"
    first, second = trace.workload.arrivals
    assert [(a.query.id, a.query.tenant, a.query.submit_s) for a in (first, second)] == [
        ("job_1", "sls_queue_1/default", 0.0),
        ("job_2", "sls_queue_2/default", 105.204),
    ]
    assert first.truth["job"].map_times_s == pytest.approx((17.043, 14.928, 17.843))
    assert second.truth["job"].map_times_s == pytest.approx((22.163, 19.589))
    assert trace.responses_s == pytest.approx({"job_1": 95.375, "job_2": 92.052})
    assert [(node.id, node.slots) for node in trace.workload.nodes] == [
        ("node1", 1),
        ("node2", 1),
        ("node3", 1),
    ]
    assert any("request.delay" in note for note in trace.notes) == (name == "sls_dag.json")


@pytest.mark.parametrize("name", [n for n in FACTS if "outcomes" in FACTS[n]])
def test_a_rumen_trace_has_what_was_counted(name: str) -> None:
    facts, counts = FACTS[name], read(name).counts
    found = {
        "jobs": counts["jobs"],
        "users": counts["users"],
        "maps": counts.get("maps", 0),
        "reduces": counts.get("reduces", 0),
        "successful_map_ms_sum": counts.get("successful map ms", 0),
        "successful_reduce_ms_sum": counts.get("successful reduce ms", 0),
        "outcomes": {outcome: counts[f"jobs {outcome}"] for outcome in facts["outcomes"]},
        "attempts": {
            key: counts[f"{key.split('/')[0]} attempts {key.split('/')[1]}"]
            for key in facts["attempts"]
        },
    }
    assert found == {key: facts[key] for key in found}


@pytest.mark.parametrize("name", of("hadoop-jobhistory"))
def test_a_job_history_has_what_was_counted(name: str) -> None:
    facts, counts = FACTS[name], read(name).counts
    for kind, count in facts.get("events", {}).items():
        assert counts[kind] == count
    for kind, count in facts.get("records", {}).items():
        assert counts[f"{kind} records"] == count


@pytest.mark.parametrize(
    ("history", "rumen"),
    [
        ("v0.20-sample-job-tracker-logs.gz", "v0.20-sample-job-tracker-logs.rumen-output.json.gz"),
        (
            "v0.20-truncated-job-tracker-log.txt",
            "v0.20-truncated-job-tracker-log.rumen-output.json",
        ),
    ],
)
def test_a_history_makes_what_rumen_makes_of_it(history: str, rumen: str) -> None:
    ours, theirs = (read(f"hadoop-jobhistory/{name}") for name in (history, rumen))
    for trace in (ours, theirs):
        assert trace.workload.arrivals
    by_id = {arrival.query.id: arrival for arrival in theirs.workload.arrivals}
    for arrival in ours.workload.arrivals:
        other = by_id[arrival.query.id]
        assert arrival.query.submit_s == other.query.submit_s
        assert arrival.query.jobs[0].map == other.query.jobs[0].map
        assert arrival.truth == other.truth
    assert ours.finished_s == theirs.finished_s


@pytest.mark.parametrize("name", of("decima-tpch"))
def test_the_stages_of_tpch_are_all_there(name: str) -> None:
    trace = read(name)
    assert {key: trace.counts[key] for key in FACTS[name]} == FACTS[name]
    jobs = [job for arrival in trace.workload.arrivals for job in arrival.query.jobs]
    assert sum(len(job.upstream) for job in jobs) == FACTS[name]["edges"]
    # A task of one stage may be missing: how many there are varied with the executors.
    assert abs(trace.workload.tasks - FACTS[name]["tasks"]) <= 2


def test_other_numbers_of_executors_are_other_measurements() -> None:
    file = TRACES / "decima-tpch" / "tpch-10g.json.gz"
    few, many = (read_trace(file, ReadOptions(executors=count)) for count in (2, 100))
    assert few.workload.tasks == pytest.approx(many.workload.tasks, abs=2)
    assert few.workload.arrivals[0].work_s != many.workload.arrivals[0].work_s


@pytest.mark.parametrize("name", of("swim-facebook"))
def test_a_swim_day_has_what_was_counted(name: str) -> None:
    facts, trace = FACTS[name], read(name)
    counts = trace.counts
    assert counts["jobs"] == len(trace.workload.arrivals) == facts["jobs"]
    for ours, fact in (("input", "input"), ("shuffle", "shuffle"), ("output", "output")):
        assert counts[f"{ours} bytes"] == facts[f"{fact}_bytes_total"]
    assert counts["jobs without a shuffle"] == facts["shuffle_zero"]
    times_s = [arrival.query.submit_s for arrival in trace.workload.arrivals]
    assert (times_s[0], times_s[-1]) == (facts["first_submit_s"], facts["last_submit_s"])
    if "distinct_input_paths" in facts:
        jobs = [arrival.query.jobs[0] for arrival in trace.workload.arrivals]
        assert len({job.inputs[0].table for job in jobs}) == facts["distinct_input_paths"]


def test_blocks_of_a_swim_day() -> None:
    file = TRACES / "swim-facebook" / "FB-2009_samples_24_times_1hr_0.tsv"
    trace = read_trace(file, ReadOptions(block_bytes=128 * 2.0**20))
    maps = sum(arrival.query.jobs[0].map.tasks for arrival in trace.workload.arrivals)  # type: ignore[union-attr]
    assert maps == 205_713

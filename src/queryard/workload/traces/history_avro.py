"""Job histories of Hadoop 2 and 3 (`.jhist`): Avro in its JSON form, an event a line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .hadoop import (
    HadoopJob,
    HadoopTask,
    first_known,
    hadoop_trace,
    no_end,
    place,
    whole_number,
)
from .model import ReadOptions, Trace
from .text import Cut, fail, lines, name_of

NAME = "Hadoop job history (2, 3)"
_OUTCOMES = {"SUCCEEDED": "SUCCESS"}
_ENDS = {"FINISHED": "SUCCESS", "FAILED": "FAILED", "KILLED": "KILLED"}


def recognises(head: str) -> bool:
    return head.startswith("Avro-Json")


def read(file: Path, options: ReadOptions) -> Trace:
    """The one job of a file."""
    jobs: dict[str, HadoopJob] = {}
    events: dict[str, int] = {}
    number = 0
    try:
        for number, line in lines(file):
            if number <= 2 or not line.strip():
                continue  # what it is, its schema, blank lines
            try:
                data = json.loads(line)
                kind, (values,) = data["type"], tuple(data["event"].values())
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                fail(file, "an event with its type is expected; is the line cut off?", number)
            try:
                events[kind] = events.get(kind, 0) + 1
                _take(jobs, kind, values)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                fail(file, f"{kind!s:.40} is not as Hadoop writes it ({error})", number)
    except Cut as error:
        fail(file, f"ends in the middle ({error})")
    found = list(jobs.values())
    trace = hadoop_trace(name_of(file), NAME, found, notes=no_end(found, number))
    return replace(trace, counts={**trace.counts, **events})


def _take(jobs: dict[str, HadoopJob], kind: str, values: Mapping[str, Any]) -> None:
    if kind.startswith("JOB_") and "jobid" in values:
        job_id = str(values["jobid"])
        job = jobs.setdefault(job_id, HadoopJob(job_id))
        _take_job(job, kind, values)
    elif "taskid" in values:
        job_id = re.sub(r"^task_(.*)_[mr]_\d+$", r"job_\1", values["taskid"])
        job = jobs.setdefault(job_id, HadoopJob(job_id))
        task = job.tasks.setdefault(values["taskid"], HadoopTask())
        task.type = str(values.get("taskType") or task.type)
        if kind == "TASK_STARTED" and values.get("splitLocations"):
            task.places = tuple(place(split) for split in values["splitLocations"].split(","))
        if "_ATTEMPT_" in kind:
            _take_attempt(task, kind.rpartition("_")[2], values)


def _take_job(job: HadoopJob, kind: str, values: Mapping[str, Any]) -> None:
    job.user = str(values.get("userName") or job.user)
    job.queue = str(values.get("jobQueueName") or job.queue)
    job.name = str(values.get("jobName") or job.name)
    if kind == "JOB_SUBMITTED":
        job.submit_ms = whole_number(values.get("submitTime"))
    if kind in ("JOB_FINISHED", "JOB_FAILED", "JOB_KILLED"):
        job.finish_ms = whole_number(values.get("finishTime"))
        status = str(values.get("jobStatus") or kind.removeprefix("JOB_"))
        job.outcome = "SUCCESS" if kind == "JOB_FINISHED" else _OUTCOMES.get(status, status)


def _take_attempt(task: HadoopTask, what: str, values: Mapping[str, Any]) -> None:
    attempt = task.attempt(str(values.get("attemptId") or ""))
    if what == "STARTED":
        attempt.start_ms = whole_number(values.get("startTime"))
        return
    attempt.result = _ENDS.get(what, what)
    attempt.finish_ms = whole_number(values.get("finishTime"))
    attempt.shuffled_ms = whole_number(values.get("shuffleFinishTime"))
    attempt.sorted_ms = whole_number(values.get("sortFinishTime"))
    rack, host = place(str(values.get("hostname") or ""))
    attempt.rack, attempt.host = str(values.get("rackname") or rack).strip("/"), host
    counters = _counters(values.get("counters"))
    attempt.written_bytes = first_known(counters.get("HDFS_BYTES_WRITTEN"))
    if task.type == "REDUCE":
        attempt.input_bytes = first_known(counters.get("REDUCE_SHUFFLE_BYTES"))
        attempt.output_bytes = attempt.written_bytes
    else:
        attempt.input_bytes = first_known(counters.get("HDFS_BYTES_READ"))
        attempt.output_bytes = first_known(counters.get("MAP_OUTPUT_BYTES"))


def _counters(data: Any) -> dict[str, Any]:
    groups = data.get("groups") or [] if isinstance(data, dict) else []
    return {
        count["name"]: count.get("value")
        for group in groups
        for count in group.get("counts") or group.get("counters") or []
        if "name" in count
    }

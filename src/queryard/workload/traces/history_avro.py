"""Job histories of Hadoop 2 and 3 (`.jhist`): Avro in its JSON form, one event per line.

Hadoop 3 writes them in Avro's binary form unless told otherwise, which is known but not read.
"""

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
_BINARY = "Avro-Binary"
_OUTCOMES = {"SUCCEEDED": "SUCCESS"}
_ENDS = {"FINISHED": "SUCCESS", "FAILED": "FAILED", "KILLED": "KILLED"}


def recognises(head: str) -> bool:
    return head.startswith(("Avro-Json", _BINARY))


def read(file: Path, options: ReadOptions) -> Trace:
    """The one job of a file."""
    jobs: dict[str, HadoopJob] = {}
    events: dict[str, int] = {}
    number = 0
    try:
        for number, line in lines(file):
            if number <= 2:
                _check_begin(file, number, line)
                continue
            if not line.strip():
                continue
            try:
                data = json.loads(line)
                kind, (values,) = data["type"], tuple(data["event"].values())
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                fail(file, "an event with its type is expected; is the line cut off?", number)
            try:
                events[kind] = events.get(kind, 0) + 1
                _take(jobs, kind, values, number)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                fail(file, f"{kind!s:.40} is not as Hadoop writes it ({error})", number)
    except Cut as error:
        fail(file, f"ends in the middle ({error})")
    if number < 2:
        fail(file, "there is no schema; is the file cut off?", 2)
    found = list(jobs.values())
    trace = hadoop_trace(name_of(file), NAME, found, notes=no_end(found, number))
    return replace(trace, counts={**trace.counts, **events})


def _check_begin(file: Path, number: int, line: str) -> None:
    """What it is, and the schema of its events, which has to be whole."""
    if number == 1:
        if line.startswith(_BINARY):
            fail(
                file,
                "is a job history in binary Avro, which cannot be read here; let Hadoop's Rumen "
                "make a trace of it, which can be read, and for those to come set "
                "mapreduce.jobhistory.jhist.format=json on the cluster",
            )
        return
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        fail(file, "the schema of the events is expected, as JSON; is the file cut off?", number)


def _take(jobs: dict[str, HadoopJob], kind: str, values: Mapping[str, Any], line: int) -> None:
    if kind.startswith("JOB_") and "jobid" in values:
        job_id = str(values["jobid"])
        job = jobs.setdefault(job_id, HadoopJob(job_id, line=line))
        _take_job(job, kind, values)
    elif "taskid" in values:
        job_id = re.sub(r"^task_(.*)_[mr]_\d+$", r"job_\1", values["taskid"])
        job = jobs.setdefault(job_id, HadoopJob(job_id, line=line))
        task = job.tasks.setdefault(values["taskid"], HadoopTask())
        task.line = line
        task.type = str(values.get("taskType") or task.type)
        if kind == "TASK_STARTED" and values.get("splitLocations"):
            task.places = tuple(place(split) for split in values["splitLocations"].split(","))
        if "_ATTEMPT_" in kind:
            _take_attempt(task, kind.rpartition("_")[2], values, line)


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


def _take_attempt(task: HadoopTask, what: str, values: Mapping[str, Any], line: int) -> None:
    attempt = task.attempt(str(values.get("attemptId") or ""))
    attempt.begun_line = attempt.begun_line or line
    attempt.ended_line = line
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

"""Rumen: what Hadoop's own tool makes of job histories, as JSON objects one after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .hadoop import (
    Attempt,
    HadoopJob,
    HadoopTask,
    OnlyOnce,
    first_known,
    hadoop_trace,
    place,
    whole_number,
)
from .model import ReadOptions, Trace
from .text import fail, json_objects, name_of
from .topology import beside

NAME = "Rumen trace"


def recognises(head: str) -> bool:
    return head.lstrip().startswith("{") and '"jobID"' in head and '"Event"' not in head


def read(file: Path, options: ReadOptions) -> Trace:
    """One object per job; on the hosts of a topology file beside it, if there is one."""
    jobs = list(_jobs(file))
    nodes, notes = beside(file)
    return hadoop_trace(name_of(file), NAME, jobs, nodes, node_notes=notes)


def _jobs(file: Path) -> Iterator[HadoopJob]:
    once = OnlyOnce(file)
    for line, data in json_objects(file):
        if not isinstance(data, dict) or not isinstance(data.get("jobID"), str):
            fail(file, "a job with a jobID is expected here", line)
        job = HadoopJob(
            data["jobID"],
            str(data.get("user") or ""),
            str(data.get("queue") or ""),
            str(data.get("jobName") or ""),
            str(data.get("outcome") or ""),
            whole_number(data.get("submitTime")),
            whole_number(data.get("finishTime")),
            line=line,
        )
        for group in ("mapTasks", "reduceTasks", "otherTasks"):
            tasks = data.get(group) or []
            if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
                fail(file, f"job {job.id}: {group} must be a list of tasks", line)
            for number, task in enumerate(tasks):
                try:
                    job.tasks[str(task.get("taskID") or f"{group}{number}")] = _task(task)
                except (AttributeError, TypeError, ValueError, LookupError) as error:
                    fail(file, f"job {job.id}: a task of {group} is written oddly ({error})", line)
        once.add(job, line)
        yield job


def _task(data: Mapping[str, Any]) -> HadoopTask:
    layers = [place.get("layers") or [] for place in data.get("preferredLocations") or []]
    return HadoopTask(
        str(data.get("taskType") or ""),
        [_attempt(attempt, data) for attempt in data.get("attempts") or []],
        tuple(
            (names[-2].replace("\\", "") if len(names) > 1 else "", names[-1].replace("\\", ""))
            for names in layers
            if names
        ),
    )


def _attempt(data: Mapping[str, Any], task: Mapping[str, Any]) -> Attempt:
    rack, host = place(str(data.get("hostName") or ""))
    is_reduce = task.get("taskType") == "REDUCE"
    if is_reduce:
        read = first_known(data.get("reduceShuffleBytes"), task.get("inputBytes"))
        written = first_known(data.get("hdfsBytesWritten"), task.get("outputBytes"))
    else:
        read = first_known(
            data.get("hdfsBytesRead"), data.get("mapInputBytes"), task.get("inputBytes")
        )
        written = first_known(data.get("mapOutputBytes"), task.get("outputBytes"))
    return Attempt(
        str(data.get("result") or ""),
        whole_number(data.get("startTime")),
        whole_number(data.get("finishTime")),
        whole_number(data.get("shuffleFinished")),
        whole_number(data.get("sortFinished")),
        rack,
        host,
        read,
        written,
        first_known(data.get("hdfsBytesWritten")),
    )

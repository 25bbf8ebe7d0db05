"""Job histories of Hadoop 0.20 and 1.x: `Kind KEY="value" … .`, a line when something happens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

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

NAME = "Hadoop job history (0.20, 1.x)"
KINDS = ("Meta", "Job", "Task", "MapAttempt", "ReduceAttempt")

_PAIR = re.compile(r'([A-Z_]+)="((?:[^"\\]|\\.)*)"')
_COUNTER = re.compile(r"\[\(([A-Z_]+)\)\((?:[^()\\]|\\.)*\)\((\d+)\)\]")
# Several files in one, as Rumen's own examples have them.
_FILE = re.compile(r"!!FILE=(.*)!!$")
_OUTCOMES = {"SUCCESS", "FAILED", "KILLED"}


def recognises(head: str) -> bool:
    begin = head.lstrip()
    return begin.startswith("!!FILE=") or (begin.split(" ", 1)[0] in KINDS and '="' in begin)


def read(file: Path, options: ReadOptions) -> Trace:
    """All jobs whose records stand in a file."""
    jobs: dict[str, HadoopJob] = {}
    records: dict[str, int] = {}
    last = 0
    for line, kind, text in _records(file):
        last = line
        records[kind] = records.get(kind, 0) + 1
        _take(jobs, kind, _pairs(text))
    found = list(jobs.values())
    trace = hadoop_trace(name_of(file), NAME, found, notes=no_end(found, last))
    counts = {f"{kind} records": count for kind, count in records.items()}
    return replace(trace, counts={**trace.counts, **counts})


def _records(file: Path) -> Iterator[tuple[int, str, str]]:
    """Records up to the lines of their full stops; one of an error may have several lines."""
    inside = kind = ""
    gathered: list[str] = []
    began = number = 0
    try:
        for number, line in lines(file):
            text = line.strip()
            first = text.split(" ", 1)[0]
            if gathered and first in KINDS:
                fail(file, f"the record of a {kind} does not end in a full stop", began)
            if part := _FILE.match(text):
                inside = unquote(part[1])
            elif first in KINDS or gathered:
                if not gathered:
                    kind, began = first, number
                gathered.append(text)
                if text.endswith(" .") or text == ".":
                    yield number, kind, " ".join(gathered)
                    gathered = []
            elif text and not inside.endswith(".xml"):
                problem = f"a record of {', '.join(KINDS)} is expected, got {text[:40]!r}"
                fail(file, problem, number)
    except Cut as error:
        fail(file, f"ends in the middle ({error})")
    if gathered:
        fail(file, f"the record of a {kind} does not end; is the file cut off?", began)


def _pairs(text: str) -> dict[str, str]:
    r"""What stands in a record.

    >>> _pairs(r'JOBID="job_1" USER="a\.b" .')
    {'JOBID': 'job_1', 'USER': 'a.b'}
    """
    return {key: re.sub(r"\\(.)", r"\1", value) for key, value in _PAIR.findall(text)}


def _take(jobs: dict[str, HadoopJob], kind: str, values: dict[str, str]) -> None:
    if kind == "Job" and "JOBID" in values:
        _take_job(jobs.setdefault(values["JOBID"], HadoopJob(values["JOBID"])), values)
    elif "TASKID" in values:
        job_id = re.sub(r"^task_(.*)_[mr]_\d+$", r"job_\1", values["TASKID"])
        job = jobs.setdefault(job_id, HadoopJob(job_id))
        task = job.tasks.setdefault(values["TASKID"], HadoopTask())
        task.type = values.get("TASK_TYPE", task.type)
        if kind == "Task" and values.get("SPLITS"):
            task.places = tuple(place(split) for split in values["SPLITS"].split(","))
        if kind in ("MapAttempt", "ReduceAttempt"):
            _take_attempt(task, values)


def _take_job(job: HadoopJob, values: dict[str, str]) -> None:
    job.user = values.get("USER", job.user)
    job.queue = values.get("JOB_QUEUE", job.queue)
    job.name = values.get("JOBNAME", job.name)
    if "SUBMIT_TIME" in values:
        job.submit_ms = whole_number(values["SUBMIT_TIME"])
    if "FINISH_TIME" in values:
        job.finish_ms = whole_number(values["FINISH_TIME"])
    if values.get("JOB_STATUS") in _OUTCOMES:
        job.outcome = values["JOB_STATUS"]


def _take_attempt(task: HadoopTask, values: dict[str, str]) -> None:
    """An attempt has a line when it starts and another when it ends."""
    attempt = task.attempt(values.get("TASK_ATTEMPT_ID", ""))
    if "START_TIME" in values:
        attempt.start_ms = whole_number(values["START_TIME"])
    if "TASK_STATUS" not in values:
        return
    attempt.result = values["TASK_STATUS"]
    attempt.finish_ms = whole_number(values.get("FINISH_TIME"))
    attempt.shuffled_ms = whole_number(values.get("SHUFFLE_FINISHED"))
    attempt.sorted_ms = whole_number(values.get("SORT_FINISHED"))
    attempt.rack, attempt.host = place(values.get("HOSTNAME", ""))
    counters = dict(_COUNTER.findall(values.get("COUNTERS", "")))
    attempt.written_bytes = first_known(counters.get("HDFS_BYTES_WRITTEN"))
    if task.type == "REDUCE":
        attempt.input_bytes = first_known(counters.get("REDUCE_SHUFFLE_BYTES"))
        attempt.output_bytes = attempt.written_bytes
    else:
        read, taken = counters.get("HDFS_BYTES_READ"), counters.get("MAP_INPUT_BYTES")
        attempt.input_bytes = first_known(read, taken)
        attempt.output_bytes = first_known(counters.get("MAP_OUTPUT_BYTES"))

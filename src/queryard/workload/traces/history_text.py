"""Job histories of Hadoop 0.20 and 1.x: `Kind KEY="value" … .`, a line when something happens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from queryard.core.amounts import several

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

_PAIR = re.compile(r'\s+([A-Z_]+)="((?:[^"\\]|\\.)*)"')
# A record may end inside of a key, as one does in Rumen's own example of a truncated log.
_CUT_SHORT = re.compile(r"[A-Z_]+ \.")
_COUNTER = re.compile(r"\[\(([A-Z_]+)\)\((?:[^()\\]|\\.)*\)\((\d+)\)\]")
# Several files in one, as Rumen's own examples have them.
_FILE = re.compile(r"!!FILE=(.*)!!$")
_OUTCOMES = {"SUCCESS", "FAILED", "KILLED"}
# What a record must have to be about something.
_IDS = {
    "Job": ("JOBID",),
    "Task": ("TASKID",),
    "MapAttempt": ("TASKID", "TASK_ATTEMPT_ID"),
    "ReduceAttempt": ("TASKID", "TASK_ATTEMPT_ID"),
}


def recognises(head: str) -> bool:
    begin = head.lstrip()
    return begin.startswith("!!FILE=") or (begin.split(" ", 1)[0] in KINDS and '="' in begin)


def read(file: Path, options: ReadOptions) -> Trace:
    """All jobs whose records stand in a file."""
    jobs: dict[str, HadoopJob] = {}
    records: dict[str, int] = {}
    cut_short: list[int] = []
    last = 0
    for line, end, kind, text in _records(file):
        last = end
        records[kind] = records.get(kind, 0) + 1
        values, rest = _pairs(text)
        if _CUT_SHORT.fullmatch(rest):
            cut_short.append(line)
        else:
            _check(file, line, kind, values, rest)
        _take(jobs, kind, values, line)
    found = list(jobs.values())
    notes = no_end(found, last)
    if cut_short:
        are = f"{several(len(cut_short), 'record')} {'is' if len(cut_short) == 1 else 'are'}"
        where = f"{'line' if len(cut_short) == 1 else 'the first: line'} {cut_short[0]}"
        notes += (f"{are} cut short ({where}), and read up to there",)
    trace = hadoop_trace(name_of(file), NAME, found, notes=notes)
    counts = {f"{kind} records": count for kind, count in records.items()}
    return replace(trace, counts={**trace.counts, **counts})


def _records(file: Path) -> Iterator[tuple[int, int, str, str]]:
    """Records with their first and last lines; one of an error may have several."""
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
                    yield began, number, kind, " ".join(gathered)
                    gathered = []
            elif text and not inside.endswith(".xml"):
                problem = f"a record of {', '.join(KINDS)} is expected, got {text[:40]!r}"
                fail(file, problem, number)
    except Cut as error:
        fail(file, f"ends in the middle ({error})")
    if gathered:
        fail(file, f"the record of a {kind} does not end; is the file cut off?", began)


def _pairs(text: str) -> tuple[dict[str, str], str]:
    r"""The pairs of a record, and what comes after them: a full stop, if all is well.

    >>> _pairs(r'Job JOBID="job_1" USER="a\.b" .')
    ({'JOBID': 'job_1', 'USER': 'a.b'}, '.')
    """
    values: dict[str, str] = {}
    at = len(text.split(" ", 1)[0])
    while pair := _PAIR.match(text, at):
        values[pair[1]] = re.sub(r"\\(.)", r"\1", pair[2])
        at = pair.end()
    return values, text[at:].strip()


def _check(file: Path, line: int, kind: str, values: dict[str, str], rest: str) -> None:
    """A record that is damaged would tell less than it should, and nobody would know."""
    if rest != ".":
        after = f"after {list(values)[-1]}" if values else "in it"
        problem = f'of a {kind} KEY="value" pairs and a full stop are expected {after}'
        fail(file, f"{problem}, got {rest[:40]!r}; is a quote lost?", line)
    for key in _IDS.get(kind, ()):
        if key not in values:
            fail(file, f"a {kind} without {key}; is the key misspelt?", line)
    if kind.endswith("Attempt") and "FINISH_TIME" in values and "TASK_STATUS" not in values:
        fail(file, f"a {kind} has ended and has no TASK_STATUS; is the key misspelt?", line)


def _take(jobs: dict[str, HadoopJob], kind: str, values: dict[str, str], line: int) -> None:
    if kind == "Job" and "JOBID" in values:
        job_id = values["JOBID"]
        _take_job(jobs.setdefault(job_id, HadoopJob(job_id, line=line)), values)
    elif "TASKID" in values:
        job_id = re.sub(r"^task_(.*)_[mr]_\d+$", r"job_\1", values["TASKID"])
        job = jobs.setdefault(job_id, HadoopJob(job_id, line=line))
        task = job.tasks.setdefault(values["TASKID"], HadoopTask())
        task.line = line
        task.type = values.get("TASK_TYPE", task.type)
        if kind == "Task" and values.get("SPLITS"):
            task.places = tuple(place(split) for split in values["SPLITS"].split(","))
        if kind in ("MapAttempt", "ReduceAttempt"):
            _take_attempt(task, values, line)


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


def _take_attempt(task: HadoopTask, values: dict[str, str], line: int) -> None:
    """An attempt has a line when it starts and another when it ends."""
    attempt = task.attempt(values.get("TASK_ATTEMPT_ID", ""))
    attempt.begun_line = attempt.begun_line or line
    attempt.ended_line = line
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

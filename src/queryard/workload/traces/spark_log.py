"""What stands in the event log of a Spark application: jobs, stages, tasks, SQL executions.

One JSON event per line. A rolling log is a folder of such files, to be read in the order of their
numbers. A log that is still being written may end anywhere: complete events count. Events may also
be missing from the middle: a busy driver drops some.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from .numbers import amount, whole
from .text import Cut, fail, lines

_ROLLED = re.compile(r"events_(\d+)_")
# What Spark's history server writes in place of all parts up to this number.
_COMPACT = re.compile(r"\.compact(\.|$)")
# The name of the count of tasks with impossible times.
BACKWARD = "tasks that finished before their launch"
# Where the time of an event stands.
_TIMES = ("Timestamp", "time", "Submission Time", "Completion Time")
_SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"


@dataclass(slots=True)
class SparkTask:
    """A task that succeeded; times in milliseconds."""

    launch_ms: int
    finish_ms: int
    host: str
    executor: str
    locality: str
    input_bytes: float
    shuffle_read_bytes: float
    written_bytes: float
    fetch_wait_ms: int


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a job or a stage comes from: an SQL execution by its number, a job group, a pool."""

    execution: str = ""
    group: str = ""
    pool: str = ""
    description: str = ""


@dataclass(slots=True)
class SparkStage:
    """A stage with all its attempts; `tasks` by partition, the last success of each."""

    id: int
    name: str = ""
    # Unknown in logs of Spark 1.2 and before.
    parents: tuple[int, ...] | None = None
    # The RDD it computes: a stage of a later job that has the same is this one again.
    rdd: int | None = None
    # Only of stages that no job lists: their submission, their origin, and the RDDs of other stages
    # that they read.
    submitted_ms: int | None = None
    origin: Origin | None = None
    reads: frozenset[int] = frozenset()
    tasks: dict[int, SparkTask] = field(default_factory=dict)

    @property
    def launched_ms(self) -> int:
        return min(task.launch_ms for task in self.tasks.values())

    @property
    def finished_ms(self) -> int:
        return max(task.finish_ms for task in self.tasks.values())


@dataclass(slots=True)
class SparkJob:
    """A job; times are unknown in logs of Spark 1.2 and before, the id if its start is missing."""

    id: int | None
    submitted_ms: int | None
    stages: tuple[int, ...]
    origin: Origin
    has_ended: bool = False
    ended_ms: int | None = None


@dataclass(slots=True)
class Execution:
    """An SQL execution."""

    description: str
    began_ms: int
    ended_ms: int | None = None


@dataclass(slots=True)
class SparkLog:
    """One application."""

    app: str = ""
    user: str = ""
    began_ms: int | None = None
    ended_ms: int | None = None
    # The latest time that is written anywhere: when a log ends that has no end.
    last_ms: int = 0
    jobs: dict[int, SparkJob] = field(default_factory=dict)
    # The stages of these jobs.
    listed: set[int] = field(default_factory=set)
    stages: dict[int, SparkStage] = field(default_factory=dict)
    executions: dict[str, Execution] = field(default_factory=dict)
    # Executor -> its host and cores.
    executors: dict[str, tuple[str, int]] = field(default_factory=dict)
    executors_came_ms: dict[str, int] = field(default_factory=dict)
    executors_left_ms: dict[str, int] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    # Why the log is not complete, if it is not.
    cut: str = ""
    # The last part of a rolling log of which Spark has kept a summary only.
    compacted: int = 0


def is_rolling(folder: Path) -> bool:
    return any(_ROLLED.match(file.name) for file in folder.iterdir())


def read_log(place: Path) -> SparkLog:
    """A file, or the folder of a rolling log."""
    files, compacted = _parts(place) if place.is_dir() else ([place], 0)
    log = SparkLog(compacted=compacted)
    for number, file in enumerate(files):
        _read_file(file, log, is_last=number == len(files) - 1)
    if not log.counts["lines"]:
        fail(place, "there is no whole event in it; was it cut off in its first line?")
    if log.ended_ms is None and not log.cut:
        log.cut = "the application had not ended"
    return log


def _parts(folder: Path) -> tuple[list[Path], int]:
    """The files of a rolling log in their order, and up to which number they are compacted."""
    parts: dict[int, list[Path]] = {}
    compacted: dict[int, list[Path]] = {}
    for file in sorted(folder.iterdir()):
        if found := _ROLLED.match(file.name):
            kind = compacted if _COMPACT.search(file.name) else parts
            kind.setdefault(int(found[1]), []).append(file)
    last = max(compacted, default=0)
    # A compacted file and its originals coexist until the originals are deleted.
    kept = {number: files for number, files in parts.items() if number > last or not compacted}
    missing = sorted(set(range(last + 1, max(kept, default=last))) - set(kept))
    if missing:
        there = ", ".join(str(number) for number in sorted({last, *kept} - {0}))
        fail(
            folder,
            f"parts of the rolling log are missing: {_some(missing)} (there are {there}); copy "
            "them into the folder, too",
        )
    if compacted:
        kept[last] = compacted[last]
    for number, files in kept.items():
        if len(files) > 1:
            names = " and ".join(file.name for file in files)
            fail(folder, f"part {number} of the rolling log is there twice, {names}; delete one")
    return [kept[number][0] for number in sorted(kept)], last


def _some(numbers: Sequence[int]) -> str:
    """The first few of many.

    >>> _some([1, 2, 3, 4, 5, 6, 7])
    '1, 2, 3, 4, 5 and 2 more'
    """
    more = f" and {len(numbers) - 5} more" if len(numbers) > 5 else ""
    return f"{', '.join(str(number) for number in numbers[:5])}{more}"


def _read_file(file: Path, log: SparkLog, is_last: bool) -> None:
    broken: int | None = None
    try:
        for number, line in lines(file):
            if not line.strip():
                continue
            if broken is not None:
                fail(file, "not valid JSON; an event a line is expected", broken)
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                broken = number  # which may be the last line of a log that is still written
                continue
            if not isinstance(event, dict) or not isinstance(event.get("Event"), str):
                fail(file, 'an object with "Event" is expected', number)
            log.counts["lines"] += 1
            try:
                _take(log, event["Event"], event)
            except KeyError as error:
                _refuse(file, event["Event"], f"{error} is missing", number)
            except (TypeError, ValueError, AttributeError, OverflowError) as error:
                _refuse(file, event["Event"], str(error), number)
    except Cut as error:
        if not is_last:
            fail(file, f"ends in the middle ({error}), and other parts follow; copy it again")
        log.cut = f"it ends in the middle, after {log.counts['lines']:,} events"
    if broken is not None:
        if not is_last:
            fail(file, "not valid JSON; an event a line is expected", broken)
        log.cut = f"line {broken}, the last one, is cut off"


def _refuse(file: Path, event: str, problem: str, line: int) -> NoReturn:
    advice = "correct or delete the line"
    fail(file, f"{event} is not as Spark writes it ({problem}); {advice}", line)


def _take(log: SparkLog, name: str, event: Mapping[str, Any]) -> None:
    taker = _TAKERS.get(name)
    if taker is not None:
        taker(log, event)
        times = [event.get(key) for key in _TIMES]
        times.append((event.get("Task Info") or {}).get("Finish Time"))
        log.last_ms = max(log.last_ms, *(time for time in times if isinstance(time, int)), 0)


def _application_start(log: SparkLog, event: Mapping[str, Any]) -> None:
    log.app = str(event.get("App ID") or event.get("App Name") or "")
    log.user = str(event.get("User") or "")
    log.began_ms = whole(event, "Timestamp")


def _application_end(log: SparkLog, event: Mapping[str, Any]) -> None:
    log.ended_ms = whole(event, "Timestamp")


def _executor_added(log: SparkLog, event: Mapping[str, Any]) -> None:
    info = event["Executor Info"]
    log.counts["executors added"] += 1
    executor = str(event["Executor ID"])
    log.executors[executor] = (str(info["Host"]), whole(info, "Total Cores"))
    log.executors_came_ms[executor] = whole(event, "Timestamp") if event.get("Timestamp") else 0


def _executor_removed(log: SparkLog, event: Mapping[str, Any]) -> None:
    log.counts["executors removed"] += 1
    if event.get("Timestamp"):
        log.executors_left_ms[str(event["Executor ID"])] = whole(event, "Timestamp")


def _job_start(log: SparkLog, event: Mapping[str, Any]) -> None:
    log.counts["jobs"] += 1
    infos = event.get("Stage Infos") or []
    log.counts["stages listed"] += len(event["Stage IDs"])
    number = int(event["Job ID"])
    job = SparkJob(
        number,
        None if event.get("Submission Time") is None else whole(event, "Submission Time"),
        tuple(int(stage) for stage in event["Stage IDs"]),
        _origin(event.get("Properties") or {}),
    )
    log.jobs[number] = job
    log.listed.update(job.stages)
    for info in infos:
        _stage(log, info)


def _origin(properties: Mapping[str, Any]) -> Origin:
    return Origin(
        str(properties.get("spark.sql.execution.id") or ""),
        str(properties.get("spark.jobGroup.id") or ""),
        str(properties.get("spark.scheduler.pool") or ""),
        str(properties.get("spark.job.description") or ""),
    )


def _job_end(log: SparkLog, event: Mapping[str, Any]) -> None:
    job = log.jobs.get(int(event["Job ID"]))
    failed = (event.get("Job Result") or {}).get("Result") != "JobSucceeded"
    log.counts["jobs failed"] += failed
    if job is not None:
        job.has_ended = True
        if event.get("Completion Time") is not None:
            job.ended_ms = whole(event, "Completion Time")


def _stage(log: SparkLog, info: Mapping[str, Any]) -> SparkStage:
    number = int(info["Stage ID"])
    stage = log.stages.setdefault(number, SparkStage(number))
    stage.name = str(info.get("Stage Name") or stage.name)
    if info.get("Parent IDs") is not None:
        stage.parents = tuple(int(parent) for parent in info["Parent IDs"])
    rdds: Sequence[Mapping[str, Any]] = info.get("RDD Info") or ()
    if rdds and stage.rdd is None:
        stage.rdd = max(int(rdd["RDD ID"]) for rdd in rdds)
    return stage


def _stage_submitted(log: SparkLog, event: Mapping[str, Any]) -> None:
    info = event["Stage Info"]
    stage = _stage(log, info)
    if stage.id in log.listed:
        return
    if stage.submitted_ms is None and info.get("Submission Time") is not None:
        stage.submitted_ms = whole(info, "Submission Time")
    if event.get("Properties") is not None:
        stage.origin = _origin(event["Properties"])
    # A parent may be a stage that ran before under another number, and which one that is stands in
    # the event that is missing; but it has computed what is read here.
    rdds: Sequence[Mapping[str, Any]] = info.get("RDD Info") or ()
    read = {int(parent) for rdd in rdds for parent in rdd.get("Parent IDs") or ()}
    stage.reads = frozenset(read - {int(rdd["RDD ID"]) for rdd in rdds})


def _stage_completed(log: SparkLog, event: Mapping[str, Any]) -> None:
    _stage(log, event["Stage Info"])
    log.counts["stage attempts completed"] += 1
    log.counts["stages with parents"] += bool(event["Stage Info"].get("Parent IDs"))
    log.counts["stage attempts failed"] += "Failure Reason" in event["Stage Info"]


def _task_end(log: SparkLog, event: Mapping[str, Any]) -> None:
    info = event["Task Info"]
    reason = str(event["Task End Reason"]["Reason"])
    launch_ms, finish_ms = whole(info, "Launch Time"), whole(info, "Finish Time")
    metrics = event.get("Task Metrics") or {}
    fetched = metrics.get("Shuffle Read Metrics") or {}
    written = metrics.get("Shuffle Write Metrics") or {}
    read_bytes = amount(metrics.get("Input Metrics") or {}, "Bytes Read")
    shuffle_bytes = amount(fetched, "Remote Bytes Read") + amount(fetched, "Local Bytes Read")
    written_bytes = amount(written, "Shuffle Bytes Written")
    written_bytes = written_bytes or amount(written, "Shuffle Write Bytes")
    output_bytes = amount(metrics.get("Output Metrics") or {}, "Bytes Written")
    locality = str(info.get("Locality") or "")
    counts = log.counts
    counts["task ends"] += 1
    counts[f"task ends {reason}"] += 1
    counts[f"locality {locality}"] += 1
    counts["speculative tasks"] += bool(info.get("Speculative"))
    counts["task ms"] += finish_ms - launch_ms
    counts["executor run ms"] += int(amount(metrics, "Executor Run Time"))
    counts["input bytes"] += int(read_bytes)
    counts["shuffle read bytes"] += int(shuffle_bytes)
    counts["shuffle write bytes"] += int(written_bytes)
    counts["output bytes"] += int(output_bytes)
    if reason != "Success":
        return
    if launch_ms < 0:
        raise ValueError(f"Launch Time must be milliseconds since 1970, got {launch_ms}")
    if finish_ms < launch_ms:
        counts[BACKWARD] += 1
        return
    stage = log.stages.setdefault(int(event["Stage ID"]), SparkStage(int(event["Stage ID"])))
    # A later attempt of a stage counts anew from 0 what is left to do; Spark 3.3 and later say of
    # which partition a task is.
    index, partition = int(info["Index"]), info.get("Partition ID")
    stage.tasks[index if partition is None or partition < 0 else int(partition)] = SparkTask(
        launch_ms,
        finish_ms,
        str(info.get("Host") or ""),
        str(info.get("Executor ID") or ""),
        locality,
        read_bytes,
        shuffle_bytes,
        written_bytes or output_bytes,
        int(amount(fetched, "Fetch Wait Time")),
    )


def _sql_start(log: SparkLog, event: Mapping[str, Any]) -> None:
    log.counts["SQL executions"] += 1
    description = str(event.get("description") or "")
    log.executions[str(event["executionId"])] = Execution(description, whole(event, "time"))


def _sql_end(log: SparkLog, event: Mapping[str, Any]) -> None:
    execution = log.executions.get(str(event["executionId"]))
    if execution is not None:
        execution.ended_ms = whole(event, "time")


_TAKERS = {
    "SparkListenerApplicationStart": _application_start,
    "SparkListenerApplicationEnd": _application_end,
    "SparkListenerExecutorAdded": _executor_added,
    "SparkListenerExecutorRemoved": _executor_removed,
    "SparkListenerJobStart": _job_start,
    "SparkListenerJobEnd": _job_end,
    "SparkListenerStageSubmitted": _stage_submitted,
    "SparkListenerStageCompleted": _stage_completed,
    "SparkListenerTaskEnd": _task_end,
    f"{_SQL}Start": _sql_start,
    f"{_SQL}End": _sql_end,
}

"""Jobs of Hadoop MapReduce as its histories tell of them, and the workload they make.

Rumen traces and both kinds of job histories are read into these jobs. Every job is a query of one
job: Hadoop does not write down which jobs belong together.

What is replayed are the tasks that succeeded, with the times of the attempt that did. How long a
reduce waited for maps is a matter of that day's schedule: its shuffle counts from the end of the
last map.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from queryard.core.amounts import several
from queryard.core.model import MAP, REDUCE, Kind, Node, Query
from queryard.workload.model import Arrival, Workload

from .model import Locality, TaskRecord, Trace, as_id, measured_job, peak_at_once
from .numbers import LARGEST
from .text import fail, left_out

JOB = "job"
UNKNOWN = -1
SUCCESS = "SUCCESS"
# Recorded times hold what was lost to reading from afar, so a penalty would count it twice.
NO_PLACES = "placement, remote_penalty and rack_penalty have no effect"
_KINDS: Mapping[str, Kind] = {"MAP": MAP, "REDUCE": REDUCE}


@dataclass(slots=True)
class Attempt:
    """One try of a task; times in milliseconds, -1 for unknown.

    `begun_line` and `ended_line` are where a history tells of it, 0 in files of another form.
    """

    result: str = ""
    start_ms: int = UNKNOWN
    finish_ms: int = UNKNOWN
    shuffled_ms: int = UNKNOWN
    sorted_ms: int = UNKNOWN
    rack: str = ""
    host: str = ""
    input_bytes: float | None = None
    output_bytes: float | None = None
    # What goes to the file system for good, which the output of a map need not.
    written_bytes: float | None = None
    id: str = ""
    begun_line: int = 0
    ended_line: int = 0

    @property
    def is_timed(self) -> bool:
        return 0 <= self.start_ms < self.finish_ms

    @property
    def odd_line(self) -> int:
        """Where the time stands, or should, that is not sound."""
        return self.begun_line if self.start_ms < 0 else self.ended_line


@dataclass(slots=True)
class HadoopTask:
    """A task with all its attempts; `places` are the (rack, host) pairs that hold its input.

    `line` is the last one that tells of it in a history, 0 in files of another form.
    """

    type: str = ""
    attempts: list[Attempt] = field(default_factory=list)
    places: tuple[tuple[str, str], ...] = ()
    line: int = 0

    def attempt(self, name: str) -> Attempt:
        """One of its attempts, which may be new."""
        found = next((attempt for attempt in self.attempts if attempt.id == name), None)
        if found is None:
            found = Attempt(id=name)
            self.attempts.append(found)
        return found


@dataclass(slots=True)
class HadoopJob:
    """A job as far as it was written down; `line` is the first one that tells of it."""

    id: str
    user: str = ""
    queue: str = ""
    name: str = ""
    outcome: str = ""
    submit_ms: int = UNKNOWN
    finish_ms: int = UNKNOWN
    tasks: dict[str, HadoopTask] = field(default_factory=dict)
    line: int = 0


def hadoop_trace(
    name: str,
    format: str,
    jobs: Sequence[HadoopJob],
    nodes: Sequence[Node] = (),
    notes: Iterable[str] = (),
    node_notes: Iterable[str] = (),
) -> Trace:
    """The jobs as a trace; on the nodes given, else on the hosts that were seen."""
    dated = [job for job in jobs if job.submit_ms >= 0]
    zero_ms = min((job.submit_ms for job in dated), default=0)
    dropped = _Dropped()
    arrivals: list[Arrival] = []
    tasks: list[TaskRecord] = []
    finished_s: dict[str, float] = {}
    for job in jobs:
        if job.submit_ms < 0:
            dropped.add("job without a time of submission", f"{job.id}, line {job.line}")
    for job in dated:
        records = _records(job, zero_ms, dropped)
        if not records:
            what = f"job ({_ended(job)}) without a task that succeeded"
            dropped.add(what, f"{job.id}, line {job.line}")
            continue
        tasks += records
        arrivals.append(_arrival(job, records, zero_ms))
        if job.finish_ms >= job.submit_ms:
            finished_s[as_id(job.id)] = (job.finish_ms - zero_ms) / 1e3
    cluster = tuple(nodes) or _hosts(tasks)
    node_notes = tuple(node_notes)
    said = [
        *node_notes,
        *notes,
        *dropped.notes(),
    ]
    if arrivals:
        said.append(
            "each job is a query; failed and killed attempts are not repeated, and what it took to "
            "set a job up, to get containers and to tell of their ends is left out"
        )
    if any(task.kind == REDUCE for task in tasks):
        said[-1] += "; the shuffle of a reduce counts from the end of the last map"
    if arrivals and any(task.places for job in jobs for task in job.tasks.values()):
        said.append(f"where blocks lay is not replayed: {NO_PLACES}")
    return Trace(
        name,
        format,
        Workload(name, tuple(arrivals), nodes=cluster),
        tuple(tasks),
        finished_s,
        _counts(jobs),
        tuple(said),
        node_notes,
    )


def _ended(job: HadoopJob) -> str:
    return "succeeded" if job.outcome == SUCCESS else job.outcome.lower() or "no end"


def no_end(jobs: Iterable[HadoopJob], line: int) -> tuple[str, ...]:
    """What to say of a history that does not tell how its jobs ended."""
    count = sum(not job.outcome for job in jobs)
    if not count:
        return ()
    return (f"the file ends at line {line:,} without the end of {several(count, 'job')}",)


class _Dropped:
    """What is not replayed: how many of a kind, and where the first of them is."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, str]] = {}

    def add(self, what: str, where: str) -> None:
        count, first = self._found.get(what, (0, where))
        self._found[what] = (count + 1, first)

    def notes(self) -> Iterator[str]:
        for what, (count, first) in sorted(self._found.items()):
            yield f"{left_out(count, what)} ({first if count == 1 else f'the first: {first}'})"


def _where(job: HadoopJob, task: str, line: int) -> str:
    """Files of JSON have lines only where a job begins."""
    return f"{task}, {f'line {line}' if line else f'in the job on line {job.line}'}"


def _records(job: HadoopJob, zero_ms: int, dropped: _Dropped) -> list[TaskRecord]:
    maps_done_ms = max(
        (
            attempt.finish_ms
            for task in job.tasks.values()
            if task.type == "MAP"
            for attempt in task.attempts
            if attempt.result == SUCCESS
        ),
        default=UNKNOWN,
    )
    records = []
    for name, task in job.tasks.items():
        kind = _KINDS.get(task.type)
        if kind is None:
            continue  # setting up and cleaning up
        succeeded = [a for a in task.attempts if a.result == SUCCESS]
        timed = [a for a in succeeded if a.is_timed]
        if not succeeded:
            dropped.add(f"{kind} that never succeeded", _where(job, name, task.line))
        elif not timed:
            odd = succeeded[0].odd_line
            dropped.add(f"{kind} without sound times", _where(job, name, odd))
        else:
            records.append(_record(job, task, kind, timed[0], zero_ms, maps_done_ms))
    return records


def _record(
    job: HadoopJob,
    task: HadoopTask,
    kind: Kind,
    attempt: Attempt,
    zero_ms: int,
    maps_done_ms: int,
) -> TaskRecord:
    start_ms, finish_ms = attempt.start_ms, attempt.finish_ms
    shuffle_s = merge_s = None
    seconds = (finish_ms - start_ms) / 1e3
    if kind == REDUCE and start_ms <= attempt.shuffled_ms <= attempt.sorted_ms <= finish_ms:
        shuffle_s = max(0, attempt.shuffled_ms - max(start_ms, maps_done_ms)) / 1e3
        merge_s = (attempt.sorted_ms - attempt.shuffled_ms) / 1e3
        seconds = shuffle_s + merge_s + (finish_ms - attempt.sorted_ms) / 1e3
    return TaskRecord(
        f"{as_id(job.id)}/{JOB}",
        kind,
        seconds,
        (finish_ms - zero_ms) / 1e3 - seconds,
        attempt.input_bytes,
        attempt.output_bytes,
        attempt.host,
        _locality(attempt, task.places),
        shuffle_s,
        merge_s,
    )


def _locality(attempt: Attempt, places: Sequence[tuple[str, str]]) -> Locality:
    if not places or not attempt.host:
        return ""
    if any(host == attempt.host for _, host in places):
        return "local"
    return "rack" if any(rack == attempt.rack for rack, _ in places) else "remote"


def _arrival(job: HadoopJob, records: Sequence[TaskRecord], zero_ms: int) -> Arrival:
    maps = [record for record in records if record.kind == MAP]
    reduces = [record for record in records if record.kind == REDUCE]
    work, truth = measured_job(JOB, maps, reduces)
    query = Query(
        as_id(job.id),
        (work,),
        tenant=_tenant(job),
        submit_s=(job.submit_ms - zero_ms) / 1e3,
        class_name=job.name,
    )
    return Arrival(query, {JOB: truth})


def _tenant(job: HadoopJob) -> str:
    queue = job.queue if job.queue not in ("", "default") else ""
    return "/".join(as_id(part) for part in (queue, job.user) if part) or "default"


def _hosts(tasks: Sequence[TaskRecord]) -> tuple[Node, ...]:
    """The hosts that ran something, each with as many slots as it was seen to use at once."""
    by_host: dict[str, list[TaskRecord]] = {}
    for task in tasks:
        if task.node:
            by_host.setdefault(task.node, []).append(task)
    return tuple(Node(host, max(1, peak_at_once(by_host[host]))) for host in sorted(by_host))


def _counts(jobs: Sequence[HadoopJob]) -> dict[str, float]:
    """What stands in the file, in the words of Hadoop."""
    counts: Counter[str] = Counter(jobs=len(jobs))
    counts["users"] = len({job.user for job in jobs})
    for job in jobs:
        counts[f"jobs {job.outcome}"] += 1
        for task in job.tasks.values():
            kind = _KINDS.get(task.type, "other")
            if kind != "other":
                counts[f"{kind}s"] += 1
            for attempt in task.attempts:
                counts[f"{kind} attempts {attempt.result}"] += 1
                if kind != "other" and attempt.result == SUCCESS:
                    _count_success(counts, kind, attempt)
    return dict(counts)


def _count_success(counts: Counter[str], kind: str, attempt: Attempt) -> None:
    if attempt.is_timed:
        counts[f"successful {kind} ms"] += attempt.finish_ms - attempt.start_ms
    taken = "input bytes" if kind == MAP else "shuffle bytes"
    for name, value in ((taken, attempt.input_bytes), ("output bytes", attempt.written_bytes)):
        if value is not None:
            counts[name] += int(value)


class OnlyOnce:
    """The jobs of a file by their ids, each of which may be there once."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lines: dict[str, int] = {}

    def add(self, job: HadoopJob, line: int) -> None:
        query_id = as_id(job.id)
        if query_id in self._lines:
            fail(
                self._file,
                f"the job {job.id!r} is there twice, first on line {self._lines[query_id]}; "
                "delete one or give it another id",
                line,
            )
        self._lines[query_id] = line


def place(text: str) -> tuple[str, str]:
    r"""Rack and host from "/rack/host"; older files escape dots.

    >>> place(r"/192\.30\.63\.0/cluster7\.example\.com"), place("localhost")
    (('192.30.63.0', 'cluster7.example.com'), ('', 'localhost'))
    """
    parts = [part.replace("\\", "") for part in text.split("/") if part]
    if not parts:
        return "", ""
    return (parts[-2] if len(parts) > 1 else ""), parts[-1]


def whole_number(value: Any) -> int:
    """A time or a count; -1 where there is none."""
    if isinstance(value, bool):
        return UNKNOWN
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return UNKNOWN
    return number if abs(number) <= LARGEST else UNKNOWN


def first_known(*values: Any) -> float | None:
    """The first of several counters that was counted."""
    for value in values:
        if (number := whole_number(value)) >= 0:
            return float(number)
    return None

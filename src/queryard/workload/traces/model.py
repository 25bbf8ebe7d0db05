"""A recorded workload: what arrived, the tasks as they were measured, and when queries ended."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from queryard.core.model import Job, Kind, Node, Operator, Phase, TableInput
from queryard.workload.alone import capacity_slots
from queryard.workload.model import JobTruth, Workload

Locality = Literal["local", "rack", "remote", ""]
"""Where the input of a task was, relative to its node; empty if not recorded."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a reader is told where a format leaves it open.

    `block_bytes` cuts the input of a SWIM job into maps; `executors` chooses among the runs of the
    TPC-H stages, which were measured with several numbers of executors.
    """

    block_bytes: float = 64 * 2.0**20
    executors: int = 50


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """One task that succeeded, as it was measured; None is what the format does not say.

    A task is a reduce if it reads what other tasks have left for it.
    """

    job: str
    kind: Kind
    seconds: float
    start_s: float | None = None
    input_bytes: float | None = None
    output_bytes: float | None = None
    node: str = ""
    locality: Locality = ""
    shuffle_s: float | None = None
    merge_s: float | None = None


class Span(NamedTuple):
    """How long a trace lasts from its first submission on, and what is the last of it."""

    seconds: float
    last: str


@dataclass(frozen=True, slots=True)
class Trace:
    """What a file holds.

    `finished_s` has the times at which queries ended, by the clock of their `submit_s`; `counts`
    are numbers of what is in the file, in the terms of its format; `notes` say what was assumed,
    derived or left out in the workload. Notes that hold for the trace's own nodes only are in
    `node_notes` as well.
    """

    name: str
    format: str
    workload: Workload
    tasks: tuple[TaskRecord, ...] = ()
    finished_s: Mapping[str, float] = field(default_factory=dict)
    counts: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    node_notes: tuple[str, ...] = ()

    @property
    def responses_s(self) -> dict[str, float]:
        """How long each query took as recorded."""
        return {
            arrival.query.id: self.finished_s[arrival.query.id] - arrival.query.submit_s
            for arrival in self.workload.arrivals
            if arrival.query.id in self.finished_s
        }

    @property
    def work_s(self) -> float:
        """Slot-seconds of all tasks."""
        return math.fsum(arrival.work_s for arrival in self.workload.arrivals)

    @property
    def span(self) -> Span:
        """From the first submission to the last end, of a query or a task, or submission.

        A truncated log may have tasks that ended after the last ended query.
        """
        submitted_s = [arrival.query.submit_s for arrival in self.workload.arrivals]
        tasks_s = [task.start_s + task.seconds for task in self.tasks if task.start_s is not None]
        last_s = {
            "end": max(self.finished_s.values(), default=-math.inf),
            "end of a task": max(tasks_s, default=-math.inf),
            "submission": max(submitted_s),
        }
        last = max(last_s, key=lambda what: round(last_s[what], 3))  # the first of equals
        return Span(last_s[last] - min(submitted_s), last)

    def load_on(self, nodes: Sequence[Node]) -> float | None:
        """The offered load: all work over what these nodes can do in the span; None without one."""
        possible_s = capacity_slots(nodes) * self.span.seconds
        return self.work_s / possible_s if possible_s > 0 else None


def measured_job(
    name: str,
    maps: Sequence[TaskRecord],
    reduces: Sequence[TaskRecord] = (),
    upstream: Iterable[str] = (),
    operator: Operator = "extract",
    inputs: Iterable[TableInput] = (),
) -> tuple[Job, JobTruth]:
    """A job with the measured task times."""
    if not maps:  # the kernel knows no job without maps
        maps, reduces = reduces, ()
    job = Job(
        name,
        operator,
        tuple(upstream),
        tuple(inputs),
        _phase(maps),
        _phase(reduces) if reduces else None,
    )
    truth = JobTruth(
        map_s=_mean(task.seconds for task in maps),
        map_times_s=_unequal(task.seconds for task in maps),
        shuffle_s=_mean(task.shuffle_s or 0.0 for task in reduces),
        merge_s=_mean(task.merge_s or 0.0 for task in reduces),
        reduce_s=_mean(
            task.seconds - (task.shuffle_s or 0.0) - (task.merge_s or 0.0) for task in reduces
        ),
        reduce_times_s=_unequal(task.seconds for task in reduces),
        map_output_bytes=_mean(task.output_bytes or 0.0 for task in maps),
    )
    return job, truth


def as_id(text: str) -> str:
    """A name that may serve as an id: ids of jobs are joined with slashes.

    >>> as_id("daily/web log")
    'daily-web log'
    """
    return text.replace("/", "-").strip() or "-"


def peak_at_once(tasks: Iterable[TaskRecord]) -> int:
    """How many tasks ran at the same time, at most.

    >>> peak_at_once([TaskRecord("q/a", "map", 2.0, start) for start in (0.0, 1.0, 3.0)])
    2
    """
    edges: list[tuple[float, int]] = []
    for task in tasks:
        if task.start_s is not None:
            edges += [(task.start_s, 1), (task.start_s + task.seconds, -1)]
    running = most = 0
    for _, step in sorted(edges):  # at one time, ends come before starts
        running += step
        most = max(most, running)
    return most


def _phase(tasks: Sequence[TaskRecord]) -> Phase:
    sizes = tuple(task.input_bytes or 0.0 for task in tasks)
    if len(set(sizes)) == 1:
        return Phase(len(tasks), sizes[0])
    return Phase(len(tasks), sizes=sizes)


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return math.fsum(found) / len(found) if found else 0.0


def _unequal(values: Iterable[float]) -> tuple[float, ...]:
    """Values one by one, unless they are all the same."""
    found = tuple(values)
    return found if len(set(found)) > 1 else ()

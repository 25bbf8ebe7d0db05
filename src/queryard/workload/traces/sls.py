"""SLS: jobs for YARN's scheduler load simulator, containers with the times they took."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .hadoop import (
    NO_PLACES,
    SUCCESS,
    UNKNOWN,
    Attempt,
    HadoopJob,
    HadoopTask,
    OnlyOnce,
    hadoop_trace,
    place,
    whole_number,
)
from .model import ReadOptions, Trace
from .text import fail, json_objects, name_of

NAME = "SLS jobs"
# Priorities of YARN's MapReduce, for containers that have no type.
_TYPES = {20: "MAP", 10: "REDUCE"}
# An upper limit on copies of a job or of a container.
MOST_COPIES = 1_000_000


def recognises(head: str) -> bool:
    return head.lstrip().startswith(("{", "[")) and '"job.tasks"' in head


def is_recipe(head: str) -> bool:
    """Whether it says how jobs are to be drawn, and has none."""
    return head.lstrip().startswith("{") and '"workloads"' in head and '"job_classes"' in head


def read(file: Path, options: ReadOptions) -> Trace:
    """One object per job, or one list of them."""
    jobs: list[HadoopJob] = []
    is_delayed = False
    once = OnlyOnce(file)
    for line, data in json_objects(file):
        for item in data if isinstance(data, list) else [data]:
            made = _job(file, line, item, len(jobs))
            for job in made:
                once.add(job, line)
            jobs += made
            is_delayed |= any("container.request.delay" in task for task in item["job.tasks"])
    notes = ["delays of requests (container.request.delay) are not kept"] if is_delayed else []
    if any(task.attempts[0].host for job in jobs for task in job.tasks.values()):
        asked = "which hosts containers ask for (container.host)"
        notes.append(f"{asked} is not replayed: {NO_PLACES}")
    return hadoop_trace(name_of(file), NAME, jobs, notes=notes)


def _job(file: Path, line: int, data: Any, number: int) -> list[HadoopJob]:
    if not isinstance(data, dict) or not isinstance(data.get("job.tasks"), list):
        fail(file, "a job with job.tasks is expected here", line)
    queue = str(data.get("job.queue.name") or data.get("job.queue") or "")
    start_ms = whole_number(data.get("job.start.ms"))
    if start_ms < 0:
        fail(file, f"job {data.get('job.id')!r}: job.start.ms must be a time in milliseconds", line)
    ids = str(data.get("job.id") or f"job{number + 1}")
    tasks: dict[str, HadoopTask] = {}
    for at, task in enumerate(data["job.tasks"], 1):
        made = _task(file, line, task)
        for copy in range(_copies(file, line, task, "count")):
            tasks[f"container {at} of {ids}" + (f", copy {copy + 1}" if copy else "")] = made
    copies = _copies(file, line, data, "job.count")
    return [
        HadoopJob(
            ids if copies == 1 else f"{ids}-{copy}",
            str(data.get("job.user") or ""),
            queue,
            ids,
            "SUCCESS",
            start_ms,
            whole_number(data.get("job.end.ms")),
            tasks,
            line,
        )
        for copy in range(1, copies + 1)
    ]


def _copies(file: Path, line: int, data: dict[str, Any], key: str) -> int:
    """A job or a container may be wanted several times over."""
    given = data.get(key)
    copies = 1 if given is None else whole_number(given)
    if not 0 <= copies <= MOST_COPIES:
        problem = f"{key} must be a whole number of up to {MOST_COPIES:,}"
        fail(file, f"{problem}, got {given!s:.40}", line)
    return max(1, copies)  # as SLS does


def _task(file: Path, line: int, data: Any) -> HadoopTask:
    if not isinstance(data, dict):
        fail(file, "a container is expected among job.tasks", line)
    start_ms = whole_number(data.get("container.start.ms"))
    end_ms = whole_number(data.get("container.end.ms"))
    # As SLS has it: a duration, by its new name or by its old one, goes before start and end.
    durations = (whole_number(data.get(f"{prefix}duration.ms")) for prefix in ("container.", ""))
    duration_ms = next((duration for duration in durations if duration >= 0), UNKNOWN)
    if duration_ms >= 0:
        start_ms = max(0, start_ms)
        end_ms = start_ms + duration_ms
    kind = str(data.get("container.type") or "").upper()
    kind = kind or _TYPES.get(whole_number(data.get("container.priority")), "MAP")
    rack, host = place(str(data.get("container.host") or ""))
    return HadoopTask(kind, [Attempt(SUCCESS, start_ms, end_ms, rack=rack, host=host)])

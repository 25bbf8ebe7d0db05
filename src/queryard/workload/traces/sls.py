"""SLS: jobs for YARN's scheduler load simulator, containers with the times they took."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .hadoop import (
    SUCCESS,
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
# More copies of a job or of a container than anybody simulates.
MOST_COPIES = 1_000_000


def recognises(head: str) -> bool:
    return head.lstrip().startswith(("{", "[")) and '"job.tasks"' in head


def is_recipe(head: str) -> bool:
    """Whether it says how jobs are to be drawn, and has none."""
    return head.lstrip().startswith("{") and '"workloads"' in head and '"job_classes"' in head


def read(file: Path, options: ReadOptions) -> Trace:
    """A job an object, or one list of them."""
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
    return hadoop_trace(name_of(file), NAME, jobs, notes=notes)


def _job(file: Path, line: int, data: Any, number: int) -> list[HadoopJob]:
    if not isinstance(data, dict) or not isinstance(data.get("job.tasks"), list):
        fail(file, "a job with job.tasks is expected here", line)
    queue = str(data.get("job.queue.name") or data.get("job.queue") or "")
    start_ms = whole_number(data.get("job.start.ms"))
    if start_ms < 0:
        fail(file, f"job {data.get('job.id')!r}: job.start.ms must be a time in milliseconds", line)
    tasks: dict[str, HadoopTask] = {}
    for task in data["job.tasks"]:
        made = _task(file, line, task)
        for _ in range(_copies(file, line, task, "count")):
            tasks[str(len(tasks))] = made
    ids = str(data.get("job.id") or f"job{number + 1}")
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
    start_ms = whole_number(data.get("container.start.ms", 0))
    end_ms = whole_number(data.get("container.end.ms"))
    if end_ms < 0 and (duration := whole_number(data.get("duration.ms"))) >= 0:
        end_ms = start_ms + duration
    kind = str(data.get("container.type") or "").upper()
    kind = kind or _TYPES.get(whole_number(data.get("container.priority")), "MAP")
    rack, host = place(str(data.get("container.host") or ""))
    return HadoopTask(kind, [Attempt(SUCCESS, start_ms, end_ms, rack=rack, host=host)])

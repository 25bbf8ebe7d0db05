"""SLS: jobs for YARN's scheduler load simulator, containers with the times they took."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .hadoop import SUCCESS, Attempt, HadoopJob, HadoopTask, hadoop_trace, place, whole_number
from .model import ReadOptions, Trace
from .text import fail, json_objects, name_of

NAME = "SLS jobs"
# Priorities of YARN's MapReduce, for containers that have no type.
_TYPES = {20: "MAP", 10: "REDUCE"}


def recognises(head: str) -> bool:
    return head.lstrip().startswith(("{", "[")) and '"job.tasks"' in head


def is_recipe(head: str) -> bool:
    """Whether it says how jobs are to be drawn, and has none."""
    return head.lstrip().startswith("{") and '"workloads"' in head and '"job_classes"' in head


def read(file: Path, options: ReadOptions) -> Trace:
    """A job an object, or one list of them."""
    jobs: list[HadoopJob] = []
    is_delayed = False
    for line, data in json_objects(file):
        for item in data if isinstance(data, list) else [data]:
            jobs += _job(file, line, item, len(jobs))
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
    tasks = {}
    for at, task in enumerate(data["job.tasks"]):
        tasks[str(at)] = _task(file, line, task)
    ids = str(data.get("job.id") or f"job{number + 1}")
    # A job may be wanted several times over.
    copies = max(1, whole_number(data.get("job.count", 1)))
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

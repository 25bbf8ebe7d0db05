"""Recorded tasks as questions to predictors, with the answers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from queryard.core.model import MAP, JobId
from queryard.estimate.tasks import Seen, TaskFeatures, class_of
from queryard.workload.traces import TaskRecord, Trace, read_trace


def recorded(trace: Trace) -> list[tuple[float, Seen]]:
    """The tasks of a trace as questions and answers."""
    arrivals = {arrival.query.id: arrival.query for arrival in trace.workload.arrivals}
    by_job: dict[str, list[TaskRecord]] = {}
    for task in trace.tasks:
        by_job.setdefault(task.job, []).append(task)
    left = {
        job: sum(task.output_bytes or 0.0 for task in tasks if task.kind == MAP)
        for job, tasks in by_job.items()
    }
    is_spark = trace.format.startswith("Spark")
    found = []
    for job, tasks in by_job.items():
        query_id, name = JobId.of(job)
        query = arrivals[query_id]
        spec = next(item for item in query.jobs if item.name == name)
        maps = [task for task in tasks if task.kind == MAP]
        reduces = len(tasks) - len(maps)
        shuffled = left[job]
        if is_spark and spec.upstream:
            shuffled = sum(
                task.output_bytes or 0.0
                for before in spec.upstream
                for task in by_job.get(str(JobId(query_id, before)), ())
            )
        known = all(task.input_bytes is not None for task in maps)
        asked = TaskFeatures(
            job,
            MAP,
            class_of(query, spec),
            query.tenant,
            map_bytes=sum(task.input_bytes or 0.0 for task in maps) if known else None,
            map_tasks=len(maps),
            reduces=reduces,
            shuffled_bytes=shuffled or None,
        )
        for task in tasks:
            if task.start_s is None or task.seconds <= 0:
                continue
            question = asked._replace(
                kind=task.kind,
                input_bytes=task.input_bytes if task.kind == MAP else None,
                is_local=None if not task.locality else task.locality == "local",
            )
            seen = Seen(question, task.seconds, task.output_bytes, task.shuffle_s, task.merge_s)
            found.append((task.start_s, seen))
    return found


def public(folder: Path) -> Iterable[tuple[str, list[tuple[float, Seen]]]]:
    """By source: all of Spark's logs and of Rumen's traces in a folder, one after another."""
    for title, pattern in (("Spark", "spark-eventlogs/*/*"), ("Rumen", "hadoop-rumen/*trace*")):
        tasks: list[tuple[float, Seen]] = []
        begin_s = 0.0
        for file in sorted(folder.glob(pattern)):
            trace = read_trace(file)
            of_file = recorded(trace)
            if not of_file:
                continue
            shift = begin_s - min(start for start, _ in of_file)
            prefix = f"{file.name}:"
            tasks += [
                (
                    start + shift,
                    seen._replace(asked=seen.asked._replace(job=prefix + seen.asked.job)),
                )
                for start, seen in of_file
            ]
            begin_s = max(start + shift + seen.seconds for start, seen in of_file) + 1.0
        if tasks:
            yield title, tasks

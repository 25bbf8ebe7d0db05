"""The stages of the 22 TPC-H queries on Spark with measured task times, from Decima's authors.

They were measured with several numbers of executors; one of these runs is taken. There are no
arrivals: all queries come at once, in order of their numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from queryard.core.errors import InvalidModel
from queryard.core.model import MAP, Node, Query
from queryard.workload.cluster import numbered
from queryard.workload.model import Arrival, Workload

from .model import ReadOptions, TaskRecord, Trace, measured_job
from .numbers import LARGEST
from .text import fail, json_objects

NAME = "Decima TPC-H stages"
# What happens when something is not there, of another type, or no number that could be.
_ODD = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, InvalidModel)


def recognises(head: str) -> bool:
    return head.lstrip().startswith("{") and '"first_wave"' in head and '"queries"' in head


def read(file: Path, options: ReadOptions) -> Trace:
    """22 queries, submitted at once."""
    found = list(json_objects(file))
    data = found[0][1] if found else None
    if len(found) != 1 or not isinstance(data, dict) or not isinstance(data.get("queries"), list):
        fail(file, 'one object with "queries" is expected')
    arrivals: list[Arrival] = []
    tasks: list[TaskRecord] = []
    counts = {"queries": 0.0, "stages": 0.0, "edges": 0.0, "tasks": 0.0}
    for query in data["queries"]:
        try:
            arrival, records = _query(query, options.executors)
            counts["queries"] += 1
            counts["stages"] += len(query["stages"])
            counts["edges"] += len(query["edges"])
            counts["tasks"] += sum(int(stage["num_tasks"]) for stage in query["stages"])
            if arrival.query.id in {other.query.id for other in arrivals}:
                raise ValueError(f"{arrival.query.id} is there twice")
        except _ODD as error:
            number = query.get("query") if isinstance(query, dict) else query
            fail(file, f"query {number!r} lacks something or has it in another form ({error!r})")
        arrivals.append(arrival)
        tasks += records
    nodes = tuple(Node(name, 1) for name in numbered("executor", options.executors))
    notes = (
        f"task times are those of {options.executors} executors, or of the number next to that "
        "with which a stage was measured",
        "when queries came is unknown: all come at once",
    )
    name = f"tpch-{data.get('scale', '')}".rstrip("-")
    workload = Workload(name, tuple(arrivals), nodes=nodes)
    return Trace(name, NAME, workload, tuple(tasks), {}, counts, notes)


def _query(data: Mapping[str, Any], executors: int) -> tuple[Arrival, list[TaskRecord]]:
    query_id = f"q{int(data['query']):02d}"
    parents: dict[int, list[int]] = {int(stage["stage"]): [] for stage in data["stages"]}
    for parent, child in data["edges"]:
        parents[child].append(parent)
    jobs, truth, records = [], {}, []
    for stage in data["stages"]:
        name = f"s{stage['stage']}"
        tasks = [
            TaskRecord(f"{query_id}/{name}", MAP, milliseconds / 1e3)
            for milliseconds in _durations(stage, executors)
        ]
        upstream = sorted(parents[int(stage["stage"])])
        operator = ("extract", "groupby", "join")[min(2, len(upstream))]
        job, truth[name] = measured_job(
            name,
            tasks,
            upstream=(f"s{parent}" for parent in upstream),
            operator=operator,  # type: ignore[arg-type]
        )
        jobs.append(job)
        records += tasks
    return Arrival(Query(query_id, tuple(jobs), class_name=query_id), truth), records


def _durations(stage: Mapping[str, Any], executors: int) -> list[float]:
    """All tasks of a stage, from the run whose number of executors is nearest to the one wanted."""
    first, rest = stage["first_wave"], stage["rest_wave"]
    runs = {int(count) for count in (*first, *rest)}
    if not runs:
        raise ValueError(f"stage {stage['stage']} has no measured tasks")
    nearest = str(min(runs, key=lambda count: (abs(count - executors), count)))
    durations = [float(value) for value in (*first.get(nearest, ()), *rest.get(nearest, ()))]
    if not durations or not all(0 <= value <= LARGEST for value in durations):
        raise ValueError(f"stage {stage['stage']} has no durations, or impossible ones")
    return durations

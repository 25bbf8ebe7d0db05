"""The stages of the 22 TPC-H queries on Spark with measured task times, from Decima's authors.

They were measured with several numbers of executors; one of these runs is taken. There are no
arrivals: all queries come at once, in order of their numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from queryard.core.model import MAP, JobId, Node, Query
from queryard.workload.cluster import numbered
from queryard.workload.model import Arrival, Workload

from .hadoop import whole_number
from .model import ReadOptions, TaskRecord, Trace, measured_job
from .numbers import LARGEST
from .text import fail, json_objects

NAME = "Decima TPC-H stages"
_EXECUTORS = re.compile(r"[0-9]{1,18}")


class _Invalid(Exception):
    """What is wrong with a query, in words."""


def recognises(head: str) -> bool:
    return head.lstrip().startswith("{") and '"first_wave"' in head and '"queries"' in head


def read(file: Path, options: ReadOptions) -> Trace:
    """22 queries, submitted at once."""
    found = list(json_objects(file))
    data = found[0][1] if found else None
    if len(found) != 1 or not isinstance(data, dict) or not isinstance(data.get("queries"), list):
        fail(file, 'one object with "queries" is expected')
    arrivals: dict[str, Arrival] = {}
    tasks: list[TaskRecord] = []
    counts = {"queries": 0.0, "stages": 0.0, "edges": 0.0, "tasks": 0.0}
    for at, query in enumerate(data["queries"], 1):
        where = f"query number {at} of the file"  # until it has told its name
        try:
            where = f"query {_number(query, 'query')}"
            arrival, records = _query(query, options.executors)
            if arrival.query.id in arrivals:
                raise _Invalid("is there twice")
        except _Invalid as error:
            fail(file, f"{where}: {error}")
        counts["queries"] += 1
        counts["stages"] += len(query["stages"])
        counts["edges"] += len(query["edges"])
        counts["tasks"] += sum(int(stage["num_tasks"]) for stage in query["stages"])
        arrivals[arrival.query.id] = arrival
        tasks += records
    nodes = tuple(Node(name, 1) for name in numbered("executor", options.executors))
    notes = (
        f"task times are those of {options.executors} executors, or of the number next to that "
        "with which a stage was measured",
        "when queries came is unknown: all come at once",
    )
    name = f"tpch-{data.get('scale', '')}".rstrip("-")
    workload = Workload(name, tuple(arrivals.values()), nodes=nodes)
    return Trace(name, NAME, workload, tuple(tasks), {}, counts, notes)


def _query(data: Mapping[str, Any], executors: int) -> tuple[Arrival, list[TaskRecord]]:
    query_id = f"q{_number(data, 'query'):02d}"
    stages: dict[int, Mapping[str, Any]] = {}
    for stage in _listed(data, "stages"):
        number = _number(stage, "stage")
        if number in stages:
            raise _Invalid(f"stage {number} is there twice")
        stages[number] = stage
    if not stages:
        raise _Invalid("has no stages")
    parents = _parents(data, stages)
    jobs, truth, records = [], {}, []
    for number, stage in stages.items():
        name = f"s{number}"
        try:
            _number(stage, "num_tasks")
            durations = _durations(stage, executors)
        except _Invalid as error:
            raise _Invalid(f"stage {number}: {error}") from error
        tasks = [
            TaskRecord(str(JobId(query_id, name)), MAP, milliseconds / 1e3)
            for milliseconds in durations
        ]
        upstream = sorted(parents[number])
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


def _parents(data: Mapping[str, Any], stages: Mapping[int, Any]) -> dict[int, list[int]]:
    """What each stage waits for; no stage may wait for itself in the end."""
    parents: dict[int, list[int]] = {number: [] for number in stages}
    for edge in _listed(data, "edges"):
        if not isinstance(edge, list) or len(edge) != 2:
            raise _Invalid(f"an edge is a pair of stages, got {_shown(edge)}")
        for end in edge:
            if isinstance(end, bool) or not isinstance(end, int) or end not in stages:
                raise _Invalid(
                    f"the edge {_shown(edge)} names the stage {_shown(end)}: there is none"
                )
        parents[edge[1]].append(edge[0])
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        circle = " to ".join(str(number) for number in error.args[1])
        raise _Invalid(f"the edges lead in a circle, from stage {circle}") from error
    return parents


def _durations(stage: Mapping[str, Any], executors: int) -> list[float]:
    """All tasks of a stage, from the run with the number of executors nearest to the given one."""
    waves = []
    for key in ("first_wave", "rest_wave"):
        wave = stage.get(key)
        if not isinstance(wave, dict):
            raise _Invalid(f"{key} must be an object of numbers of executors, {_got(stage, key)}")
        for count in wave:
            if not _EXECUTORS.fullmatch(count):
                raise _Invalid(f"{key} has {_shown(count)} where a number of executors is expected")
            _listed(wave, count, f"{key} of {count} executors")
        waves.append(wave)
    runs = {count for wave in waves for count in wave}
    if not runs:
        raise _Invalid("has no measured tasks")
    nearest = min(runs, key=lambda count: (abs(int(count) - executors), int(count)))
    durations = [value for wave in waves for value in wave.get(nearest, ())]
    if not durations:
        raise _Invalid(f"has no durations with {nearest} executors")
    for value in durations:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= LARGEST:
            problem = f"a duration with {nearest} executors must be a number of milliseconds"
            raise _Invalid(f"{problem}, got {_shown(value)}")
    return [float(value) for value in durations]


def _number(data: Any, key: str) -> int:
    if not isinstance(data, dict):
        raise _Invalid(f'an object with "{key}" is expected, got {_shown(data)}')
    if (number := whole_number(data.get(key))) < 0:
        raise _Invalid(f"{key} must be a whole number, {_got(data, key)}")
    return number


def _listed(data: Mapping[str, Any], key: str, name: str = "") -> list[Any]:
    found = data.get(key)
    if not isinstance(found, list):
        raise _Invalid(f"{name or key} must be a list, {_got(data, key)}")
    return found


def _got(data: Mapping[str, Any], key: str) -> str:
    return f"got {_shown(data[key])}" if key in data else "and is not there"


def _shown(value: Any) -> str:
    """The beginning of a value as it stands in the file."""
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}…"

"""Jobs of a workload file: phases of tasks or divisible work, and how long they really take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from queryard.core.errors import InvalidModel, unknown_name
from queryard.core.model import (
    OPERATORS,
    SPANS,
    Divisible,
    Job,
    Operator,
    Phase,
    Span,
    Table,
    TableInput,
)
from queryard.core.speedup import PERFECT, Speedup

from .error_curves import ERROR_CURVES, Points
from .fields import Fields
from .model import JobTruth
from .scan_costs import SCAN_COSTS, with_scan_costs

WORK_FIELDS = ("operator", "inputs", "scans", "scans_alone", "map", "reduce", "divisible")
JOB_FIELDS = ("name", "upstream", *WORK_FIELDS)
PARSING_FIELDS = ("format", "make", "make_s", "ride", "ride_s")
MAP_FIELDS = (
    *("tasks", "bytes", "sizes", "seconds", "times", "output", "output_bytes"),
    *PARSING_FIELDS,
)
REDUCE_FIELDS = (
    "tasks",
    "bytes",
    "sizes",
    "seconds",
    "times",
    "shuffle",
    "shuffle_s",
    "merge",
    "merge_s",
    "reduce",
    "reduce_s",
)
DIVISIBLE_FIELDS = (
    "width",
    "work",
    "work_s",
    "batches",
    "span",
    "nested",
    "growth",
    "growth_s",
    "batch_overhead",
    "batch_overhead_s",
    "sigma",
    "rows",
    "speedup",
    "errors",
    *PARSING_FIELDS,
)
SPEEDUP_FIELDS = ("serial", "most")
ONLY_JOB = "job"
_TRUTH = JobTruth()


def read_jobs(
    fields: Fields, tables: Mapping[str, Table]
) -> tuple[tuple[Job, ...], Mapping[str, JobTruth]]:
    """The query's `jobs`, or the single job with its fields in the query itself."""
    if "jobs" not in fields:
        job, only_truth = _read_job(fields, ONLY_JOB, (), tables)
        return (job,), {ONLY_JOB: only_truth}
    for name in WORK_FIELDS:
        if name in fields:
            fields.fail(name, "belongs into one of the query's jobs, since it has a list of them")
    members = fields.tables("jobs", "job", "name", JOB_FIELDS)
    if not members:
        fields.fail("jobs", "a query needs at least one job")
    names: list[str] = []
    for member in members:
        name = member.name("name")
        if name in names:
            member.fail("name", f"two jobs are called {name!r}")
        names.append(name)
    jobs: list[Job] = []
    truth: dict[str, JobTruth] = {}
    for member, name in zip(members, names, strict=True):
        upstream = member.names("upstream")
        for i, before in enumerate(upstream):
            if before not in names:
                member.fail("upstream", unknown_name("job", before, names), (i,))
        job, truth[name] = _read_job(member, name, upstream, tables)
        jobs.append(job)
    _reject_cycle(members, jobs)
    return tuple(jobs), truth


def _reject_cycle(members: list[Fields], jobs: list[Job]) -> None:
    """Remove jobs that wait for none of the remaining ones; what is left at the end is a cycle."""
    left = {job.name: job for job in jobs}
    while ready := [job.name for job in left.values() if left.keys().isdisjoint(job.upstream)]:
        for name in ready:
            del left[name]
    if not left:
        return
    walk = [next(iter(left))]
    while walk[-1] not in walk[:-1]:
        walk.append(next(name for name in left[walk[-1]].upstream if name in left))
    circle = walk[walk.index(walk[-1]) :]
    at_fault = next(m for m, job in zip(members, jobs, strict=True) if job.name == circle[0])
    at_fault.fail("upstream", f"the jobs wait for one another: {' -> '.join(circle)}")


def _read_job(
    fields: Fields, name: str, upstream: tuple[str, ...], tables: Mapping[str, Table]
) -> tuple[Job, JobTruth]:
    operator = cast(Operator, fields.choice("operator", OPERATORS, "extract"))
    scans = fields.names("scans")
    for i, table in enumerate(scans):
        if table not in tables:
            fields.fail("scans", unknown_name("table", table, tables), (i,))
        if not tables[table].splits:
            fields.fail("scans", f"the table {table!r} has no splits to read", (i,))
    alone = fields.flag("scans_alone")
    inputs = _read_inputs(fields, scans, tables)
    if "divisible" in fields:
        for other in ("map", "reduce"):
            if other in fields:
                fields.fail(other, "divisible work has no phases; leave this out")
        if len(scans) > 1:
            fields.fail("scans", "divisible work scans one table at most; name the largest")
        given = fields.table("divisible", DIVISIBLE_FIELDS)
        divisible, truth = _read_divisible(given)
        truth = _read_parsing(given, truth, scans)
        whole = Job(name, operator, upstream, inputs, None, None, scans, divisible, alone)
        return whole, truth
    if "map" not in fields and not scans:
        fields.fail(None, "has no work; give it map = {…}, divisible = {…}, or jobs")
    sizes = tuple(split.bytes for table in scans for split in tables[table].splits)
    if "map" in fields:
        maps = fields.table("map", MAP_FIELDS)
        map_phase = _read_phase(maps, sizes)
        map_times_s = _read_times(maps, map_phase)
        truth = JobTruth(
            map_s=maps.seconds("seconds", _mean(map_times_s, _TRUTH.map_s)),
            map_output_bytes=maps.bytes("output", 0.0),
            map_times_s=map_times_s,
        )
        truth = _read_parsing(maps, truth, scans)
    else:
        map_phase, truth = _phase(sizes), _TRUTH
    reduce_phase = None
    if "reduce" in fields:
        reduces = fields.table("reduce", REDUCE_FIELDS)
        reduce_phase = _read_phase(reduces, ())
        if "seconds" in reduces and "reduce_s" in reduces:
            reduces.fail("reduce_s", "'seconds' says the same; give one of them")
        times_s = _read_times(reduces, reduce_phase)
        shuffle_s, merge_s = reduces.seconds("shuffle", 0.0), reduces.seconds("merge", 0.0)
        rest_s = max(0.0, _mean(times_s, 0.0) - shuffle_s - merge_s)
        truth = replace(
            truth,
            shuffle_s=shuffle_s,
            merge_s=merge_s,
            reduce_s=reduces.seconds("seconds", reduces.seconds("reduce", rest_s)),
            reduce_times_s=times_s,
        )
    phases = map_phase, reduce_phase
    return Job(name, operator, upstream, inputs, *phases, scans, scans_alone=alone), truth


def _read_parsing(fields: Fields, truth: JobTruth, scans: tuple[str, ...]) -> JobTruth:
    """What parsing for all and riding take: `format`, or `make` and `ride` by themselves."""
    given = [name for name in PARSING_FIELDS if name in fields]
    if not given:
        return truth
    if len(scans) != 1:
        fields.fail(given[0], "only a job that scans one table can share what it parses")
    if "format" in fields:
        truth = with_scan_costs(truth, fields.choice("format", tuple(SCAN_COSTS), "text"))
    return replace(
        truth,
        make_s=fields.seconds("make", truth.make_s),
        ride_s=fields.seconds("ride", truth.ride_s),
    )


def _read_inputs(
    fields: Fields, scans: tuple[str, ...], tables: Mapping[str, Table]
) -> tuple[TableInput, ...]:
    """`inputs = { table = size }`; left out, what is scanned is what is read."""
    if "inputs" not in fields:
        return tuple(TableInput(name, tables[name].bytes) for name in scans)
    inputs = fields["inputs"]
    entries = fields.table("inputs", inputs if isinstance(inputs, dict) else ())
    return tuple(TableInput(name, entries.bytes(name)) for name in inputs)


def _read_phase(fields: Fields, split_sizes: tuple[float, ...]) -> Phase:
    """The tasks of a phase; where tables are scanned there is one for each of their splits."""
    tasks = fields.whole("tasks", len(split_sizes) or None)
    if split_sizes and tasks != len(split_sizes):
        problem = f"{tasks} tasks for {len(split_sizes)} splits of the scanned tables"
        fields.fail("tasks", f"{problem}; leave it out, or scan nothing")
    if "sizes" in fields:
        if "bytes" in fields:
            fields.fail("bytes", "'sizes' says it task by task; give one of them")
        sizes = fields.sizes("sizes")
        if len(sizes) != tasks:
            fields.fail("sizes", f"{len(sizes)} sizes for {tasks} tasks; give one per task")
        return Phase(tasks, sizes=sizes)
    if "bytes" in fields or not split_sizes:
        return Phase(tasks, fields.bytes("bytes", 0.0))
    return _phase(split_sizes)


def _read_times(fields: Fields, phase: Phase) -> tuple[float, ...]:
    """How long each task takes, where they were measured one by one."""
    if "times" not in fields:
        return ()
    times_s = fields.times("times")
    if len(times_s) != phase.tasks:
        fields.fail("times", f"{len(times_s)} times for {phase.tasks} tasks; give one per task")
    return times_s


def _mean(values: tuple[float, ...], default: float) -> float:
    return sum(values) / len(values) if values else default


def _phase(split_sizes: tuple[float, ...]) -> Phase:
    """One task for each split."""
    if len(set(split_sizes)) == 1:
        return Phase(len(split_sizes), split_sizes[0])
    return Phase(len(split_sizes), sizes=split_sizes)


def _read_divisible(fields: Fields) -> tuple[Divisible, JobTruth]:
    nested = fields.flag("nested")
    growth_s = fields.seconds("growth", 0.0)
    if growth_s and not nested:
        fields.fail(None, "work grows from batch to batch only if nested = true")
    truth = JobTruth(
        work_s=fields.seconds("work"),
        growth_s=growth_s,
        batch_overhead_s=fields.seconds("batch_overhead", _TRUTH.batch_overhead_s),
        sigma=fields.number("sigma", _TRUTH.sigma, least=0),
        rows=fields.number("rows", _TRUTH.rows, least=0),
        speedup=_read_speedup(fields),
        errors=_read_errors(fields),
    )
    batches = fields.whole("batches", 1)
    span = cast(Span, fields.choice("span", SPANS, usual_span(batches)))
    return Divisible(fields.whole("width"), batches, nested, span), truth


def _read_errors(fields: Fields) -> Points:
    """`errors = "q3 blocks"`, a curve that was measured, or a list of [share, error]."""
    if "errors" not in fields:
        return ()
    given = fields["errors"]
    if isinstance(given, str):
        return ERROR_CURVES[fields.choice("errors", tuple(ERROR_CURVES), "normal")]
    if not isinstance(given, list | tuple):
        fields.fail("errors", "give the name of a curve, or a list of [share, error]")
    points = []
    for i, pair in enumerate(given):
        numbers = isinstance(pair, list) and [n for n in pair if isinstance(n, int | float)]
        if not numbers or len(numbers) != 2 or len(pair) != 2:
            fields.fail("errors", f"expected a pair [share, error], got {pair!r}", (i,))
        points.append((float(numbers[0]), float(numbers[1])))
    try:
        return JobTruth(errors=tuple(points)).errors
    except InvalidModel as error:
        fields.fail("errors", str(error))


def _read_speedup(fields: Fields) -> Speedup:
    """`speedup = { serial = 0.1, most = 16 }`; perfect where it is left out."""
    if "speedup" not in fields:
        return PERFECT
    given = fields.table("speedup", SPEEDUP_FIELDS)
    most = given.number("most", 1.0, least=1) if "most" in given else math.inf
    return Speedup(given.share("serial", 0.0), most)


def usual_span(batches: int) -> Span:
    """Mini-batches run on the whole cluster, as on Spark; what runs as a whole on one host."""
    return "host" if batches == 1 else "cluster"

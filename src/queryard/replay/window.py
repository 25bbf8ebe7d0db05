"""From a span of a history to a workload, whichever sessions it was recorded by.

Unlike `recorded`, which has one whole session from its journal, this reads the rows of the queries
that were asked in the span; so it also works where the beginning of the journal is kept no more. A
divisible job takes the slot-seconds that it held, the tasks of a staged one their mean. A query
that was answered by the run of another query is left out. One that was cancelled is simulated with
its expected size, and cancelled at the same time.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from queryard.core import events as ev
from queryard.core.errors import InvalidModel, QueryardError
from queryard.core.model import MAP, REDUCE, Divisible, Job, Node, Phase, Query, Table, Tenant
from queryard.core.readable import several
from queryard.history import HistoryReader, QueryRecord, SessionRecord
from queryard.workload.model import Arrival, JobTruth, Workload
from queryard.workload.traces import Trace

from .books import LEAST_S

# A comparison of more takes too long, and too much memory.
MOST_QUERIES = 50_000
# Of a normal distribution: the median of absolute deviations, over the standard deviation.
MEDIAN_DEVIATION = 0.6745
FORMAT = "history"


@dataclass(frozen=True, slots=True)
class Window:
    """A span of a history, as a trace that `queryard.compare` takes.

    `estimates` says what policies knew: the work of each query, as far off as it was predicted.
    """

    trace: Trace
    estimates: str


@dataclass(frozen=True, slots=True)
class _Part:
    """What one session adds; times are on its clock, `shift_s` carries them to the workload's."""

    session: SessionRecord
    records: Mapping[str, QueryRecord]
    shift_s: float
    # Slot-seconds of others that the run of a query has answered.
    brought_s: Mapping[str, float]
    jobs: Mapping[str, Sequence[Mapping[str, Any]]]
    task_s: Mapping[tuple[str, str], float]
    specs: Mapping[str, Query]
    tables: Mapping[str, Table]


def window(
    reader: HistoryReader,
    since: float,
    until: float,
    *,
    slots: int | None = None,
    tenants: Sequence[Tenant] = (),
    most: int = MOST_QUERIES,
) -> Window:
    """The queries that were asked from `since` to before `until`, in seconds since 1970.

    They run on the slots of the last session among them, or on so many; `tenants` have shares.
    """
    if not since < until:
        raise QueryardError(
            f"the window begins at {_moment(since)} and ends at {_moment(until)}; let it end later"
        )
    found = reader.queries(since=since, until=until, limit=most + 1)
    if len(found) > most:
        raise QueryardError(
            f"more than {most:,} queries were asked in this window, which are too many to be "
            "compared; choose a shorter one"
        )
    asked = [record for record in found if record.outcome != "refused"]
    parts = _parts(reader, asked, until)
    built = [_arrival(part, record) for part in parts for record in part.records.values()]
    arrivals = [arrival for arrival in built if arrival is not None]
    if not arrivals:
        raise QueryardError(
            f"no query has run from {_moment(since)} to {_moment(until)}; choose another window, "
            "or see queryard history"
        )
    tables, arrivals, strayed = _with_tables(parts, arrivals)
    nodes = _nodes(reader, parts[-1].session, slots)
    shared = sum(bool(record.twin_of) for record in asked)
    notes = _notes(reader, parts, until, shared, strayed, slots)
    workload = Workload(
        f"{_moment(since)} to {_moment(until)}",
        tuple(sorted(arrivals, key=lambda arrival: (arrival.query.submit_s, arrival.query.id))),
        tuple(tables.values()),
        nodes,
        tuple(tenants),
    )
    trace = Trace(workload.name, FORMAT, workload, (), _ends(parts, workload), {}, tuple(notes))
    return Window(trace, _estimates(asked))


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _parts(reader: HistoryReader, asked: Sequence[QueryRecord], until: float) -> list[_Part]:
    by_session: defaultdict[str, dict[str, QueryRecord]] = defaultdict(dict)
    for record in asked:
        by_session[record.session][record.query] = record
    origin = min((record.asked_at for record in asked), default=0.0)
    parts = []
    for session in reader.sessions():
        records = by_session.get(session.session)
        if not records:
            continue
        low = min(record.asked_s for record in records.values())
        span = (session.session, low, until - session.began_at)
        jobs: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for row in reader.jobs_of_span(*span):
            jobs[row["query"]].append(row)
        staged = any(row["maps"] for rows in jobs.values() for row in rows)
        specs, tables = _specs(reader, session) if staged else ({}, {})
        parts.append(
            _Part(
                session,
                records,
                session.began_at - origin,
                _brought_s(records.values()),
                jobs,
                reader.task_times(*span) if staged else {},
                specs,
                tables,
            )
        )
    return parts


def _brought_s(records: Iterable[QueryRecord]) -> dict[str, float]:
    brought: defaultdict[str, float] = defaultdict(float)
    for record in records:
        if record.twin_of:
            brought[record.twin_of] += record.held_s or 0.0
    return brought


def _specs(
    reader: HistoryReader, session: SessionRecord
) -> tuple[dict[str, Query], dict[str, Table]]:
    """Queries as they were submitted, with the tables they scan, as far as the journal is kept."""
    submitted = reader.events(session.session, "QuerySubmitted", 0.0, math.inf)
    changed = reader.events(session.session, "TableChanged", 0.0, math.inf)
    queries = [event.query for event in submitted if isinstance(event, ev.QuerySubmitted)]
    tables = [event.table for event in changed if isinstance(event, ev.TableChanged)]
    return {query.id: query for query in queries}, {table.name: table for table in tables}


def _arrival(part: _Part, record: QueryRecord) -> Arrival | None:
    """A query with what was done for it; None for one that did not run on its own."""
    rows = part.jobs.get(record.query, ())
    if not rows or record.twin_of in part.records:
        return None
    spec = part.specs.get(record.query)
    jobs = tuple(map(_job, rows)) if spec is None else spec.jobs
    try:
        query = Query(
            record.query,
            jobs,
            tenant=record.tenant,
            priority=record.priority,
            submit_s=max(0.0, record.asked_s + part.shift_s),
            deadline_s=None if record.deadline_s is None else record.deadline_s + part.shift_s,
            memory_bytes=float(record.memory_bytes),
        )
    except InvalidModel:
        return None  # jobs of which only some are in the history
    held_s = (record.held_s or 0.0) + part.brought_s.get(record.query, 0.0)
    finished = record.outcome in ("finished", "failed")
    work_s = held_s if finished else max(held_s, record.predicted_work_s or 0.0)
    truth = {job.name: _truth(part, query, job, work_s) for job in jobs}
    cancelled = record.outcome == "cancelled" and record.ended_s is not None
    return Arrival(query, truth, (record.ended_s or 0.0) + part.shift_s if cancelled else None)


def _job(row: Mapping[str, Any]) -> Job:
    name = row["job"].partition("/")[2]
    upstream = tuple(json.loads(row["upstream"]))
    if row["width"]:
        return Job(name, row["operator"], upstream, divisible=Divisible(row["width"]))
    reduce = Phase(row["reduces"]) if row["reduces"] else None
    return Job(name, row["operator"], upstream, map=Phase(max(1, row["maps"])), reduce=reduce)


def _truth(part: _Part, query: Query, job: Job, work_s: float) -> JobTruth:
    if job.divisible is not None:
        return JobTruth(work_s=max(work_s, LEAST_S))
    name = query.job_id(job.name)
    return JobTruth(
        map_s=part.task_s.get((name, MAP)) or LEAST_S,
        reduce_s=part.task_s.get((name, REDUCE)) or LEAST_S,
    )


def _with_tables(
    parts: Sequence[_Part], arrivals: Sequence[Arrival]
) -> tuple[dict[str, Table], list[Arrival], int]:
    """The tables as they were last; what scans a table as it was before scans none."""
    tables = {name: table for part in parts for name, table in part.tables.items()}
    found, strayed = [], 0
    for arrival in arrivals:
        jobs = tuple(_scanning(job, tables) for job in arrival.query.jobs)
        if jobs != arrival.query.jobs:
            strayed += 1
            arrival = replace(arrival, query=replace(arrival.query, jobs=jobs))
        found.append(arrival)
    used = {name for arrival in found for job in arrival.query.jobs for name in job.scans}
    return {name: table for name, table in tables.items() if name in used}, found, strayed


def _scanning(job: Job, tables: Mapping[str, Table]) -> Job:
    known = all(name in tables for name in job.scans)
    splits = sum(len(tables[name].splits) for name in job.scans) if known else 0
    if job.scans and (not known or (job.map is not None and job.map.tasks != splits)):
        return replace(job, scans=())
    return job


def _nodes(reader: HistoryReader, session: SessionRecord, slots: int | None) -> tuple[Node, ...]:
    """The slots of a session, or so many, with its memory."""
    joined = reader.events(session.session, "NodeJoined", 0.0, math.inf)
    nodes = tuple(event.node for event in joined if isinstance(event, ev.NodeJoined))
    if not nodes:  # the beginning of its journal is kept no more
        nodes = (Node("here", session.slots, float(session.memory_bytes)),)
    distinct = tuple({node.id: node for node in nodes}.values())
    if slots is None:
        return distinct
    if slots < 1:
        raise QueryardError(f"slots: must be at least 1, got {slots!r}")
    memory = math.fsum(node.memory_bytes for node in distinct)
    kept = math.fsum(node.kept_bytes for node in distinct)
    return (Node("here", slots, memory, kept_bytes=kept),)


def _ends(parts: Sequence[_Part], workload: Workload) -> dict[str, float]:
    """When queries ended that gave a result, by the clock of the workload."""
    there = {arrival.query.id for arrival in workload.arrivals}
    return {
        record.query: record.ended_s + part.shift_s
        for part in parts
        for record in part.records.values()
        if record.query in there and record.outcome == "finished" and record.ended_s is not None
    }


def _estimates(asked: Sequence[QueryRecord]) -> str:
    """How far predictions were off: the true work, with a log-normal error as large."""
    misses = [
        abs(math.log(record.work_s / record.predicted_work_s))
        for record in asked
        if record.outcome == "finished" and record.work_s and record.predicted_work_s
    ]
    error = statistics.median(misses) / MEDIAN_DEVIATION if misses else 0.0
    return f"oracle:{error:.2f}" if error >= 0.005 else "oracle"


def _notes(
    reader: HistoryReader,
    parts: Sequence[_Part],
    until: float,
    shared: int,
    strayed: int,
    slots: int | None,
) -> list[str]:
    notes = []
    if shared:
        queries = several(shared, "query")
        notes.append(f"answered by the run of another query, and not in the table: {queries}")
    if strayed:
        queries = several(strayed, "query")
        notes.append(f"{queries} scanned a table that has changed since, and rides alone")
    sizes = {part.session.slots for part in parts}
    if len(sizes) > 1 and slots is None:
        last = parts[-1].session.slots
        notes.append(f"sessions had other numbers of slots; all is simulated on {last}")
    if any(_was_paused(reader, part, until) for part in parts):
        notes.append("queries were paused for some of the time, which is not simulated")
    return notes


def _was_paused(reader: HistoryReader, part: _Part, until: float) -> bool:
    """Whether a pause of a session lasted into the window, or began in it."""
    name, high = part.session.session, until - part.session.began_at
    low = min(record.asked_s for record in part.records.values())
    paused = reader.events(name, "Paused", 0.0, high)
    resumed = [event.time_s for event in reader.events(name, "Resumed", 0.0, high)]
    ends = (min((at for at in resumed if at > pause.time_s), default=high) for pause in paused)
    return any(end > low for end in ends)

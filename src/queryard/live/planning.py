"""From a request to staged work; not on the loop's thread."""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING

from queryard.engine.instances.pool import InstancePool
from queryard.engine.kept_tables import KeptColumns, columns_read
from queryard.engine.sealing.access import Reach
from queryard.engine.segments import SegmentStore
from queryard.sql.catalog import Catalog, Table
from queryard.sql.catalog.canonical import is_text_table
from queryard.sql.catalog.file_table import FileTable
from queryard.sql.catalog.segments import known_segments

from .request import QueryRequest
from .sharing import MOST, Choice
from .work.base import Work

if TYPE_CHECKING:
    from queryard.engine.staged.reads import SegmentReads
    from queryard.sql.planner import StagedPlan

    from .work.staged import MakeTasks, StagedTaskSet

# What a query that rides reserves at least, and for each byte that is expected of its jobs.
LEAST_BYTES = 192 << 20
HELD_FACTOR = 4.0
# How often a query is planned anew because a file has changed meanwhile.
_ATTEMPTS = 3


def plan_work(
    query: str,
    request: QueryRequest,
    memory_bytes: int,
    reach: Reach,
    make_tasks: MakeTasks,
    segments: SegmentStore,
) -> Work | KeptColumns:
    """The jobs and tasks of a query; a `QueryardError` says why it cannot be split.

    It sees the tables within its client's reach only. `make_tasks` says where its tasks run.

    If its plan was left open and all it reads of text is kept in parsed segments, the columns that
    it reads: DuckDB then runs it over these, at less cost than tasks.
    """
    # The planner takes half a second to import, and most sessions never need it.
    from queryard.engine.staged.reads import SegmentReads
    from queryard.sql.planner import NotStageable

    from .work.staged import StagedWork

    catalog = reach.catalog
    try:
        plan, tables = planned(request, catalog, segments.target_bytes)
    except NotStageable:
        if kept := unsplit_columns(request, catalog, segments):
            return kept
        raise
    texts = {name: table for name, table in tables.items() if is_text_table(table)}
    if request.choice is not None:
        if kept := complete_columns(plan, catalog, segments):
            return kept
        check_kept(request.choice, plan, catalog, segments)
    shares = frozenset(texts)
    keeps = frozenset[str]() if request.choice is None else request.choice.keeps
    reads = SegmentReads(texts, segments, keeps) if texts else None
    if request.memory_bytes is None and plan.scanned().keys() & texts.keys():
        memory_bytes = min(memory_bytes, ridden_bytes(plan))
    tasks = make_tasks(plan, query, memory_bytes, reads, reach)
    return StagedWork(query, plan, memory_bytes, tasks, shares)


def tasks_here(pool: InstancePool, temp: Path) -> MakeTasks:
    """Tasks run in this process, with memory of its pool."""

    def make(
        plan: StagedPlan, query: str, memory_bytes: int, reads: SegmentReads | None, reach: Reach
    ) -> StagedTaskSet:
        from .work.staged import TasksHere

        return TasksHere(plan, query, memory_bytes, pool, temp, reads, reach)

    return make


def unsplit_columns(request: QueryRequest, catalog: Catalog, segments: SegmentStore) -> KeptColumns:
    """The columns that a query reads which cannot be split, if they are kept; else nothing."""
    if request.choice is None or not request.scans:
        return ()
    named = [
        table
        for table in catalog.tables.values()
        if isinstance(table, FileTable)
        and table.name.lower() in request.names
        and not table.elsewhere
    ]
    return columns_read(request.written, named, segments)


def complete_columns(plan: StagedPlan, catalog: Catalog, segments: SegmentStore) -> KeptColumns:
    """The columns that a plan reads of tables of text, if all of them are kept; else nothing."""
    columns = _text_columns(plan, catalog)
    for name, wanted in columns.items():
        with segments.complete(catalog[name], wanted) as relation:
            if relation is None:
                return ()
    return tuple(columns.items())


def check_kept(choice: Choice, plan: StagedPlan, catalog: Catalog, segments: SegmentStore) -> None:
    """Raise `NotStageable` if a plan was chosen for what is kept, and reads other columns."""
    if not choice.needs_kept:
        return
    from queryard.sql.planner import NotStageable

    for name, wanted in _text_columns(plan, catalog).items():
        known = known_segments(catalog[name], segments.target_bytes)
        if known is None or segments.share_kept(known, wanted) < MOST:
            listed = ", ".join(wanted)
            raise NotStageable(f"the parsed segments of {name} do not have all of {listed}")


def _text_columns(plan: StagedPlan, catalog: Catalog) -> dict[str, tuple[str, ...]]:
    """The columns that a plan reads of tables of text, by table."""
    from queryard.sql.planner.plan import TableRead

    columns: dict[str, dict[str, None]] = {}
    for job in plan.jobs:
        for branch in job.branches:
            read = branch.read
            if isinstance(read, TableRead) and is_text_table(catalog[read.table]):
                columns.setdefault(read.table, {}).update(dict.fromkeys(read.columns))
    return {name: tuple(wanted) for name, wanted in columns.items()}


def ridden_bytes(plan: StagedPlan) -> int:
    """What a query that rides reserves: many must ride at once, and most hold little.

    If it is too little, the query runs again, as DuckDB would run it, with the usual reservation.
    """
    held = sum(job.bytes_expected + job.shuffle_bytes_expected for job in plan.jobs)
    return LEAST_BYTES + int(HELD_FACTOR * held)


def largest_table(catalog: Catalog, names: Set[str]) -> tuple[str, float] | None:
    """Of the tables with these names, in lower case, the one with the most bytes, and these.

    Only files count: what is in memory or in a database of the driver's is nowhere else.
    """
    found = [
        (float(table.bytes), table.key)
        for table in catalog.tables.values()
        if isinstance(table, FileTable) and table.name.lower() in names
    ]
    size_bytes, key = max(found, default=(0.0, ""))
    return (key, size_bytes) if key else None


def planned(
    request: QueryRequest, catalog: Catalog, split_bytes: float
) -> tuple[StagedPlan, Mapping[str, Table]]:
    """A plan, and the tables it scans as they were when it was made."""
    from queryard.sql.planner import Asked, NotStageable, plan_staged

    sql, asked = request.written, None
    if request.parameters:
        asked = Asked(request.statements[0].sql, request.bound)
    for _ in range(_ATTEMPTS):
        plan = plan_staged(sql, catalog, split_bytes=split_bytes, asked=asked)
        scanned = plan.scanned()
        tables = {name: catalog[name] for name in scanned}
        if all(tables[name].fingerprint == read.fingerprint for name, read in scanned.items()):
            return plan, tables
    raise NotStageable("a file changes while the query is planned")

"""What a launch reads: from tasks to splits, under the tables as they are at that moment."""

from __future__ import annotations

from collections.abc import Sequence

from queryard.core.model import MAP, Job, Query, Split, Table, TaskId

from .rows import Reading

_NOTHING = Reading()

PlacedSplit = tuple[tuple[str, int], Split]


class Scans:
    """The tables and jobs seen so far.

    The map tasks of a job read the splits of the tables it scans, one table after another. A
    map task without a split reads its phase's bytes if the job starts the query; behind other
    jobs it reads their output, which is no scan.
    """

    def __init__(self) -> None:
        self._tables: dict[str, Table] = {}
        self._jobs: dict[str, Job] = {}
        self._splits: dict[tuple[str, ...], list[PlacedSplit]] = {}

    def change_table(self, table: Table) -> None:
        self._tables[table.name] = table
        self._splits.clear()

    def add_query(self, query: Query) -> None:
        for job in query.jobs:
            self._jobs[query.job_id(job.name)] = job

    def read(self, tasks: Sequence[TaskId], node: str) -> Reading:
        """What these tasks read when they run together on the node."""
        once: dict[tuple[str, int], float] = {}
        single_bytes = alone_bytes = 0.0
        placed = local = 0
        for task in tasks:
            job = self._jobs.get(task.job)
            if job is None or job.map is None or task.kind != MAP:
                continue
            splits = self._splits_of(job.scans)
            if task.index < len(splits):
                place, split = splits[task.index]
                once[place] = size = split.bytes or job.map.size_of(task.index)
                placed += bool(split.nodes)
                local += node in split.nodes
            else:
                size = 0.0 if job.upstream else job.map.size_of(task.index)
                single_bytes += size
            alone_bytes += size
        if not alone_bytes and not placed:
            return _NOTHING
        return Reading(single_bytes + sum(once.values()), alone_bytes, placed, local)

    def _splits_of(self, scans: tuple[str, ...]) -> list[PlacedSplit]:
        """The splits of these tables in a row; remembered, because many jobs scan the same."""
        splits = self._splits.get(scans)
        if splits is None:
            splits = [
                ((name, number), split)
                for name in scans
                if name in self._tables
                for number, split in enumerate(self._tables[name].splits)
            ]
            self._splits[scans] = splits
        return splits

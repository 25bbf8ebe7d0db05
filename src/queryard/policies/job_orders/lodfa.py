"""Depth first, but jobs that read the same table together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from queryard.core.entities import JobState, QueryState
from queryard.core.model import Job
from queryard.core.parts import JobOrder
from queryard.core.state import State

from .dfa import deepest

# Tables of a query, largest first: which of its jobs mostly read it.
Sharers = tuple[tuple[int, ...], ...]


class LocalDepthFirst(JobOrder):
    """Serve jobs that share an input table side by side, else the deepest. O(jobs).

    TLS Alg. 2: LA(e) are the unfinished jobs for which table e is more than half of the input.
    Of the largest table with an LA of two or more, serve the runnable job with the largest
    WRD; without one, try the next table; without any, follow DFA. As TPC-H Q21 reads lineitem
    in three jobs, their tasks run in turn and find its splits still in memory.

    A table is as large as the most any job of the query reads of it. Where a job's maps are
    given more bytes than its tables hold, the rest comes from jobs upstream and counts too.
    """

    name = "lodfa"
    citation = "TLS §4.2, Alg. 2"

    def __init__(self) -> None:
        self._sharers: dict[int, Sharers] = {}

    def fork(self) -> Self:
        twin = super().fork()
        twin._sharers = self._sharers.copy()
        return twin

    def pick(self, jobs: Sequence[JobState], state: State) -> JobState:
        query = jobs[0].query
        sharers = self._sharers.get(query.uid)
        if sharers is None:
            sharers = self._learn(query, state)
        for places in sharers:
            unfinished = [query.jobs[at] for at in places if not query.jobs[at].done]
            runnable = [job for job in unfinished if job in jobs]
            if len(unfinished) >= 2 and runnable:
                return min(runnable, key=lambda job: (-job.left_s, job.uid))
        return deepest(jobs)

    def _learn(self, query: QueryState, state: State) -> Sharers:
        if len(self._sharers) > 2 * len(state.queries) + 100:
            active = {query.uid for query in state.queries.values()}
            self._sharers = {uid: them for uid, them in self._sharers.items() if uid in active}
        found = self._sharers[query.uid] = find_sharers(query, state)
        return found


def find_sharers(query: QueryState, state: State) -> Sharers:
    """The tables that two or more jobs mostly read, as places in the query's list of jobs."""
    sizes: dict[str, float] = {}
    sharers: dict[str, list[int]] = {}
    for at, job in enumerate(query.jobs):
        read = _bytes_read(job.spec, state)
        total = max(sum(read.values()), job.spec.map.bytes if job.spec.map else 0.0)
        for table, size in read.items():
            sizes[table] = max(size, sizes.get(table, 0.0))
            if size > total / 2:
                sharers.setdefault(table, []).append(at)
    shared = [table for table, jobs in sharers.items() if len(jobs) >= 2]
    shared.sort(key=lambda table: (-sizes[table], table))
    return tuple(tuple(sharers[table]) for table in shared)


def _bytes_read(spec: Job, state: State) -> dict[str, float]:
    read: dict[str, float] = {}
    if spec.inputs:
        for item in spec.inputs:
            read[item.table] = read.get(item.table, 0.0) + item.bytes
    else:
        for table in spec.scans:
            read[table] = read.get(table, 0.0) + state.tables[table].bytes
    return read

"""Queries are submitted, start, complete, fail and are cancelled."""

from __future__ import annotations

import math

from ..entities import JobState, QueryState
from ..errors import InvalidEvent, unknown_name
from ..events import MemoryChanged, Paused, QueryCancelled, QuerySubmitted, Resumed
from ..lifecycle import next_stage
from ..state import State
from . import estimates

# How many idempotency keys are remembered; the oldest are forgotten first.
KEYS_KEPT = 100_000


def submitted(state: State, event: QuerySubmitted) -> None:
    spec = event.query
    if spec.idempotency_key and spec.idempotency_key in state.keys:
        return
    if spec.id in state.queries:
        raise InvalidEvent(f"a query with the id {spec.id!r} is active already")
    if spec.idempotency_key:
        state.keys[spec.idempotency_key] = spec.id
        if len(state.keys) > KEYS_KEPT:
            del state.keys[next(iter(state.keys))]
    query = QueryState(state.new_uid(), spec, event.time_s)
    by_name = {}
    for job_spec in spec.jobs:
        job = JobState(state.new_uid(), query, job_spec)
        job.ready_s = event.time_s
        divisible = job_spec.divisible
        if divisible is not None and state.settings.lease_span == "host":
            job.stays = divisible.span == "host"
        by_name[job_spec.name] = job
        query.jobs.append(job)
        state.jobs[job.id] = job
    for job in query.jobs:
        for name in job.spec.upstream:
            by_name[name].downstream.append(job)
    state.queries[spec.id] = query
    state.notes.submitted.append(query)
    state.notes.readied.extend(job for job in query.jobs if job.ready)
    state.notes.touched.extend(query.jobs)
    problem = _impossible(state, query)
    if problem:
        end(state, query, "failed", problem)
        return
    for job in query.jobs:
        job.scanned = tuple(
            (state.tables[name], state.local_splits[name]) for name in job.spec.scans
        )


def _impossible(state: State, query: QueryState) -> str:
    """Why a query can never run here, or nothing."""
    for job in query.jobs:
        for name in job.spec.scans:
            if name not in state.tables:
                return f"job {job.id}: {unknown_name('table', name, state.tables)}"
        splits = sum(len(state.tables[name].splits) for name in job.spec.scans)
        if job.spec.scans and job.map and splits != job.map.spec.tasks:
            return f"job {job.id} has {job.map.spec.tasks} map tasks for {splits} splits"
    return _too_large(state, query)


def _too_large(state: State, query: QueryState) -> str:
    """Why the memory of a query can never be reserved here, or nothing."""
    demand, most = query.memory_bytes, state.most_memory_bytes
    if (state.nodes or most) and demand > most:
        return (
            f"it needs {demand:g} bytes of memory and the cluster has {most:g}; "
            "add nodes or lower its demand"
        )
    most = state.most_host_bytes
    if most and demand > most and query.is_of_one_host:
        return (
            f"it needs {demand:g} bytes of memory on one host and the largest has {most:g}; "
            "add a larger host or lower its demand"
        )
    return ""


def resized(state: State, event: MemoryChanged) -> None:
    """A waiting query asks for other memory than before; a started one holds it at once."""
    memory_bytes = event.memory_bytes
    if not 0 <= memory_bytes < math.inf:
        raise InvalidEvent(f"{event!r}: memory is a finite number of bytes, at least 0")
    query = state.queries.get(event.query)
    if query is None:
        return  # it ended in the meantime
    if memory_bytes < query.memory_bytes:
        state.notes.capacity = True
    query.memory_bytes = memory_bytes
    if query.started_s is not None:
        _reserve(state, query, memory_bytes)
        return
    state.notes.regated.append(query)
    if not memory_bytes and query.stage == "waiting":
        state.notes.touched.extend(query.jobs)
        start(state, query)  # its run has begun, with memory that another one holds
        return
    problem = _too_large(state, query)
    if problem and query.stage == "waiting":
        end(state, query, "failed", problem)


def start(state: State, query: QueryState) -> None:
    """Reserve the memory of a query; it is held until the query ends."""
    query.stage = next_stage(query.id, query.stage, "started")
    query.started_s = state.now
    if query.memory_bytes:
        _reserve(state, query, query.memory_bytes)


def wait_again(state: State, query: QueryState) -> None:
    """A query of which all work is lost gives its memory back and waits to be started again."""
    if query.stage != "running" or not all(job.is_untouched for job in query.jobs):
        return
    query.stage = next_stage(query.id, query.stage, "returned")
    query.started_s = None
    notes = state.notes
    notes.rare = True
    notes.touched.extend(query.jobs)
    if query.memory_bytes:
        _reserve(state, query, 0.0)
        notes.regated.append(query)
        notes.capacity = True
        problem = _too_large(state, query)
        if problem:
            end(state, query, "failed", problem)


def cancelled(state: State, event: QueryCancelled) -> None:
    query = state.queries.get(event.query)
    if query is not None and query.stage in ("waiting", "running"):
        end(state, query, "cancelled", event.cause)


def paused(state: State, event: Paused) -> None:
    """No waiting query starts; a second pause only says on whose word it is now."""
    state.paused_by = event.by
    _look_at_waiting(state)


def resumed(state: State, event: Resumed) -> None:
    state.paused_by = None
    _look_at_waiting(state)


def _look_at_waiting(state: State) -> None:
    """What waiting queries could use a slot for has changed."""
    for query in state.queries.values():
        if query.stage == "waiting":
            state.notes.touched.extend(query.jobs)


def end(state: State, query: QueryState, move: str, cause: str) -> None:
    """Stop a query: it is gone when the last thing that runs for it has ended."""
    query.stage = next_stage(query.id, query.stage, move)
    query.cause = cause
    notes = state.notes
    notes.rare = True
    notes.touched.extend(query.jobs)
    ids = {job.id for job in query.jobs}
    for number, run in state.running.items():
        others = tuple(task for task in run.tasks if task.job not in ids)
        if not others:
            if number not in state.killed:
                state.killed.add(number)
                notes.kills.append(number)
        elif len(others) < len(run.tasks):
            # The scan goes on for the other riders; this query's part is dropped.
            for task in run.tasks:
                if task.job in ids:
                    state.jobs[task.job].slots -= 1
                    query.slots -= 1
            state.running[number] = run._replace(tasks=others)
    notes.lease_cuts.extend(job for job in query.jobs if job.leases)
    clear(state, query)


def clear(state: State, query: QueryState) -> None:
    """An ending query is gone once nothing runs for it."""
    if query.slots == 0 and query.id in state.queries:
        query.stage = next_stage(query.id, query.stage, "cleared")
        _forget(state, query)


def job_done(state: State, job: JobState) -> None:
    """A job is complete: those that waited for it become ready, or the query is complete."""
    if job.done:
        return
    job.done = True
    query = job.query
    if job.map is not None and job.map.left:
        # Maps that no reduce needs any more are no work, and no scan shall run for them.
        estimates.update_totals(state, query)
        state.notes.left_over.append(job)
        state.notes.rare = True
    query.open_jobs -= 1
    for down in job.downstream:
        down.blockers -= 1
        if not down.blockers:
            down.ready_s = state.now
            state.notes.rare = True
            state.notes.readied.append(down)
            state.notes.touched.append(down)
    if not query.open_jobs:
        query.stage = next_stage(query.id, query.stage, "completed")
        if query.alone_s > 0:
            state.alone_s.add(query.alone_s)
        _forget(state, query)


def _forget(state: State, query: QueryState) -> None:
    for job in query.jobs:
        del state.jobs[job.id]
        state.curved.pop(job.id, None)
        state.remaking.pop(job.id, None)
    del state.queries[query.id]
    if query.memory_bytes:
        # Also if it never started: memory may have been kept for it.
        _reserve(state, query, 0.0)
        state.notes.capacity = state.notes.rare = True
    state.notes.ended.append(query)


def _reserve(state: State, query: QueryState, memory_bytes: float) -> None:
    """Enter what a query holds; a sum kept by adding and taking would drift."""
    if memory_bytes:
        state.reservations[query.id] = memory_bytes
    else:
        state.reservations.pop(query.id, None)
    state.reserved_bytes = math.fsum(state.reservations.values())

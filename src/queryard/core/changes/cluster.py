"""Nodes come and go; tables, the policy and the time change."""

from __future__ import annotations

import math
from collections.abc import Iterable
from operator import itemgetter

from ..entities import QueryState
from ..errors import InvalidEvent, unknown_name
from ..events import (
    NodeJoined,
    NodeLost,
    NodeSilent,
    PolicyChosen,
    SegmentsKept,
    TableChanged,
    Woke,
)
from ..lifecycle import TASK_MOVES
from ..model import MAP, TaskId
from ..nodes import Host, NodeState
from ..state import State
from . import estimates, leases, queries, tasks


def node_joined(state: State, event: NodeJoined) -> None:
    if event.node.id in state.nodes:
        raise InvalidEvent(f"the node {event.node.id!r} is part of the cluster already")
    node = state.nodes[event.node.id] = NodeState(event.node, event.time_s)
    state.notes.freed.append(node)
    _resized(state)


def node_lost(state: State, event: NodeLost) -> None:
    if event.node not in state.nodes:
        raise InvalidEvent(unknown_name("node", event.node, state.nodes))
    host = state.nodes.pop(event.node).host
    losses: list[tuple[QueryState, str, int]] = []
    is_host_lost = all(node.host != host for node in state.nodes.values())
    for number in [n for n, run in state.running.items() if run.node == event.node]:
        run = state.running.pop(number)
        losses += [_task_lost(state, task) for task in run.tasks]
        state.killed.discard(number)
        if state.notes.every_run:
            state.notes.ended_runs.append(run)
        if tasks.part_twins(state, number):
            tasks.drop_twin(state, run)
        else:
            tasks.requeue(state, run, TASK_MOVES["lost"])
    for number in [n for n, run in state.beaten.items() if run.node == event.node]:
        del state.beaten[number]
    for job in list(state.jobs.values()):
        lease = job.leases.pop(event.node, None)
        if lease is not None:
            leases.give_back(state, job, sum(lease))
            if job.query.stage == "ending":
                queries.clear(state, job.query)
            elif job.finishing and not job.leases:
                queries.job_done(state, job)
            elif job.restarting:
                leases.restart(state, job)
        if is_host_lost and job.host == host and not job.done and job.query.stage == "running":
            # Most often the job is not to blame for it, so that it does not count as an attempt.
            if job.id not in event.spared:
                job.losses += 1
                losses.append((job.query, f"job {job.id}", job.losses))
            leases.restart(state, job)
        tasks.lose_outputs(state, job, event.node)
    _end_likeliest(state, event, losses)
    _resized(state)


def _task_lost(state: State, task: TaskId) -> tuple[QueryState, str, int]:
    """A task was at a node that is lost: its query, its name, and how often that was so."""
    job = state.jobs[task.job]
    phase = job.map if task.kind == MAP else job.reduce
    assert phase is not None
    if phase.losses is None:
        phase.losses = {}
    phase.losses[task.index] = losses = phase.losses.get(task.index, 0) + 1
    return job.query, f"task {task}", losses


def _end_likeliest(
    state: State, event: NodeLost, losses: list[tuple[QueryState, str, int]]
) -> None:
    """End a query of which something was at too many nodes when they were lost: it may be why.

    One query per loss, as others may just have been beside it: what was there most often, and came
    last.
    """
    most = state.settings.max_losses
    suspects = [
        (times, query.uid, what, query)
        for query, what, times in losses
        if times >= most and query.stage in ("waiting", "running")
    ]
    if most and suspects:
        times, _, what, query = max(suspects, key=itemgetter(0, 1))
        cause = f"{what} was at {times} nodes when they were lost, the last {event.node}"
        cause += f": {event.cause}" if event.cause else ""
        queries.end(state, query, "failed", cause)


def node_silent(state: State, event: NodeSilent) -> None:
    if event.node not in state.nodes:
        raise InvalidEvent(unknown_name("node", event.node, state.nodes))
    node = state.nodes[event.node]
    node.silent = event.silent
    state.notes.freed.append(node)
    _resized(state)


def drain(state: State, node_ids: Iterable[str], leaving: bool) -> None:
    """Nodes chosen by provisioning take no new work, or take it again."""
    for node_id in node_ids:
        state.nodes[node_id].leaving = leaving
        state.notes.freed.append(state.nodes[node_id])
    _resized(state)


def _resized(state: State) -> None:
    state.resizes += 1
    for node in state.nodes.values():
        node.draining = node.leaving or node.silent
    active = [node for node in state.nodes.values() if not node.draining]
    state.total_slots = sum(node.spec.slots for node in active)
    _count_hosts(state)
    state.draining = tuple(node for node in state.nodes.values() if node.draining)
    state.memory_bytes = math.fsum(node.spec.memory_bytes for node in state.nodes.values())
    state.kept_bytes = math.fsum(node.spec.kept_bytes for node in state.nodes.values())
    state.most_memory_bytes = max(state.most_memory_bytes, state.memory_bytes)
    speeds = {(node.spec.map_speed, node.spec.reduce_speed) for node in active}
    state.uneven = len(speeds) > 1
    state.notes.capacity = True
    state.notes.rare = True
    # What a query would take alone depends on how many slots there are.
    for query in state.queries.values():
        estimates.update_totals(state, query)


def _count_hosts(state: State) -> None:
    """Nodes came, went or drain: what there is by host."""
    nodes: dict[str, list[NodeState]] = {}
    for node in state.nodes.values():
        nodes.setdefault(node.host, []).append(node)
    stays = state.settings.lease_span == "host"
    state.hosts = {
        host: Host(
            sum(not node.draining for node in those),
            sum(node.spec.slots for node in those if not node.draining),
            math.fsum(node.spec.memory_bytes for node in those),
            math.fsum(node.spec.kept_bytes for node in those),
        )
        for host, those in nodes.items()
    }
    closed = {host for host, found in state.hosts.items() if stays and not found.nodes}
    for node in state.nodes.values():
        node.serves_bound = node.host in closed
    state.apart = bool(closed) or (stays and len(nodes) > 1)
    state.host_slots = state.total_slots
    if stays:
        state.host_slots = max((host.slots for host in state.hosts.values()), default=0)
        largest = max((host.memory_bytes for host in state.hosts.values()), default=0.0)
        state.most_host_bytes = max(state.most_host_bytes, largest)


def table_changed(state: State, event: TableChanged) -> None:
    table = event.table
    state.tables[table.name] = table
    state.kept.pop(table.name, None)
    local: dict[str, list[int]] = {}
    for index, split in enumerate(table.splits):
        for node in split.nodes:
            local.setdefault(node, []).append(index)
    state.local_splits[table.name] = {node: tuple(ids) for node, ids in local.items()}


def segments_kept(state: State, event: SegmentsKept) -> None:
    if event.table not in state.tables:
        raise InvalidEvent(f"{event!r}: {unknown_name('table', event.table, state.tables)}")
    if not 0 <= event.share <= 1:
        raise InvalidEvent(f"{event!r}: a share lies between 0 and 1")
    if event.share:
        state.kept[event.table] = event.share
    else:
        state.kept.pop(event.table, None)


def policy_chosen(state: State, event: PolicyChosen) -> None:
    state.notes.policy = event


def woke(state: State, event: Woke) -> None:
    state.notes.woke = True

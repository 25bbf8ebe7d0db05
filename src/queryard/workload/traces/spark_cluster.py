"""The nodes of Spark applications: what their executors were at the moment when most were there.

Executors come and go, with dynamic allocation all the time, and a replay has the same nodes from
beginning to end. More than were ever there at once would be another cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from queryard.core.amounts import several
from queryard.core.model import Node

from .model import TaskRecord, as_id, peak_at_once
from .spark_log import SparkLog

# Fewer than this part of all slots make a replay faster than it was.
MATTERS = 0.95


class _Change(NamedTuple):
    """Cores that came or, if negative, left; who leaves comes first at the same time."""

    time_ms: float
    cores: int
    host: str


def spark_nodes(
    logs: Sequence[SparkLog], tasks: Sequence[TaskRecord]
) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    """The executors by host, and what to say of them; where none is named, the slots in use."""
    changes = sorted(_changes(logs))
    at_most = _when_most(changes)
    if not at_most:
        most = peak_at_once(tasks)
        return ((Node("executor", most),) if most else ()), ()
    nodes = tuple(Node(as_id(host), cores) for host, cores in sorted(at_most.items()))
    return nodes, _note(logs, changes, sum(at_most.values()))


def _changes(logs: Sequence[SparkLog]) -> list[_Change]:
    """The comings and goings of all executors that have run a task."""
    changes = []
    for log in logs:
        used = {task.executor for stage in log.stages.values() for task in stage.tasks.values()}
        for executor, (host, cores) in log.executors.items():
            if executor in used and cores > 0:
                # An application takes its executors with it; of one that had not ended, nobody
                # knows what came after the end of its log.
                ended_ms = log.last_ms if log.ended_ms is None else log.ended_ms
                left_ms = log.executors_left_ms.get(executor, ended_ms)
                changes.append(_Change(log.executors_came_ms[executor], cores, host))
                changes.append(_Change(left_ms, -cores, host))
    return changes


def _when_most(changes: Sequence[_Change]) -> dict[str, int]:
    """The cores of each host at the first moment when there were most of them.

    >>> _when_most([_Change(0, 4, "a"), _Change(10, -4, "a"), _Change(10, 4, "b")])
    {'a': 4}
    """
    now: dict[str, int] = {}
    most: dict[str, int] = {}
    for change in changes:
        now[change.host] = now.get(change.host, 0) + change.cores
        if sum(now.values()) > sum(most.values()):
            most = {host: cores for host, cores in now.items() if cores > 0}
    return most


def _note(logs: Sequence[SparkLog], changes: Sequence[_Change], most: int) -> tuple[str, ...]:
    """What was there on average while tasks ran, if that was less than what is kept."""
    ran = [stage for log in logs for stage in log.stages.values() if stage.tasks]
    first_ms = min(stage.launched_ms for stage in ran)
    last_ms = max(stage.finished_ms for stage in ran)
    if last_ms <= first_ms:
        return ()
    slot_ms = sum(
        change.cores * (last_ms - min(max(change.time_ms, first_ms), last_ms)) for change in changes
    )
    mean = slot_ms / (last_ms - first_ms)
    if f"{mean:.1f}" == f"{most:.1f}":
        return ()
    on_average = f"{mean:,.1f}" if mean >= 0.05 else "fewer than 0.1"
    faster = ", so that it may be faster than what was recorded for that reason alone"
    return (
        f"executors came and went: the replay has the {several(most, 'slot')} that were there at "
        f"most, from beginning to end; from the first task to the last there were {on_average} on "
        f"average{faster if mean < MATTERS * most else ''}",
    )

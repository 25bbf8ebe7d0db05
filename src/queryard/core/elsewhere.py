"""Work that failed at a node is tried at another one first: the node may be why.

That is said of a failure by the driver (`Retry`), which knows the error.
"""

from __future__ import annotations

from .entities import JobState
from .failed_at import FailedAt
from .lifecycle import PENDING
from .nodes import NodeState
from .phases import PhaseState
from .state import State


def suits(failed: FailedAt | None, node: NodeState, state: State) -> bool:
    """Whether a task may run at a node: it has not failed there, or there is no better one now."""
    if failed is None or node.id not in failed.places or state.now >= failed.until_s:
        return True
    return all(other.draining or other.id in failed.places for other in state.nodes.values())


def job_suits(job: JobState, node: NodeState, state: State) -> bool:
    """Whether divisible work may begin at a node, likewise; it has begun nowhere.

    A host is no better if it is too small for the query.
    """
    failed = job.failed_at
    if failed is None or node.host not in failed.places or state.now >= failed.until_s:
        return True
    return not any(
        host.nodes and name not in failed.places and host.memory_bytes >= job.query.memory_bytes
        for name, host in state.hosts.items()
    )


def has_task_for(phase: PhaseState, node: NodeState, state: State) -> bool:
    """Whether one of the pending tasks of a phase may run at a node."""
    unsuited = sum(not suits(phase.failed_at.get(index), node, state) for index in phase.aside)
    return phase.counts[PENDING] > unsuited


def find_aside(phase: PhaseState, node: NodeState, state: State) -> int | None:
    """The first of the tasks that failed somewhere that may run at a node."""
    for index in phase.aside:
        if suits(phase.failed_at.get(index), node, state):
            return index
    return None

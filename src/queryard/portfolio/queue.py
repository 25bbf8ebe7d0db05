"""What there is to do: the work and the tasks of all queries that are there."""

from __future__ import annotations

from queryard.core.state import State


def work_s(state: State) -> float:
    """Expected core-seconds without a result yet."""
    return sum(query.left_s for query in state.queries.values())


def takes_s(state: State) -> float:
    """How long all slots will be busy with it, if none is ever free."""
    return work_s(state) / max(1, state.total_slots)


def tasks(state: State) -> int:
    """How many have no result yet."""
    phases = (phase for job in state.jobs.values() for phase in (job.map, job.reduce))
    return sum(phase.left for phase in phases if phase is not None)


def is_contended(state: State) -> bool:
    """Whether a task could run that does not, or there are more to come than free slots."""
    free = sum(node.free for node in state.nodes.values())
    for job in state.jobs.values():
        if job.spec.divisible is not None:
            return True
        for phase in (job.map, job.reduce):
            if phase is not None and phase.pending:
                free -= phase.pending
                if free < 0 or (not job.blockers and (phase is job.map or job.maps_done)):
                    return True
    return False

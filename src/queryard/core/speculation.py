"""Running a task a second time, where the first run of it is far behind its like.

A second launch takes a slot that nothing else could use, at another node. The first of the two that
ends well counts. The other is killed; it holds its slot until it has stopped, for no query: what it
did counts for nothing. If one of them fails or is lost with its node, the other goes on alone.
"""

from __future__ import annotations

from .changes.tasks import launch_again
from .commands import Command, Launch
from .elsewhere import suits
from .filling import Filling
from .model import MAP
from .nodes import NodeState
from .parts import Speculation
from .ranks import PoolTree
from .standing import Standing
from .state import State


def repeat(
    speculation: Speculation,
    state: State,
    tree: PoolTree,
    filling: Filling,
    standing: Standing,
    out: list[Command],
) -> None:
    """Launch tasks again that are behind, on slots that are left over."""
    free = [node for node in state.nodes.values() if node.free > 0 and not node.draining]
    if not free or not state.running:
        return
    for run in speculation.behind(state):
        job = state.jobs[run.tasks[0].job]
        if filling.charges.meters and tree.room(job.query.pool) < 1:
            continue
        node = _best(speculation, run, free, state)
        if node is None:
            continue
        launch = launch_again(state, node, run)
        out.append(launch)
        filling.charges.launched(launch.number, job.query.pool)
        standing.refresh(job)
        if not node.free:
            free.remove(node)


def _best(
    speculation: Speculation, run: Launch, free: list[NodeState], state: State
) -> NodeState | None:
    """The fastest node that may run it; on another host than the first run, if there is one."""
    host = state.nodes[run.node].host
    (task,) = run.tasks
    job = state.jobs[task.job]
    phase = job.map if task.kind == MAP else job.reduce
    assert phase is not None
    failed = phase.failed_at.get(task.index)
    fitting = [
        node for node in free if speculation.goes(run, node, state) and suits(failed, node, state)
    ]
    return min(
        fitting,
        key=lambda node: (node.host == host, -node.spec.map_speed, -node.free, node.id),
        default=None,
    )

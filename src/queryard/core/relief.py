"""The way out when reduces that wait for maps hold every slot those maps could use.

With slow start, reduces are launched before the maps are done and hold their slots. Without it they
wait, too, if outputs of maps are lost with a node after reduces were launched. If a map must run
again and all slots that its pool may use are held by such waiting reduces, nothing can ever move:
one of them is killed, and its job starts no more reduces before its maps are done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from .entities import JobState
from .model import MAP
from .pools import Pool
from .ranks import PoolTree
from .state import State

# The leaves that pay for a launch, and how much of a slot.
Payers = Callable[[int], Sequence[tuple[int, float]]]


def reduces_may_wait(state: State) -> bool:
    """Whether there can be reduces that hold slots before the maps of their jobs are done."""
    return state.settings.slow_start < 1 or bool(state.remaking)


def reduces_to_kill(
    state: State, tree: PoolTree, payers: Payers, keeps_slots: bool
) -> Iterator[tuple[int, JobState]]:
    """(launch, job) of at most one waiting reduce for each pool that is stuck.

    Where slots are kept for some tasks (`keeps_slots`), there may be free ones.
    """
    for pool in tree.pools.values():
        full = pool is tree.root and (
            keeps_slots or not any(node.free for node in state.nodes.values() if not node.draining)
        )
        if (full or pool.used + 1 > pool.cap) and any(pool.ready):
            victim = _stuck_reduce(state, tree, pool, payers)
            if victim is not None:
                yield victim


def _stuck_reduce(
    state: State, tree: PoolTree, pool: Pool, payers: Payers
) -> tuple[int, JobState] | None:
    victim: tuple[int, JobState] | None = None
    members = {pool.index}
    for other in tree.pools.values():
        if other.parent is not None and other.parent.index in members:
            members.add(other.index)
    if any(job.query.pool in members for job in state.leaseholders.values()):
        return None
    for number, run in state.running.items():
        if not any(leaf in members for leaf, _ in payers(number)):
            continue
        job = state.jobs[run.tasks[0].job]
        if run.tasks[0].kind == MAP or job.maps_done or run.round or number in state.killed:
            return None  # this one ends by itself
        if job.map is None or not job.map.pending:
            continue
        # Rather one whose own maps can use the slot; those that are held back wait for a scan that
        # goes on with the maps of another query.
        if victim is None or victim[1].held_back or not job.held_back:
            victim = (number, job)
    return victim

"""To which candidate a free slot goes: down the tree of pools, until one takes it."""

from __future__ import annotations

from collections.abc import Callable

from .entities import Candidate
from .model import UNBOUNDED
from .nodes import NodeState
from .pools import Pool
from .rankings import Key
from .ranks import PoolTree
from .state import State

Attempt = Callable[[Candidate, int, NodeState], bool]
# The number of queries behind one that waits for memory which may be tried in its place.
PASSING = 32


def serve(
    tree: PoolTree, pool: Pool, lane: int, node: NodeState, attempt: Attempt, state: State
) -> bool:
    """Offer a free slot down the tree until a candidate takes it."""
    if pool.used + 1 > pool.cap:
        return False
    if pool.order is not None:
        if tree.fits is not None and not pool.by_slots:
            return tree.fits(pool, lane, node)
        if pool.drifts and not tree.dealing and tree.is_due(pool, state):
            tree.refresh(pool, state)
        members = pool.members
        if pool.gates[lane].keys and not node.draining:
            return _serve_gated(tree, pool, lane, node, attempt, state)
        # Jobs bound to a host stand in rankings of that host.
        aside = pool.apart or node.draining
        if aside:
            turns = pool.free_for(node, lane, state)
        else:
            turns = pool.turns(pool.lanes[lane], state)
        for _, uid in turns:  # noqa: SIM110 - any() is slower here
            if attempt(members[uid], lane, node):
                return True
        return False
    if pool.spec.choice == "lottery" and not tree.dealing and len(pool.children.keys) > 1:
        drawn = _draw(tree, pool, state)
    else:
        drawn = pool.children.entries
    pools = tree.pools
    for _, index in drawn:
        child = pools[index]
        if child.ready[lane] and serve(tree, child, lane, node, attempt, state):
            return True
    return False


def next_leaf(tree: PoolTree, lane: int) -> Pool | None:
    """The leaf that is asked first for a slot while slots are dealt; None if that takes a look at
    several.
    """
    pool = tree.root
    while pool.ready[lane] and pool.used + 1 <= pool.cap:
        if pool.order is not None:
            return pool
        pool = tree.pools[pool.children.entries[0][1]]
    return None


def is_alone(leaf: Pool) -> bool:
    """Whether no candidate of another leaf could use a slot."""
    parent = leaf.parent
    while parent is not None and len(parent.children.entries) == 1:
        parent = parent.parent
    return parent is None


def _serve_gated(
    tree: PoolTree, pool: Pool, lane: int, node: NodeState, attempt: Attempt, state: State
) -> bool:
    """Ask in order, but no candidate that needs as much memory as one that was refused.

    Only the next few behind that one are looked at: small ones, for which some may be kept.
    """
    gate = iter(pool.turns(pool.gates[lane], state))
    others = iter(pool.free_for(node, lane, state))
    gated, free = next(gate, None), next(others, None)
    asked, end, most_bytes = 0, UNBOUNDED, UNBOUNDED
    while free is not None or gated is not None:
        if gated is not None and (free is None or gated < free):
            candidate = pool.members[gated[1]]
            asked += 1
            gated = next(gate, None) if asked < end else None
            if candidate.query.memory_bytes > most_bytes:
                continue
        else:
            assert free is not None
            candidate = pool.members[free[1]]
            free = next(others, None)
        tree.refused_above = UNBOUNDED
        if attempt(candidate, lane, node):
            return True
        if tree.refused_above < most_bytes:
            most_bytes = tree.refused_above
            end = min(end, asked + PASSING) if most_bytes else asked
            if asked >= end:
                gated = None
    return False


def _draw(tree: PoolTree, pool: Pool, state: State) -> list[tuple[Key, int]]:
    """Children below their guarantee first, then in an order drawn by weight.

    The largest of u^(1/w) comes first.
    """
    turns: list[tuple[Key, int]] = []
    for index in sorted(index for _, index in pool.children.entries):
        child = tree.pools[index]
        drawn = state.random.random() ** (1.0 / child.weight)
        turns.append((-1.0 - drawn if child.used < child.guarantee else -drawn, index))
    return sorted(turns)

"""The equations and slot assigners of TuMM and H_TuMM, as pure functions."""

from __future__ import annotations

ALPHA = 1.2
# So that a share meant to give a whole number of slots is not rounded down below it.
ROUNDING = 1e-9


def map_share(map_work_s: float, reduce_work_s: float) -> float:
    """w'_m / (w'_m + w'_r); half where no work is known.

    >>> map_share(30.0, 10.0), map_share(0.0, 0.0)
    (0.75, 0.5)
    """
    work_s = map_work_s + reduce_work_s
    return map_work_s / work_s if work_s > 0 else 0.5


def target(share: float, slots: int) -> int:
    """s_m from the share of map work in what is left, not yet bounded (Eq. 4).

    >>> target(0.75, 16), target(0.46, 16)
    (12, 7)
    """
    return int(share * slots + ROUNDING)


def bounded(map_slots: int, slots: int, nodes: int) -> int:
    """s_m in [k, S - k], so that every node keeps one slot of each kind (§4.1).

    Nodes of a single slot leave no room for that; then it is half the slots at most.

    >>> bounded(0, 16, 4), bounded(16, 16, 4), bounded(7, 16, 4), bounded(0, 3, 3)
    (4, 12, 7, 1)
    """
    least = min(nodes, slots // 2)
    return min(max(map_slots, least), slots - least)


def feedback(map_slots: int, before: float, after: float, slots: int, alpha: float = ALPHA) -> int:
    """s_m moved by what the share has changed (Eq. 6), truncated toward zero.

    The printed floor would take a slot away at every small change downward.

    >>> feedback(8, 0.5, 0.6, 16), feedback(8, 0.5, 0.4, 16), feedback(8, 0.5, 0.49, 16)
    (9, 7, 8)
    """
    return map_slots + int(alpha * (after - before) * slots)


def lacks_maps(
    wanted: tuple[int, int], running: tuple[int, int], slots: int, here: tuple[int, int]
) -> bool:
    """Whether a free slot of a node with `slots` slots serves a map (Alg. 3).

    Pairs are (maps, reduces): wanted and running in the cluster, running here. The node's
    part of what is wanted is proportional to its slots: 1/k where all nodes are equal, as the
    paper has it. A slot that rounding leaves over goes to the kind that lacks more in the
    cluster; then the kind that lacks more on the node is served.

    >>> lacks_maps((5, 7), (0, 0), 6, (0, 0)), lacks_maps((5, 7), (2, 5), 6, (0, 1))
    (False, True)
    """
    maps, reduces = wanted
    all_slots = maps + reduces
    own_maps = maps * slots // all_slots
    own_reduces = reduces * slots // all_slots
    if own_maps + own_reduces < slots:
        if maps - running[0] > reduces - running[1]:
            own_maps += 1
        else:
            own_reduces += 1
    return own_maps - here[0] > own_reduces - here[1]


def divide_node(slots: int, share: float, maps_are_slow: bool) -> tuple[int, int]:
    """(s_m, s_r) of one node by the share of map work at its own task times (Alg. 4).

    What rounding leaves over goes to reduces where maps are relatively slow, else to maps.

    >>> divide_node(4, 0.75, False), divide_node(4, 0.7, False), divide_node(4, 0.7, True)
    ((3, 1), (3, 1), (2, 2))
    >>> divide_node(4, 1.0, True)
    (4, 0)
    """
    if maps_are_slow:
        maps = int(slots * share + ROUNDING)
        return maps, slots - maps
    reduces = int(slots * (1.0 - share) + ROUNDING)
    return slots - reduces, reduces

"""Children of a pool that draw lots, where slots are leased: how many slots each has for a quantum.

The slot of a task is drawn for when it is free. A lease has no such moment: all leased slots are
dealt anew at every event, and slots drawn for at each would change hands all the time. So lots are
drawn once per quantum, and until the next draw each child has as many slots as it drew. The shares
follow from the weights of the active children, within guarantees and caps; the lot decides what
becomes of their fractions, so that the mean over many draws is the share itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

from .pools import Pool
from .state import State
from .turns import shares

# How early a draw may be: the live clock may ring before its time.
EARLY_S = 1e-3


def drawn_slots(quotas: Sequence[float], lot: float) -> list[int]:
    """Whole numbers, each next to its quota and with the quota as its mean over lots in [0, 1).

    They add up to the sum of the quotas, if that is a whole number.

    >>> drawn_slots([0.7, 0.3], 0.1), drawn_slots([0.7, 0.3], 0.9), drawn_slots([7.0, 3.0], 0.5)
    ([0, 1], [1, 0], [7, 3])
    """
    ends = [math.floor(end + lot + 1e-9) for end in accumulate(quotas, initial=0.0)]
    return [end - start for start, end in pairwise(ends)]


def draw(pool: Pool, slots: int, state: State) -> bool:
    """Let lots decide how many slots the active children have first; False if one is alone."""
    children = [child for child in pool.names.values() if child.used or any(child.ready)]
    if len(children) < 2:
        return False
    if state.now >= pool.drawn_s + pool.spec.quantum_s - EARLY_S:
        pool.lot, pool.drawn_s = state.random.random(), state.now
    # How many a pool within others will be given is not known: as many as it uses.
    total = slots if pool.parent is None else max(1, pool.used)
    quotas = [share * total for share in shares(children, 1.0, slots)]
    for child, drawn in zip(children, drawn_slots(quotas, pool.lot), strict=True):
        child.guarantee = drawn
    return True

"""Children of a pool that take turns: shares of slot-time, not of slots.

On few slots a share of them is no whole number: a third of two is none. So each child has a
clock of its own, which runs by the slot-seconds it uses over those that are its due. The child
with the last clock is next; in the long run all clocks of children that wait go alike. What is
due to the active children follows from their weights, at least their guarantee, at most their cap.

Time without work earns no credit, but a small one: a child that comes back starts little behind
the others (`PoolSpec.credit`), so that a tenant with few queries is served at once: a bounded
advance, not a larger share, as it is earned anew only as the clocks of the others go on. For the
same reason a child whose next query takes less than the credit has the rest of the credit as an
advance, by its weight: a small query does not wait until its tenant's large one has paid for its
slots. Between two decisions nothing is computed; a slot that was given is counted for a quantum
beforehand (see `Pool.key`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .pools import Pool


def settle(
    pool: Pool, children: Sequence[Pool], slots: int, wants_turn: Callable[[Pool], bool]
) -> bool:
    """Bring shares and clocks up to date; whether a child waits for another's turn to end."""
    active = [child for child in children if child.used or any(child.ready)]
    waiting = [child.virtual_s for child in active if child.waits]
    # A child that has all it can use, or waits for memory, does not wait for its turn.
    clocks = (child.virtual_s for child in children)
    reference_s = min(waiting) if waiting else max(clocks, default=0.0)
    for child in children:
        child.waits &= child.used > 0 or any(child.ready)
    among = (slots, pool.share, [(child.index, child.weight) for child in active])
    if among != pool.among:
        pool.among = among
        for child, share in zip(active, shares(active, pool.share, slots), strict=True):
            child.share = share
            child.rate = 1.0 / (share * max(1, slots))
            # As of equal weights: else the least weight would be furthest ahead.
            child.lead_rate = len(active) / (pool.share * max(1, slots))
    for child in active:
        if not child.waits:
            credit_s = pool.spec.credit * pool.spec.quantum_s * child.rate
            child.virtual_s = max(child.virtual_s, reference_s - credit_s)
        child.waits = wants_turn(child)
    return len(active) > 1 and any(child.waits for child in active)


def shares(children: Sequence[Pool], total: float, slots: int) -> list[float]:
    """What is due to each child: by weight, but at least its guarantee and at most its cap.

    The shares are λ·weight within these bounds, with the λ that makes them add up to the total.
    """
    bounds = []
    for child in children:
        most = min(total, child.cap / max(1, slots))
        bounds.append((min(child.spec.promised, most), most, child.weight))
    least = sum(low for low, _, _ in bounds)
    if least >= total:
        return [total * low / least if low else total * 1e-6 for low, _, _ in bounds]
    # From λ = 0 upwards: a child begins to grow at its guarantee and stops at its cap.
    steps = sorted(
        step for low, most, w in bounds for step in ((low / w, w), (most / w, -w)) if low < most
    )
    level = sum_s = 0.0
    given = least
    for at, change in steps:
        if given + sum_s * (at - level) >= total:
            break
        given += sum_s * (at - level)
        level = at
        sum_s += change
    if sum_s > 1e-12:
        level += (total - given) / sum_s
    return [max(low, min(most, level * w)) for low, most, w in bounds]

"""How many slots each online query should have: the allocation of ReLAQS, as a pure function."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

# (predicted error as it is, with one more slot) -> how much that slot is wanted
Objective = Callable[[float, float], float]
OBJECTIVES: dict[str, Objective] = {
    # The largest fall of the error first: maximises the sum of progress.
    "sum": lambda now, more: now - more,
    # The largest error first: maximises the least progress.
    "max-min": lambda now, more: now,
}
# What an epoch without any slot adds to the gain of a query, of 1 at most.
AGEING = 0.05


class Claim(NamedTuple):
    """What is known of a query: its predicted error at the end of the epoch, by slots.

    `error_at` is None before the first batch has ended, `weight` the priority level, `age` for
    how many epochs the query has had nothing.
    """

    uid: int
    error_at: Callable[[float], float] | None = None
    width: float = math.inf
    weight: float = 1.0
    age: int = 0


def allocate(
    claims: Sequence[Claim],
    slots: float,
    objective: Objective = OBJECTIVES["sum"],
    min_share: float = 0.0,
) -> dict[int, float]:
    """Slots for each query over the next epoch (ReLAQS Alg. 1). O(slots · log queries).

    One slot each, then one at a time to the query that gains most. A query without a finished batch
    has 1/n. No query has less than `min_share` of 1/n. With more queries than slots the best
    have one each, by their gain and by how long they had nothing. A priority level multiplies
    what a query would have got; all is then scaled to the slots there are, least shares kept.

    >>> allocate([Claim(1, lambda n: 1 / n), Claim(2, lambda n: 0.25 / n)], 6)
    {1: 4.0, 2: 2.0}
    >>> allocate([Claim(1, lambda n: 1 / n), Claim(2)], 6)
    {1: 3.0, 2: 3.0}
    """
    if not claims or slots <= 0:
        return {claim.uid: 0.0 for claim in claims}
    fair = slots / len(claims)
    crowded = len(claims) > slots
    floor = min_share * fair if crowded else max(1.0, min_share * fair)
    least = {claim.uid: min(floor, claim.width) for claim in claims}
    most = {claim.uid: min(1.0, claim.width) if crowded else claim.width for claim in claims}
    shares = dict(least)
    for claim in claims:
        if claim.error_at is None:
            shares[claim.uid] = min(fair, claim.width)
    rest = slots - sum(shares.values())

    def wanted(claim: Claim) -> float:
        assert claim.error_at is not None
        share = shares[claim.uid]
        more = min(share + 1.0, most[claim.uid])
        gain = objective(claim.error_at(share), claim.error_at(more))
        return gain + AGEING * claim.age if crowded else gain

    known = [claim for claim in claims if claim.error_at is not None]
    heap = [(-wanted(claim), claim.uid, claim) for claim in known]
    heapify(heap)
    while rest > 1e-9 and heap:
        _, uid, claim = heappop(heap)
        step = min(1.0, rest, most[uid] - shares[uid])
        if step > 0:
            shares[uid] += step
            rest -= step
            heappush(heap, (-wanted(claim), uid, claim))
    if all(claim.weight == 1.0 for claim in claims):
        return shares
    return scale(
        {claim.uid: shares[claim.uid] * claim.weight for claim in claims},
        sum(shares.values()),
        least,
        {claim.uid: claim.width for claim in claims},
    )


def scale(
    wanted: dict[int, float], total: float, least: dict[int, float], most: dict[int, float]
) -> dict[int, float]:
    """Multiply all by one factor, within bounds, so that they add up to the total.

    >>> scale({1: 8.0, 2: 4.0}, 6.0, {1: 1.0, 2: 1.0}, {1: 9.0, 2: 9.0})
    {1: 4.0, 2: 2.0}
    """

    def at(factor: float) -> dict[int, float]:
        return {u: min(max(want * factor, least[u]), most[u]) for u, want in wanted.items()}

    low, high = 0.0, 1.0
    while sum(at(high).values()) < total - 1e-9 and high < 1e9:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(at(middle).values()) < total else (low, middle)
    return at(high)

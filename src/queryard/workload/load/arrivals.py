"""Times of arrival, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from random import Random

from .model import Amount, Arrivals


def count_of(arrivals: Arrivals, amount: Amount, mean_work_s: float, slots: float) -> int | None:
    """How many queries arrive; None where that follows from the drawn times.

    With a load and a duration: as many as give that load, by the mean work of the mix.
    """
    if amount.queries is not None or amount.duration_s is None:
        return amount.queries
    if arrivals.every_s:
        return max(1, round(amount.duration_s / arrivals.every_s))
    if arrivals.load is not None:
        work_s = arrivals.load * slots * amount.duration_s
        return max(1, round(work_s / mean_work_s))
    return None


def times_by_rate(arrivals: Arrivals, amount: Amount, rng: Random) -> list[float]:
    """A Poisson process of the given rate, until enough have come or the time is over."""
    assert arrivals.rate_per_s is not None
    if amount.queries is not None:
        gaps_s = (rng.expovariate(arrivals.rate_per_s) for _ in range(amount.queries))
        return list(accumulate(gaps_s))
    assert amount.duration_s is not None
    times_s: list[float] = []
    now_s = rng.expovariate(arrivals.rate_per_s)
    while now_s < amount.duration_s:
        times_s.append(now_s)
        now_s += rng.expovariate(arrivals.rate_per_s)
    return times_s


def times_by_load(
    arrivals: Arrivals, amount: Amount, works_s: Sequence[float], slots: float, rng: Random
) -> list[float]:
    """A Poisson process, conditioned on all arriving within the time that gives the load."""
    assert arrivals.load is not None
    span_s = amount.duration_s or sum(works_s) / (arrivals.load * slots)
    return sorted(rng.uniform(0.0, span_s) for _ in works_s)


def in_bursts(times_s: Sequence[float], on_s: float, off_s: float) -> list[float]:
    """The same arrivals moved into the bursts: on a clock that runs during bursts only.

    >>> in_bursts([0.0, 2.0, 4.0, 5.0, 9.0], on_s=1.0, off_s=4.0)
    [0.0, 0.4, 0.8, 5.0, 5.8]
    """
    period_s = on_s + off_s
    pressed = []
    for time_s in times_s:
        burst, within_s = divmod(time_s, period_s)
        pressed.append(burst * period_s + within_s * on_s / period_s)
    return pressed

"""What the answers of an online query say about its next epoch."""

from __future__ import annotations

import math

from queryard.core.entities import JobState, QueryState
from queryard.estimate.progress import OnlineForecast, fit_batch_time, fit_curves, fit_pace

from .progress_shares import Claim

# Curves are fitted to at most this many batches, the last ones.
RECENT = 50


def level(query: QueryState) -> float:
    """The priority level by which a query's slots are multiplied; without one it is 1."""
    return query.spec.priority if query.spec.priority > 0 else 1.0


def forecast_of(job: JobState) -> OnlineForecast | None:
    """What the answers of an online job say about the next ones; None before the first."""
    answers, divisible = job.answers, job.spec.divisible
    if not answers or divisible is None:
        return None
    # P_1 is 1 because there is no change yet: it tells nothing once there is another.
    points = [(each.batch, each.progress) for each in (answers[1:] or answers)[-RECENT:]]
    work = [(each.batch, each.core_s) for each in answers[-RECENT:]]
    last = answers[-1].batch
    done = min(max(last, job.done_share * divisible.batches), last + 1)
    curve, _ = fit_curves(points)
    # Batches in which no slot was held for any time tell nothing of the overhead.
    walls = [(each.core_s, each.slots, each.wall_s) for each in answers[-RECENT:]]
    pace, overhead_s = fit_pace(walls)
    paced = [(batch, core_s * pace) for batch, core_s in work]
    time = fit_batch_time(paced, divisible.nested, overhead_s)
    return OnlineForecast(curve, time, done, divisible.batches)


def claim_of(query: QueryState, age: int, epoch_s: float) -> Claim:
    """A query's claim to slots in the next epoch."""
    jobs = [job for job in query.jobs if job.ready and job.spec.divisible]
    width = float(sum(job.width for job in jobs)) if jobs else math.inf
    forecast = next((found for job in jobs if (found := forecast_of(job))), None)
    if forecast is None:
        return Claim(query.uid, None, width, level(query), age)
    known = forecast

    def error_at(slots: float) -> float:
        return known.error_at(slots, epoch_s)

    return Claim(query.uid, error_at, width, level(query), age)

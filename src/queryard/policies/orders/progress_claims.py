"""What the answers of an online query say about its next epoch."""

from __future__ import annotations

import math
from collections.abc import Sequence

from queryard.core.entities import Answer, JobState, QueryState
from queryard.estimate.progress import (
    Curve,
    OnlineForecast,
    SampleCurve,
    fit_batch_time,
    fit_curves,
    fit_pace,
)

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
    work = [(each.batch, each.core_s) for each in answers[-RECENT:]]
    last = answers[-1].batch
    done = min(max(last, job.done_share * divisible.batches), last + 1)
    # Batches in which no slot was held for any time tell nothing of the overhead.
    walls = [(each.core_s, each.slots, each.wall_s) for each in answers[-RECENT:]]
    pace, overhead_s = fit_pace(walls)
    paced = [(batch, core_s * pace) for batch, core_s in work]
    time = fit_batch_time(paced, divisible.nested, overhead_s)
    return OnlineForecast(curve_of(answers, divisible.batches), time, done, divisible.batches)


def curve_of(answers: Sequence[Answer], batches: int) -> Curve | SampleCurve:
    """How the error goes on to fall: by what is left of it where that is known, else by progress.

    Progress is what ReLAQS goes by. It is farther from the error: the answer of a random sample
    moves with each batch by about 1/i, while its error falls as 1/√i.
    """
    known = next((each for each in reversed(answers) if each.left is not None), None)
    if known is not None and known.left is not None:
        return SampleCurve.through(known.batch, known.left, batches)
    # P_1 is 1 because there is no change yet: it tells nothing once there is another.
    points = [(each.batch, each.progress) for each in (answers[1:] or answers)[-RECENT:]]
    curve, _ = fit_curves(points)
    return curve


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

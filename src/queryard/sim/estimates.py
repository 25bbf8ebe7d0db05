"""Where the estimates of a simulated run come from; they reach the kernel as events.

`oracle` tells the true means, `oracle:no-curves` the same without speed-up curves, `oracle:0.3`
errs by a factor of log-normal spread 0.3, drawn once per job, and `observed` tells nothing: the
kernel uses the means it has observed. The name
of a predictor (`basic`, `standard`, `regression` …) lets that one learn as tasks end.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial

from queryard.core.errors import QueryardError, unknown_name
from queryard.core.events import EstimateChanged
from queryard.estimate.tasks import PREDICTORS, make_predictor
from queryard.workload.model import Arrival, JobTruth

from .predicting import Predicting

EstimateSource = Callable[[float, Arrival], list[EstimateChanged]]


def _tell(
    now: float, arrival: Arrival, factor: Callable[[], float], *, tells_curves: bool = True
) -> list[EstimateChanged]:
    events = []
    for job in arrival.query.jobs:
        truth = arrival.truth[job.name]
        job_id = arrival.query.job_id(job.name)
        by = factor()
        if job.divisible is not None:
            work_s = truth.total_work_s(job) * by
            curve = truth.speedup if tells_curves and not truth.speedup.is_perfect else None
            told = EstimateChanged(now, job_id, work_s=work_s, speedup=curve)
            events.append(_with_parsing(told, truth, by))
            continue
        reduce_s = (truth.shuffle_s + truth.merge_s + truth.reduce_s) * by
        told = EstimateChanged(now, job_id, truth.map_s * by, reduce_s if job.reduce else None)
        events.append(_with_parsing(told, truth, by))
    return events


def _with_parsing(told: EstimateChanged, truth: JobTruth, by: float) -> EstimateChanged:
    """Also what parsing for all and riding take, where what was parsed can be kept."""
    if not truth.make_s:
        return told
    return told._replace(make_s=truth.make_s * by, ride_s=truth.ride_s * by)


def oracle(now: float, arrival: Arrival) -> list[EstimateChanged]:
    """The true mean times."""
    return _tell(now, arrival, lambda: 1.0)


def curveless_oracle(now: float, arrival: Arrival) -> list[EstimateChanged]:
    """The true mean times; all speed-up curves are taken for perfect."""
    return _tell(now, arrival, lambda: 1.0, tells_curves=False)


def observed(now: float, arrival: Arrival) -> list[EstimateChanged]:
    """Nothing: the kernel expects what it has observed."""
    return []


def erring_oracle(
    now: float, arrival: Arrival, *, error: float, seed: int
) -> list[EstimateChanged]:
    """The true means, each wrong by a factor that stays the same under every policy."""
    draw = random.Random(f"{seed}:{arrival.query.id}:estimate")
    return _tell(now, arrival, lambda: math.exp(draw.gauss(0.0, error)))


def estimate_source(name: str, seed: int = 0) -> EstimateSource:
    """The source a user named: `oracle`, `oracle:ERROR`, `observed` or a predictor."""
    kind, _, value = name.partition(":")
    if kind == "observed" and not value:
        return observed
    if kind == "oracle" and not value:
        return oracle
    if name == "oracle:no-curves":
        return curveless_oracle
    if kind == "oracle":
        try:
            error = float(value)
        except ValueError:
            error = -1.0
        if not 0 <= error < math.inf:
            raise QueryardError(f"estimates {name!r}: the error must be a number, as in oracle:0.3")
        return partial(erring_oracle, error=error, seed=seed)
    if name in PREDICTORS:
        return Predicting(make_predictor(name))
    raise QueryardError(
        unknown_name("source of estimates", name, ("oracle", "oracle:0.3", "observed", *PREDICTORS))
    )

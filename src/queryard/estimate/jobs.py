"""What staged jobs and their tasks take, by their sizes: the models of TLS, fitted as jobs end.

Of a job, Eq. 3, per operator class. Of a task, a model per operator class and kind, by what one
task reads and leaves. Each is linear in sizes. It begins with prices that hold for any job, and
every job that ends corrects them (`factors.py`): robustly, with an interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from queryard.core.errors import InvalidModel
from queryard.core.model import MAP, REDUCE, Kind, Operator

from .factors import Doubt, Factors
from .prices import REFERENCE, Rates
from .work import QUANTILES


class PhaseSizes(NamedTuple):
    """The map tasks of a job, or its reduce tasks, together.

    They scan columns of tables (bytes once decoded), read rows of other tasks, and leave rows. Each
    of them joins with all rows that are built. `text_chars` is the length of the SQL of one.
    """

    tasks: int
    scan_bytes: float = 0.0
    read_bytes: float = 0.0
    built_bytes: float = 0.0
    left_bytes: float = 0.0
    text_chars: float = 0.0


class JobSizes(NamedTuple):
    """A job: its operator, its phases (None: no reduces), and P(1 - P) of the sides it joins.

    `rates` are those of the machine that runs it.
    """

    operator: Operator
    map: PhaseSizes
    reduce: PhaseSizes | None = None
    balance: float = 0.0
    rates: Rates = REFERENCE

    def phase(self, kind: Kind) -> PhaseSizes:
        """Its maps or its reduces."""
        found = self.map if kind == MAP else self.reduce
        if found is None:
            raise InvalidModel("a job without reduce tasks was asked for them")
        return found

    @property
    def in_bytes(self) -> float:
        """D_in: all that comes from tables and other jobs."""
        maps, reduces = self.map, self.reduce
        read = maps.scan_bytes + maps.read_bytes + maps.built_bytes
        return read + (reduces.scan_bytes + reduces.built_bytes if reduces else 0.0)

    @property
    def out_bytes(self) -> float:
        """D_out."""
        return (self.reduce or self.map).left_bytes


def balance(one: float, other: float) -> float:
    """P(1 - P) of two sides; their bytes stand for their tuples.

    >>> balance(5.0, 5.0), balance(9.0, 0.0), balance(0.0, 0.0)
    (0.25, 0.0, 0.0)
    """
    if one + other <= 0:
        return 0.0
    share = one / (one + other)
    return share * (1 - share)


# Seconds per unit before anything is learnt, for any operator, on the reference machine: rough, and
# soon corrected.
JOB_PRICES: Mapping[str, float] = {
    "start": 0.01,
    "in": 4e-9,
    "share": 4e-9,
    "out": 8e-9,
    "skew": 8e-9,
}
TASK_PRICES: Mapping[str, float] = {
    "start": 0.003,
    "text": 1e-5,
    "scan": 3e-9,
    "read": 5e-9,
    "build": 6e-9,
    "leave": 5e-9,
}
# Coefficients differ widely between operators, and some are nothing.
ONE_DEVIATION = 2 * QUANTILES.cdf(1.0) - 1
DOUBT = Doubt(prior=0.5, noise=0.1, drift=0.0002, least=0.0, most=100.0)


class JobTimes:
    """Eq. 3: θ0 + θ1·D_in + θ2·D_avgMed + θ3·D_out + θ4·O·P(1 - P)·D_med, per operator class.

    `D_avgMed` is what a reduce task reads, or where there is none, what a map task leaves.

    >>> times = JobTimes()
    >>> for size in range(200):
    ...     times.learn(JobSizes("extract", PhaseSizes(1, 1e6 * size)), 0.02 + 0.01 * size)
    >>> round(times.seconds(JobSizes("extract", PhaseSizes(1, 1e9))))
    10
    """

    def __init__(self) -> None:
        self._fitted = _Fitted(JOB_PRICES)

    def seconds(self, job: JobSizes) -> float:
        """What all tasks of a job are expected to take together."""
        return self._fitted.seconds((job.operator,), _of_job(job))

    def interval(self, job: JobSizes, share: float = 0.9) -> tuple[float, float]:
        """The seconds between which so large a share of such jobs lies."""
        return self._fitted.interval((job.operator,), _of_job(job), share)

    def learn(self, job: JobSizes, seconds: float) -> None:
        """A job has ended, with these sizes."""
        self._fitted.learn((job.operator,), _of_job(job), seconds)


class TaskTimes:
    """What one task takes, by what it reads and leaves, per kind and operator class.

    >>> times = TaskTimes()
    >>> for size in range(200):
    ...     job = JobSizes("join", PhaseSizes(4, 4e6 * size))
    ...     times.learn(job, "map", 0.02 + 0.01 * size)
    >>> round(times.task_seconds(JobSizes("join", PhaseSizes(10, 1e10)), "map"))
    10
    """

    def __init__(self) -> None:
        self._fitted = _Fitted(TASK_PRICES)

    def task_seconds(self, job: JobSizes, kind: Kind) -> float:
        """What a task of mean size is expected to take."""
        return self._fitted.seconds((job.operator, kind), _of_task(job, kind))

    def fixed_seconds(self, job: JobSizes) -> float:
        """What a task takes that reads nothing and leaves nothing."""
        empty = PhaseSizes(1, text_chars=job.map.text_chars)
        return self.task_seconds(job._replace(map=empty, reduce=None), MAP)

    def seconds(self, job: JobSizes) -> float:
        """What all tasks of a job are expected to take together."""
        total = job.map.tasks * self.task_seconds(job, MAP)
        if job.reduce is not None:
            total += job.reduce.tasks * self.task_seconds(job, REDUCE)
        return total

    def interval(self, job: JobSizes, kind: Kind, share: float = 0.9) -> tuple[float, float]:
        """The seconds between which so large a share of such tasks lies."""
        return self._fitted.interval((job.operator, kind), _of_task(job, kind), share)

    def doubt(self, job: JobSizes, kind: Kind) -> float:
        """The expected squared error of the logarithm of `task_seconds`."""
        low, high = self.interval(job, kind, ONE_DEVIATION)
        return (math.log(high / low) / 2) ** 2 if low > 0 else DOUBT.prior

    def learn(self, job: JobSizes, kind: Kind, seconds: float) -> None:
        """The tasks of a phase have ended, in so many seconds in the mean."""
        self._fitted.learn((job.operator, kind), _of_task(job, kind), seconds)

    def to_state(self) -> dict[str, Any]:
        """What was learnt, as plain data."""
        return self._fitted.to_state()

    def take_state(self, state: Any) -> None:
        """Go on from what such a model has learnt, if it began with the same prices."""
        self._fitted.take_state(state)


def _of_job(job: JobSizes) -> dict[str, float]:
    sent = job.map.left_bytes
    return {
        "start": 1.0,
        "in": job.in_bytes,
        "share": sent / (job.reduce or job.map).tasks,
        "out": job.out_bytes,
        "skew": job.balance * sent if job.operator == "join" else 0.0,
    }


def _of_task(job: JobSizes, kind: Kind) -> dict[str, float]:
    """What one task does, each amount as much more as the machine takes longer for it."""
    phase, computing, hashing = job.phase(kind), job.rates.computing, job.rates.hashing
    return {
        "start": computing,
        "text": computing * phase.text_chars,
        "scan": computing * phase.scan_bytes / phase.tasks,
        "read": computing * phase.read_bytes / phase.tasks,
        "build": hashing * phase.built_bytes,
        "leave": hashing * phase.left_bytes / phase.tasks,
    }


class _Fitted:
    """Linear models with the same terms, one by key: seconds by amounts."""

    def __init__(self, prices: Mapping[str, float]) -> None:
        self._prices = prices
        self._factors: dict[tuple[str, ...], Factors[str]] = {}

    def seconds(self, key: tuple[str, ...], amounts: Mapping[str, float]) -> float:
        return self._of(key).work(self._priced(amounts))

    def interval(
        self, key: tuple[str, ...], amounts: Mapping[str, float], share: float
    ) -> tuple[float, float]:
        priced, factors = self._priced(amounts), self._of(key)
        deviation = math.sqrt(math.log1p(factors.variance(priced) + DOUBT.noise))
        factor = math.exp(QUANTILES.inv_cdf((1 + share) / 2) * deviation)
        seconds = factors.work(priced)
        return seconds / factor, seconds * factor

    def learn(self, key: tuple[str, ...], amounts: Mapping[str, float], seconds: float) -> None:
        self._of(key).learn(self._priced(amounts), seconds)

    def _of(self, key: tuple[str, ...]) -> Factors[str]:
        found = self._factors.get(key)
        if found is None:
            found = self._factors[key] = Factors(tuple(self._prices), DOUBT)
        return found

    def to_state(self) -> dict[str, Any]:
        """Keys are joined: no operator has a slash in its name."""
        return {
            "prices": dict(self._prices),
            "factors": {"/".join(key): one.to_state() for key, one in self._factors.items()},
        }

    def take_state(self, state: Any) -> None:
        if not isinstance(state, Mapping) or state.get("prices") != dict(self._prices):
            return
        factors = state.get("factors")
        if isinstance(factors, Mapping):
            for key, one in factors.items():
                self._of(tuple(key.split("/"))).take_state(one)

    def _priced(self, amounts: Mapping[str, float]) -> dict[str, float]:
        return {name: price * amounts[name] for name, price in self._prices.items()}

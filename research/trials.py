"""The same work under several schedulers, seed by seed, and how they compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from queryard.core.errors import QueryardError
from queryard.core.model import Node
from queryard.core.policy import Policy
from queryard.core.scheduler import Compose, Scheduler
from queryard.metrics import Summary, summarise
from queryard.sim import Conditions, SimResult, alone_times, simulate
from queryard.workload import Workload

from .outcome import Interval, RunOptions, interval

# So many queries that never ended are named.
SHOWN = 5
Profiles = Mapping[str, Mapping[str, Any]]


class NeverEnded(QueryardError):
    """A run in which some queries were left waiting, so that its numbers would mislead."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A cluster and what arrives there. `alone_s` is measured when slowdowns are needed."""

    workload: Workload
    nodes: tuple[Node, ...]
    conditions: Conditions = field(default_factory=Conditions)
    slow_start: float = 1.0
    estimates: str = "oracle"

    def given(self, seed: int) -> dict[str, Any]:
        """The world it happens in, for `simulate` and its like."""
        return {
            "conditions": self.conditions,
            "estimates": self.estimates,
            "seed": seed,
            "slow_start": self.slow_start,
        }

    def simulate(
        self, profile: Mapping[str, Any], seed: int, keep_journal: bool = True
    ) -> SimResult:
        """It under one scheduler; queries that never end are an error."""
        run = simulate(
            self.workload, self.nodes, profile, **self.given(seed), keep_journal=keep_journal
        )
        self.check_ended(run, str(profile.get("name") or dict(profile)))
        return run

    def check_ended(self, run: SimResult, scheduler: str) -> None:
        """Every query has ended, or what follows would be about the others only."""
        if not run.unfinished:
            return
        gone = run.ends.keys() | run.failed.keys()
        ids = [arrival.query.id for arrival in self.workload.arrivals]
        left = [query for query in ids if query not in gone]
        more = " …" if len(left) > SHOWN else ""
        raise NeverEnded(
            f"{self.workload.name}, under {scheduler}: {run.unfinished} of {len(ids)} queries "
            f"never ended ({', '.join(left[:SHOWN])}{more})"
        )

    def alone_s(self, seed: int) -> dict[str, float]:
        """What each query takes alone on the idle cluster."""
        return alone_times(
            self.workload, self.nodes, self.conditions, slow_start=self.slow_start, seed=seed
        )


def kernel_with(change: Callable[[Policy], Policy]) -> type[Scheduler]:
    """A kernel that changes policies after they were composed: for parts no profile names."""

    class Changed(Scheduler):
        def __init__(self, compose: Compose, *args: Any, **kwargs: Any) -> None:
            super().__init__(lambda profile: change(compose(profile)), *args, **kwargs)

    return Changed


def run_one(
    setting: Setting,
    profile: Mapping[str, Any],
    seed: int,
    alone_s: Mapping[str, float] | None = None,
) -> Summary:
    """One scheduler on one setting, in numbers."""
    run = setting.simulate(profile, seed)
    bins = {arrival.query.id: arrival.size_bin for arrival in setting.workload.arrivals}
    return summarise(run.journal, alone_s=alone_s, size_bins=bins)


def over_seeds(
    options: RunOptions,
    title: str,
    build: Callable[[int], Setting],
    profiles: Profiles,
    *,
    alone: bool = False,
) -> dict[str, list[Summary]]:
    """Every scheduler on the setting of every seed; lists are in the order of seeds."""
    found: dict[str, list[Summary]] = {name: [] for name in profiles}
    for seed in range(options.seeds):
        options.tell(f"{title}, seed {seed}")
        setting = build(seed)
        alone_s = setting.alone_s(seed) if alone else None
        for name, profile in profiles.items():
            found[name].append(run_one(setting, profile, seed, alone_s))
    return found


def change(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """By which share ours is above theirs, seed by seed: -0.4 is 40 % less.

    >>> change([6.0, 5.0], [10.0, 10.0]).mean
    -0.45
    """
    return interval([new / old - 1.0 for new, old in zip(ours, theirs, strict=True)])


def pick(
    runs: Mapping[str, Sequence[Summary]], value: Callable[[Summary], float]
) -> dict[str, list[float]]:
    """One number of every run."""
    return {name: [value(summary) for summary in of] for name, of in runs.items()}


def parts(count: int, size: float) -> int:
    """So many of a published number of things, at least one."""
    return max(1, round(count * size))

"""Which policy to follow: try all candidates on the queue, choose with a margin."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import fmean

from queryard.core.scheduler import Scheduler
from queryard.core.state import State

from .settings import PortfolioSettings
from .trials import Profile, Trial, is_contended, takes_s, try_out, work_s

TryOut = Callable[..., list[Trial]]
# How often the queue is looked at while it drains.
LOOKS = 4.0
# A decision is due early if so much of the work of the queue has come or gone.
BURST = 0.6
# Why a decision is due.
FIRST_LOOK = "first look"
PERIOD = "period"
CHANGED = "the queue has changed"
# How much the latest decision counts in the usual magnitude of a metric.
LATEST = 0.3


@dataclass(frozen=True, slots=True)
class Decision:
    """One look at the queue. `policy` is in force afterwards: the first, if it was dropped."""

    time_s: float
    policy: str
    before: str
    scores: Mapping[str, float]
    queries: int
    launches: int
    wall_s: float
    dropped: bool = False
    # From when on: deciding takes time.
    in_force_s: float = 0.0
    # The time until the next decision, unless the queue changes much before.
    period_s: float = 0.0
    # Whether all candidates were followed to the end of the queue, or the horizon.
    complete: bool = True
    # The usual magnitudes of the metrics, by which scaled objectives divide.
    magnitudes: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_switch(self) -> bool:
        return self.policy != self.before

    @property
    def chose_another(self) -> bool:
        """A switch because of what was simulated, not because deciding took too long."""
        return self.is_switch and not self.dropped


class Selector:
    """Decides for one kernel; `current` is the candidate in force.

    `trials` tries candidates out: `try_out` in this process, or `Workers.try_out`.
    """

    def __init__(
        self,
        settings: PortfolioSettings,
        current: str | None = None,
        trials: TryOut = try_out,
    ) -> None:
        self.settings = settings
        self._try_out = trials
        self._first = next(iter(settings.candidates))
        self.current = current or self._first
        self.decisions: list[Decision] = []
        # The usual magnitude of every metric.
        self.usual: dict[str, float] = {}
        self.period_s = settings.least_s
        self._work_s = 0.0
        # The size of the cluster is always a question, and a fixed period is kept.
        self._is_always_due = settings.least_s == settings.period_s or any(
            "provisioning" in of for of in settings.candidates.values()
        )
        self._last_s = self._not_before_s = -math.inf

    def is_due(self, scheduler: Scheduler) -> bool:
        """Whether to decide now. Without contention all candidates would do the same."""
        state = scheduler.state
        return state.now >= self._not_before_s and self.trigger(state, state.now) is not None

    def trigger(self, state: State, now: float) -> str | None:
        """Why a decision is due, whatever the last one has cost; None if it is not."""
        if not state.queries or not (self._is_always_due or is_contended(state)):
            return None
        since_s = now - self._last_s
        if since_s >= self.period_s:
            return FIRST_LOOK if self._last_s == -math.inf else PERIOD
        if since_s >= self.settings.least_s and _change(self._work_s, work_s(state)) > BURST:
            return CHANGED
        return None

    def next_look_s(self, scheduler: Scheduler) -> float:
        """When to ask again whether a decision is due, if no query arrives before."""
        return max(scheduler.state.now + self.period_s, self._not_before_s)

    def took(self, seconds: float) -> None:
        """The next decision waits until the cost of the last one is a small share of the time."""
        self._not_before_s = self._last_s + seconds / self.settings.share

    def decide(self, scheduler: Scheduler) -> Decision:
        """Try all candidates; the decision is in force once `apply` was called."""
        settings, state = self.settings, scheduler.state
        trials = self._try_out(
            scheduler,
            settings.candidates,
            horizon_s=settings.horizon_s,
            most_launches=settings.most_launches,
        )
        vectors = {trial.name: settings.objective.vector(trial.schedule) for trial in trials}
        scores = self.scores(vectors)
        self.plan(state, state.now)
        return Decision(
            state.now,
            self.best(scores),
            self.current,
            scores,
            len(state.queries),
            sum(trial.launches for trial in trials),
            sum(trial.wall_s for trial in trials),
            in_force_s=state.now,
            period_s=self.period_s,
            complete=all(trial.complete for trial in trials),
            magnitudes=dict(self.usual),
        )

    def scores(self, vectors: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
        """The scores of candidates by the metrics of each, which also tell what is usual."""
        self._measure(list(vectors.values()))
        score = self.settings.objective.score
        return {name: score(vector, self.usual) for name, vector in vectors.items()}

    def apply(self, decision: Decision) -> Profile:
        """A decision comes into force."""
        self.current = decision.policy
        self.decisions.append(decision)
        return self.settings.candidates[decision.policy]

    def drop(self, decision: Decision) -> Profile:
        """A decision came too late: the first candidate is in force again, as the queue may no
        longer be the one on which another candidate was better.
        """
        return self.apply(replace(decision, policy=self._first, dropped=True))

    def best(self, scores: Mapping[str, float]) -> str:
        """The best, if it is better than the one in force by the margin; ties go to the first.

        The first comes back when it is as good as the one in force: the queue that made another
        one better is gone.
        """
        best = min(scores, key=lambda name: (scores[name], name != self._first, name))
        if scores[best] < scores[self.current] * (1 - self.settings.margin):
            return best
        return self._first if scores[self._first] <= scores[self.current] else self.current

    def plan(self, state: State, now: float) -> None:
        """The next decision, a part of the time that the queue takes later.

        While the queue only drains, its time at the beginning counts: else it would be looked at
        ever more often.
        """
        before_s, self._work_s = self._work_s, work_s(state)
        if self._work_s > before_s or _change(before_s, self._work_s) > BURST:
            planned_s = min(self.settings.period_s, takes_s(state) / LOOKS)
            self.period_s = max(self.settings.least_s, planned_s)
        self._last_s = now

    def _measure(self, vectors: Sequence[Mapping[str, float]]) -> None:
        """The usual magnitudes of metrics, from all candidates of this decision and before."""
        for name in vectors[0]:
            mean = fmean(vector[name] for vector in vectors)
            if mean > 0:
                before = self.usual.get(name, mean)
                self.usual[name] = before + LATEST * (mean - before)


def _change(before_s: float, now_s: float) -> float:
    """By how much the work of a queue has changed, from 0 to 1.

    >>> _change(10.0, 10.0), _change(10.0, 4.0), _change(0.0, 1.0)
    (0.0, 0.6, 1.0)
    """
    larger_s = max(before_s, now_s)
    return abs(now_s - before_s) / larger_s if larger_s else 0.0


def in_force(
    decisions: Sequence[Decision], end_s: float, start_s: float | None = None
) -> dict[str, float]:
    """The share of the time in which each candidate was in force, the longest first.

    Time counts from the first decision, or from `start_s`.
    """
    spans: dict[str, float] = {}
    edges = [*((decision.in_force_s, decision.policy) for decision in decisions), (end_s, "")]
    if decisions and start_s is not None:
        edges.insert(0, (min(start_s, decisions[0].in_force_s), decisions[0].before))
    for (from_s, policy), (until_s, _) in pairwise(edges):
        spans[policy] = spans.get(policy, 0.0) + max(0.0, until_s - from_s)
    total = sum(spans.values()) or 1.0
    return {
        name: span / total
        for name, span in sorted(spans.items(), key=lambda item: (-item[1], item[0]))
    }

"""Which policy to follow: try all candidates on the queue, choose with hysteresis."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import exp
from statistics import fmean

from queryard.core.scheduler import Scheduler

from . import queue
from .coming import foresee
from .past import Past
from .reflection import Reflection, in_worlds
from .scores import QueryEnd, Schedule
from .settings import PortfolioSettings
from .trying import Here, Trying
from .what_if import Coming, Profile, Trial, Worlds

# A switch that is taken back at once makes the next one dearer, for a while.
FLAPPING, MOST_MARGIN, EASING = 2.0, 0.4, 0.8
# So many launches of one world are small enough to look at others as well; whoever is so many times
# as bad as the best in the first world is not tried out there.
SMALL_TRIAL, FAR_BEHIND = 20_000, 1.5


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
    # What reflection made of it: when the next one was due, and by which factor this policy's
    # score was expected to come out higher than simulated.
    period_s: float = 0.0
    bias: float = 1.0
    # How many queries were expected to come, on average over the worlds.
    coming: float = 0.0
    # How many queries of the past were rehearsed after it, which `wall_s` includes.
    rehearsed: int = 0
    rehearsal_launches: int = 0
    # Whether all candidates were followed to the end of the queue, or the horizon.
    complete: bool = True
    # By how much a policy had to be better to be chosen, and how far estimates were taken to be
    # off (the spread of log(real / expected)).
    margin: float = 0.0
    doubt: float = 0.0
    # How many times as bad as the best each candidate would have been in the past.
    regrets: Mapping[str, float] = field(default_factory=dict)
    # What the metrics usually were by then, by which some objectives weigh them.
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

    `trials` tries candidates out: in this process, or in others (`Workers`). With a `past`, what
    they would have made of that counts as well.
    """

    def __init__(
        self,
        settings: PortfolioSettings,
        current: str | None = None,
        trials: Trying | None = None,
        past: Past | None = None,
    ) -> None:
        self.settings = settings
        self.past = past
        self._trials_by: Trying = trials or Here()
        self._first = next(iter(settings.candidates))
        self.current = current or self._first
        self.decisions: list[Decision] = []
        self.reflection = Reflection(
            settings.objective, settings.period_s, settings.least_s, settings.most_s
        )
        # How many queries have ended, and how many of these had a deadline.
        self._ended = self._ended_due = 0
        self._margin = settings.margin
        # How many nodes there should be is always a question, and a fixed period is kept.
        self._is_always_due = settings.least_s == settings.most_s or any(
            "provisioning" in of for of in settings.candidates.values()
        )
        self._last_s = self._not_before_s = float("-inf")

    def is_due(self, scheduler: Scheduler) -> bool:
        """Whether to decide now; where nobody has to wait for anything, there is no need."""
        state = scheduler.state
        if not state.queries or state.now < self._not_before_s:
            return False
        if not self._is_always_due and not queue.is_contended(state):
            return False
        since_s = state.now - self._last_s
        return self.reflection.is_due(since_s, queue.work_s(state))

    def next_look_s(self, scheduler: Scheduler) -> float:
        """When to ask again whether a decision is due, if nobody arrives before."""
        now = scheduler.state.now
        return max(now + self.reflection.next_s, self._not_before_s)

    def took(self, trials_s: float, rehearsal_s: float = 0.0) -> None:
        """What the last decision has cost: the next one waits until that is a small share."""
        self.reflection.took(trials_s / self.settings.too_late)
        self._not_before_s = self._last_s + (trials_s + rehearsal_s) / self.settings.share

    def decide(self, scheduler: Scheduler) -> Decision:
        """Try all candidates; what comes of it is in force once `apply` was called."""
        settings, now = self.settings, scheduler.state.now
        promising = self.reflection.promising(settings.candidates)
        coming: tuple[tuple[Coming, ...], ...] = ()
        if self.past is not None and settings.memory:
            most = min(settings.most_launches, SMALL_TRIAL)
            coming = foresee(self.past, scheduler, settings.worlds, most)
        trials = self._try_out(scheduler, coming, [*promising, self.current, self._first])
        by_world = {
            trial.name: [settings.objective.vector(of) for of in trial.schedules]
            for trial in trials
        }
        vectors = {name: _mean(worlds) for name, worlds in by_world.items()}
        self.reflection.saw(vectors)
        scores = self._scores(vectors)
        # Whoever was not tried out in all worlds was far behind in the first.
        count = max(map(len, by_world.values()))
        ahead = {name: worlds for name, worlds in by_world.items() if len(worlds) == count}
        parts = {name: self._parts(name, worlds) for name, worlds in ahead.items()}
        sure = in_worlds({name: scores[name] for name in ahead}, parts)
        schedules = next(of.schedules for of in trials if of.name == self.current)
        weighed = self.reflection.weighed(sure, settings.memory, schedules)
        chosen = self._choose(weighed, scores)
        self.reflection.compared(scores)
        decision = Decision(
            now,
            chosen,
            self.current,
            scores,
            len(scheduler.state.queries),
            sum(trial.launches for trial in trials),
            sum(trial.wall_s for trial in trials),
            in_force_s=now,
            bias=self.reflection.bias(chosen),
            coming=fmean(map(len, coming)) if coming else 0.0,
            complete=all(trial.complete for trial in trials),
            margin=self._margin,
            doubt=self.reflection.doubt,
            regrets={name: exp(regret) for name, regret in self.reflection.regrets.items()},
            magnitudes=dict(self.reflection.usual),
        )
        state = scheduler.state
        self.reflection.decided(queue.work_s(state), queue.takes_s(state))
        decision = replace(decision, period_s=self.reflection.period_s)
        self._last_s = now
        self._trials = {trial.name: trial for trial in trials}
        return decision

    def apply(self, decision: Decision) -> Profile:
        """A decision comes into force."""
        self._ease(decision)
        return self._enter(decision)

    def drop(self, decision: Decision) -> Profile:
        """A decision came too late to count: the first candidate is in force again, as nobody knows
        whether the queue is still what made another one better.
        """
        bias = self.reflection.bias(self._first)
        return self._enter(replace(decision, policy=self._first, bias=bias, dropped=True))

    def _enter(self, decision: Decision) -> Profile:
        self.current = decision.policy
        self.decisions.append(decision)
        foreseen = self._trials[decision.policy].schedule
        # Those who were only expected to come are not waited for.
        foreseen = replace(foreseen, queries=foreseen.queries[: decision.queries])
        self.reflection.applied(decision.time_s, decision.policy, foreseen)
        return self.settings.candidates[decision.policy]

    def ended(self, query: QueryEnd) -> None:
        self._ended += 1
        self._ended_due += query.deadline_s is not None
        self.reflection.ended(query)

    def _try_out(
        self, scheduler: Scheduler, coming: Sequence[Sequence[Coming]], names: Container[str]
    ) -> list[Trial]:
        """In the first world all of these; in the others, if the queue is not too large for that,
        those who are not far behind there, the one in force and the first.
        """
        settings, doubt = self.settings, self.reflection.doubt

        tries = self._trials_by.over(
            scheduler,
            coming=coming,
            horizon_s=settings.horizon_s,
            most_launches=settings.most_launches,
        )

        def tried(chosen: Container[str], worlds: Worlds) -> list[Trial]:
            candidates = {name: of for name, of in settings.candidates.items() if name in chosen}
            trials = tries(candidates, worlds=worlds)
            return self._of_the_run(trials, scheduler, coming[worlds.since :])

        first = tried(names, Worlds(1, doubt))
        if settings.worlds == 1 or max(trial.launches for trial in first) >= SMALL_TRIAL:
            return first
        scores = self._scores(
            {trial.name: settings.objective.vector(trial.schedule) for trial in first}
        )
        most = min(scores.values()) * FAR_BEHIND
        near = {name for name, score in scores.items() if score <= most}
        others = {
            trial.name: trial
            for trial in tried(
                {*near, self.current, self._first}, Worlds(settings.worlds, doubt, 1)
            )
        }
        return [
            _joined(trial, others[trial.name]) if trial.name in others else trial for trial in first
        ]

    def _scores(self, vectors: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
        """One number each, corrected by how scores have come out before."""
        objective, reflection = self.settings.objective, self.reflection
        return {
            name: objective.score(vector, reflection.usual) * reflection.bias(name)
            for name, vector in vectors.items()
        }

    def look_back(self, scheduler: Scheduler) -> int:
        """Rehearse the past where there is something new to see, for the next decisions: none waits
        for it. How many launches were simulated.
        """
        scene = self.past.scene(scheduler) if self.past is not None else None
        if scene is None:
            return 0
        trials = self._of_the_run(
            self._trials_by.rehearse(scene, self.settings.candidates), scheduler
        )
        objective = self.settings.objective
        vectors = {trial.name: objective.vector(trial.schedule) for trial in trials}
        # Magnitudes of the whole past, which is longer than any queue.
        usual = _mean(list(vectors.values()))
        scores = {name: objective.score(vector, usual) for name, vector in vectors.items()}
        parts = {trial.name: objective.parts(trial.schedule, usual) for trial in trials}
        schedules = {trial.name: trial.schedule for trial in trials}
        self.reflection.rehearsed(scores, parts, schedules)
        launches = sum(trial.launches for trial in trials)
        if self.decisions:
            self.decisions[-1] = replace(
                self.decisions[-1],
                rehearsed=len(scene.workload.arrivals),
                rehearsal_launches=launches,
                wall_s=self.decisions[-1].wall_s + sum(trial.wall_s for trial in trials),
            )
        return launches

    def _of_the_run(
        self,
        trials: Sequence[Trial],
        scheduler: Scheduler,
        coming: Sequence[Sequence[Coming]] = (),
    ) -> list[Trial]:
        """Their schedules as a part of all queries of the run so far, if these are remembered.

        Those who are coming in a world are part of it there.
        """
        if not self.settings.memory:
            return list(trials)
        there = [query.spec for query in scheduler.state.queries.values()]

        def whole(schedule: Schedule, world: int) -> Schedule:
            queries = [*there, *(of.arrival.query for of in (coming[world] if coming else ()))]
            due = sum(query.deadline_s is not None for query in queries)
            return replace(schedule, count=self._ended + len(queries), due=self._ended_due + due)

        return [
            replace(
                trial,
                schedules=tuple(whole(of, world) for world, of in enumerate(trial.schedules)),
            )
            for trial in trials
        ]

    def _parts(self, name: str, worlds: Sequence[Mapping[str, float]]) -> dict[str, float]:
        """What each world contributes to the score of a candidate."""
        objective, reflection = self.settings.objective, self.reflection
        share = reflection.bias(name) / len(worlds)
        return {
            str(world): share * objective.score(vector, reflection.usual)
            for world, vector in enumerate(worlds)
        }

    def _choose(self, scores: Mapping[str, float], raw: Mapping[str, float]) -> str:
        """The best, if it is better than the one in force by the margin.

        Of those that are as good, the first candidate, or what is better if chance counts as well.
        The first comes back when it is as good as the one in force: what made a queue special is
        gone with the queue.
        """
        best = min(scores, key=lambda name: (scores[name], name != self._first, raw[name], name))
        if scores[best] < scores[self.current] * (1 - self._margin):
            return best
        return self._first if scores[self._first] <= scores[self.current] else self.current

    def _ease(self, decision: Decision) -> None:
        """A switch back to where we came from is flapping; calm makes switching cheaper again."""
        latest = self.decisions[-3:]
        switches = [past for past in latest if past.chose_another]
        if decision.is_switch and switches and switches[-1].before == decision.policy:
            self._margin = min(MOST_MARGIN, self._margin * FLAPPING)
        else:
            self._margin = max(self.settings.margin, self._margin * EASING)

    _trials: Mapping[str, Trial]


def _joined(one: Trial, other: Trial) -> Trial:
    """A trial in the worlds of both."""
    return Trial(
        one.name,
        (*one.schedules, *other.schedules),
        one.launches + other.launches,
        one.complete and other.complete,
        one.wall_s + other.wall_s,
    )


def _mean(vectors: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Metric by metric."""
    return {name: fmean(vector[name] for vector in vectors) for name in vectors[0]}


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

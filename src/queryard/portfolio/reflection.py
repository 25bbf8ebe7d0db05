"""What a portfolio learns from its own decisions: bias, doubt, the right period, magnitudes.

POSUM §4.4 asks for it and leaves it unbuilt.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from .scores import Objective, QueryEnd, Schedule

# How much the latest observation counts, and after how many one is believed half.
LATEST, HALF_TRUSTED = 0.3, 2.0
# Of queries there are more: how much the latest one counts.
LATEST_QUERY = 0.09
# How far estimates are off until that is known (on recorded workloads 0.4 to 2 was seen of those
# that are learnt); how slowly what candidates are worth is forgotten.
USUAL_DOUBT, LASTING = 1.0, 0.9
# A candidate that is many times worse counts as this much worse, and no more.
MOST_REGRET = math.log(10.0)
# What is worse by less than so many standard errors may be chance. Of the past, one: a single query
# then proves nothing, two that are as late do. Of a few worlds, Student's t for 90 % on one side,
# by how many there are beyond the first: a policy is not changed for what two of three show.
CHANCE_OF_QUERIES = 1.0
CHANCE_OF_WORLDS = (3.08, 1.89, 1.64, 1.53, 1.48, 1.44, 1.41, 1.40, 1.38)
# Who would have been so much worse is not tried out.
HOPELESS = math.log(1.5)
# A period grows by this while little changes, and shrinks by it when much does.
STRETCH = 1.5
CALM, BURST = 0.2, 0.6
# How often a queue is looked at while it drains.
LOOKS = 4.0


# So many forecasts wait for the ends they foresaw: several times what a queue takes to drain.
FORECASTS = 4 * int(LOOKS)


@dataclass(slots=True)
class Forecasted:
    """What was expected of the queries that were there when a policy was chosen, and what came."""

    policy: str
    queries: Mapping[str, QueryEnd]
    # Of how many queries they are a part, see `Schedule`.
    count: int | None
    due: int | None
    ended: dict[str, QueryEnd] = field(default_factory=dict)


@dataclass(slots=True)
class Reflection:
    """Grows with every decision and every end."""

    objective: Objective
    period_s: float
    least_s: float
    most_s: float
    usual: dict[str, float] = field(default_factory=dict)
    biases: dict[str, tuple[float, int]] = field(default_factory=dict)
    # By how much estimates of whole queries were off: the spread of log(real / expected).
    doubt: float = USUAL_DOUBT
    # How much worse than the best each candidate was, on average: the log of the ratio.
    regrets: dict[str, float] = field(default_factory=dict)
    # How often the past was rehearsed.
    rehearsals: int = 0
    # Of the policy in force, the oldest first.
    _forecasts: list[Forecasted] = field(default_factory=list)
    # What the best candidate would have made of the past.
    _past: Schedule | None = None
    _work_s: float = 0.0
    _drain_s: float = math.inf

    # --- bias --------------------------------------------------------------------------------

    def applied(self, now: float, policy: str, schedule: Schedule) -> None:
        """A policy is in force; so its queries are expected to end.

        What was foreseen before is judged once all of it has come, or after many decisions, or when
        another policy decides what comes: those who end soon after a decision are those of whom
        little was left to foresee.
        """
        waiting = self._forecasts
        while waiting and (len(waiting) >= FORECASTS or waiting[0].policy != policy):
            self._judge(waiting.pop(0), now)
        queries = {query.id: query for query in schedule.queries}
        if queries:
            waiting.append(Forecasted(policy, queries, schedule.count, schedule.due))

    def ended(self, query: QueryEnd) -> None:
        """A query has ended."""
        foresaw = [of for of in self._forecasts if query.id in of.queries]
        if not foresaw:
            return
        expected_s = foresaw[-1].queries[query.id].task_s
        if expected_s > 0 and query.task_s > 0:
            error = math.log(query.task_s / expected_s)
            square = self.doubt**2 + LATEST_QUERY * (error**2 - self.doubt**2)
            self.doubt = math.sqrt(max(0.0, square))
        for forecast in foresaw:
            forecast.ended[query.id] = query
            if len(forecast.ended) == len(forecast.queries):
                self._judge(forecast, query.end_s)
        self._forecasts = [of for of in self._forecasts if len(of.ended) < len(of.queries)]

    def _judge(self, forecast: Forecasted, now: float) -> None:
        """Compare what was expected of those that have ended, or should have, with what came."""
        came = dict(forecast.ended)
        for query in forecast.queries.values():
            if query.id not in came and query.end_s < now:
                # It will end later than now, and nobody knows how much.
                came[query.id] = query._replace(end_s=now)
        if 2 * len(came) < len(forecast.queries):
            return
        expected = tuple(forecast.queries[query] for query in came)
        foreseen, observed = (
            self._score(Schedule(of, count=forecast.count, due=forecast.due))
            for of in (expected, tuple(came.values()))
        )
        if foreseen <= 0 or observed <= 0:
            return
        error = math.log(observed / foreseen)
        before, judged = self.biases.get(forecast.policy, (0.0, 0))
        self.biases[forecast.policy] = (before + LATEST * (error - before), judged + 1)

    def bias(self, policy: str) -> float:
        """The factor by which a policy's score comes out higher than foreseen.

        One that was seldom in force is taken to err like all others.
        """
        if not self.biases:
            return 1.0
        usual = sum(log for log, _ in self.biases.values()) / len(self.biases)
        log, count = self.biases.get(policy, (usual, 0))
        trust = count / (count + HALF_TRUSTED)
        return math.exp(trust * log + (1 - trust) * usual)

    def _score(self, schedule: Schedule) -> float:
        return self.objective.score(self.objective.vector(schedule), self.usual)

    # --- what candidates are worth in the long run ---------------------------------------------

    def compared(self, scores: Mapping[str, float]) -> None:
        """How candidates did in one more decision."""
        if self.rehearsals:
            return
        for name, regret in _regrets(scores).items():
            before = self.regrets.get(name, regret)
            self.regrets[name] = LASTING * before + (1 - LASTING) * regret

    def rehearsed(
        self,
        scores: Mapping[str, float],
        parts: Mapping[str, Mapping[str, float]],
        schedules: Mapping[str, Schedule],
    ) -> None:
        """How candidates would have done in the past, and what each query contributed to that."""
        self.rehearsals += 1
        self._past = schedules[min(scores, key=lambda name: (scores[name], name))]
        self.regrets = _regrets(surely(scores, parts, CHANCE_OF_QUERIES))

    def promising(self, names: Iterable[str]) -> set[str]:
        """Those who are not hopeless by what was rehearsed."""
        if not self.rehearsals:
            return set(names)
        least = min(self.regrets.values())
        return {name for name in names if self.regrets.get(name, least) - least < HOPELESS}

    def weighed(
        self, scores: Mapping[str, float], memory: float, now: Sequence[Schedule]
    ) -> dict[str, float]:
        """Factors by which candidates are worse than the best: `now`, and by memory before.

        Now counts by what is at stake, on average over its worlds: of a queue that hardly matters,
        little is to be had. If nothing is known of that, it is what candidates have on average.
        """
        stake = fmean(map(self._stake, now)) or fmean(scores.values())
        regrets = _regrets(scores, stake)
        return {
            name: math.exp(regret + memory * self.regrets.get(name, regret))
            for name, regret in regrets.items()
        }

    def _stake(self, now: Schedule) -> float:
        """What as many queries as there are now have contributed to the score of the past."""
        if self._past is None or not self._past.queries:
            return 0.0
        past = replace(self._past, count=now.count, due=now.due)
        return self._score(past) * len(now.queries) / len(past.queries)

    # --- magnitudes --------------------------------------------------------------------------

    def saw(self, vectors: Mapping[str, Mapping[str, float]]) -> None:
        """What the metrics of all candidates were like this time."""
        for name in {name for vector in vectors.values() for name in vector}:
            values = [vector[name] for vector in vectors.values() if name in vector]
            mean = sum(values) / len(values)
            if mean > 0:
                before = self.usual.get(name, mean)
                self.usual[name] = before + LATEST * (mean - before)

    # --- the period --------------------------------------------------------------------------

    def change(self, work_s: float) -> float:
        """By how much the work of the queue differs from that at the last decision, 0 to 1."""
        larger = max(work_s, self._work_s)
        return abs(work_s - self._work_s) / larger if larger else 0.0

    def decided(self, work_s: float, drain_s: float) -> None:
        """A decision was made on a queue that will be gone in `drain_s`.

        The next one may come later if little has changed.
        """
        change = self.change(work_s)
        if work_s > self._work_s or change > BURST:
            # While it only drains, what it was in the beginning counts.
            self._drain_s = drain_s
        if change < CALM:
            self.period_s = min(self.most_s, self.period_s * STRETCH)
        elif change > BURST:
            self.period_s = max(self.least_s, self.period_s / STRETCH)
        self._work_s = work_s

    def took(self, seconds: float) -> None:
        """How long trials took: with a shorter period the next decision would be dropped."""
        self.period_s = min(self.most_s, max(self.period_s, seconds))

    @property
    def next_s(self) -> float:
        """How soon to look again: a few times while the queue drains."""
        return max(self.least_s, min(self.period_s, self._drain_s / LOOKS))

    def is_due(self, since_s: float, work_s: float) -> bool:
        """Whether to decide now: it is time, or the queue is no longer what it was."""
        burst = since_s >= self.least_s and self.change(work_s) > BURST
        return burst or since_s >= self.next_s


def in_worlds(
    scores: Mapping[str, float], parts: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
    """As `surely`, of what each world contributes; what all of them show is no chance, either.

    >>> worlds = {"a": {"0": 1.0, "1": 1.0, "2": 1.0}, "b": {"0": 11.0, "1": 101.0, "2": 901.0}}
    >>> in_worlds({name: sum(parts.values()) for name, parts in worlds.items()}, worlds)
    {'a': 3.0, 'b': 33.0}
    """
    count = min(map(len, parts.values()))
    if count < 2:
        return dict(scores)
    errors = CHANCE_OF_WORLDS[min(count - 1, len(CHANCE_OF_WORLDS)) - 1]
    best = min(scores, key=lambda name: (scores[name], name))
    found = surely(scores, parts, errors)
    for name, sure in found.items():
        in_all = min(part - parts[best][world] for world, part in parts[name].items())
        found[name] = max(sure, scores[best] + count * in_all)
    return found


def surely(
    scores: Mapping[str, float], parts: Mapping[str, Mapping[str, float]], errors: float
) -> dict[str, float]:
    """Scores in which others are worse than the best by no more than is no chance.

    `parts` are what each query, or each world, contributes. A difference to which many of them
    contribute counts, one that comes from a single one does not.
    """
    best = min(scores, key=lambda name: (scores[name], name))
    return {
        name: max(scores[best], score - errors * _standard_error(parts[name], parts[best]))
        for name, score in scores.items()
    }


def _standard_error(parts: Mapping[str, float], others: Mapping[str, float]) -> float:
    """Of the sum of differences between two candidates, part by part.

    >>> _standard_error({"a": 3.0, "b": 3.0}, {"a": 1.0, "b": 1.0})
    0.0
    >>> _standard_error({"a": 5.0, "b": 1.0}, {"a": 1.0, "b": 1.0})
    4.0
    """
    differences = [part - others[query] for query, part in parts.items() if query in others]
    count = len(differences)
    if count < 2:
        return abs(math.fsum(differences))
    mean = math.fsum(differences) / count
    squares = math.fsum((difference - mean) ** 2 for difference in differences)
    return math.sqrt(squares * count / (count - 1))


def _regrets(scores: Mapping[str, float], stake: float = 0.0) -> dict[str, float]:
    """The log of how much worse than the best each is, seen against what is usually at stake.

    >>> _regrets({"a": 2.0, "b": 2.0})
    {'a': 0.0, 'b': 0.0}
    >>> [round(math.exp(regret), 3) for regret in _regrets({"a": 1.0, "b": 2.0}, 10.0).values()]
    [1.0, 1.1]
    """
    best = min(scores.values())
    found = {}
    for name, score in scores.items():
        if score <= best:
            found[name] = 0.0
        else:
            base = max(best, stake)
            worse = math.log1p((score - best) / base) if base > 0 else MOST_REGRET
            found[name] = min(MOST_REGRET, worse)
    return found

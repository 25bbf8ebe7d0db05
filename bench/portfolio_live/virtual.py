"""The loads in virtual time: nothing runs, and every run of a seed is the same.

The kernel is driven by the simulator, the portfolio's chooser looks at it as in a session, and its
answers come late and cost what they were measured to. Queries take what they took alone on two
cores, give or take; estimates err by as much.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from queryard.core.events import Event, PolicyChosen
from queryard.core.model import Divisible, Job, Node, Query
from queryard.core.scheduler import Scheduler
from queryard.live.choosing.chooser import Chooser
from queryard.live.choosing.questions import Choice, Question
from queryard.live.choosing.verdicts import verdict
from queryard.load import Request
from queryard.policies import resolve_profile
from queryard.portfolio.arrivals import Arrived, Expected, Recent
from queryard.portfolio.documents import Portfolio, read_portfolio
from queryard.portfolio.present import try_present
from queryard.portfolio.reflection import Reflection
from queryard.portfolio.scores import Objective, QueryEnd, Schedule
from queryard.sim.conditions import Conditions
from queryard.sim.ordering import TIMERS
from queryard.sim.run import build
from queryard.workload.model import Arrival, JobTruth, Workload

from .loads import Kinds, Machine

SLOTS = 2
KINDS = Kinds.of("sf01", "sf1")
# Core-seconds of each template, measured on two cores.
WORK_S = {
    **dict(zip(KINDS.small, (0.056, 0.036, 0.023, 0.019, 0.046, 0.028, 0.025, 0.033), strict=True)),
    **dict(zip(KINDS.middle, (0.49, 0.30, 0.31, 0.17, 0.31, 0.83, 0.65, 0.52), strict=True)),
    # Of 400 days.
    KINDS.large[0]: 7.4,
}
MACHINE = Machine(KINDS, WORK_S, SLOTS)
# How far a query is from its template, and its estimate from the query (log-normal).
SPREAD = 0.2
# A lease comes back after so long.
RETURNS_S = 0.01
# A look follows an arrival by so much; an answer takes so long beside its processor time.
SOON_S, TRANSIT_S = 0.05, 0.03
# Processor seconds of a decision: in all, and per query and candidate.
EACH_S, PER_QUERY_S = 0.01, 0.0002


@dataclass(frozen=True)
class Variant:
    """What a portfolio does without, to see what it is worth."""

    reflects: bool = True
    remembers: bool = True
    expects: bool = True


@dataclass(frozen=True)
class VirtualRun:
    """The score of a run, what was decided, and what that took of the time."""

    score: float
    schedule: Schedule
    took_s: float
    cpu_s: float = 0.0
    chosen: tuple[str, ...] = ()


def fixed_run(name: str, objective: Objective, asked: Sequence[Request], seed: int) -> VirtualRun:
    """A load under one policy."""
    return _VirtualSession(asked, seed, resolve_profile(name)).finish(objective)


def portfolio_run(
    document: Mapping[str, Any],
    objective: Objective,
    asked: Sequence[Request],
    seed: int,
    variant: Variant = Variant(),
) -> VirtualRun:
    """A load under a portfolio."""
    portfolio = read_portfolio({"portfolio": dict(document)})
    first = next(iter(portfolio.settings.candidates.values()))
    run = _VirtualSession(asked, seed, first)
    _Looks(run, portfolio, variant)
    return run.finish(objective)


class _VirtualSession:
    """A load on a simulated machine."""

    def __init__(self, asked: Sequence[Request], seed: int, profile: Mapping[str, Any]) -> None:
        draw = Random(f"{seed}/truth")
        self.asked = sorted(asked, key=lambda each: (each.time_s, each.id))
        arrivals = tuple(_arrival(each, draw) for each in self.asked)
        self.work_s = {each.query.id: each.truth["all"].work_s for each in arrivals}
        self.came = {
            each.id: Arrived(each.time_s, each.tenant, self.work_s[each.id], each.deadline_s)
            for each in self.asked
        }
        self.chooser: Chooser | None = None
        self.driver = build(
            Workload("virtual", arrivals, ()),
            (Node("local", SLOTS),),
            profile,
            conditions=Conditions(revoke_delay_s=RETURNS_S, progress_every_s=0.25),
            estimates=f"oracle:{SPREAD}",
            seed=seed,
            keep_journal=False,
            on_end=self._end,
        )

    def _end(self, query: str) -> None:
        if self.chooser is not None:
            now = self.driver.scheduler.state.now
            self.chooser.ended(query, now, self.came[query], held_s=self.work_s[query])

    def finish(self, objective: Objective) -> VirtualRun:
        self.driver.run()
        ends_s = self.driver.ends
        schedule = Schedule(
            tuple(
                QueryEnd(
                    each.id,
                    each.time_s,
                    ends_s[each.id],
                    WORK_S[each.template],
                    None if each.deadline_s is None else each.time_s + each.deadline_s,
                    each.tenant,
                )
                for each in self.asked
            )
        )
        score = objective.score(objective.vector(schedule))
        if self.chooser is None:
            return VirtualRun(score, schedule, self.driver.now)
        chosen = tuple(each.chosen for each in self.chooser.decisions if each.dropped is None)
        spent_s = self.chooser.budget.spent_s
        return VirtualRun(score, schedule, self.driver.now, spent_s, chosen)


def _arrival(asked: Request, draw: Random) -> Arrival:
    job = Job("all", divisible=Divisible(SLOTS))
    due_s = None if asked.deadline_s is None else asked.time_s + asked.deadline_s
    query = Query(asked.id, (job,), asked.tenant, submit_s=asked.time_s, deadline_s=due_s)
    work_s = WORK_S[asked.template] * math.exp(draw.gauss(0.0, SPREAD))
    return Arrival(query, {"all": JobTruth(work_s=work_s)})


class _Nothing(Recent):
    """Expects no arrival."""

    def expected(
        self, waiting: Iterable[Arrived], now: float, queue_s: float, slots: int
    ) -> tuple[Expected, ...]:
        return ()


class _Looks:
    """The thread and the worker of a portfolio, in virtual time."""

    def __init__(self, run: _VirtualSession, portfolio: Portfolio, variant: Variant) -> None:
        settings = portfolio.settings
        if not variant.remembers:
            portfolio = Portfolio(settings, portfolio.document, portfolio.late_s, 0)
        reflection = Reflection(settings.objective, most=None if variant.reflects else 1.0)
        self._portfolio = portfolio
        self._driver = run.driver
        recent = None if variant.expects else _Nothing()
        self._chooser = run.chooser = Chooser(portfolio, 0.0, reflection, recent)
        for each in run.asked:
            self._driver.call_at(each.time_s + SOON_S, TIMERS, self._look)

    @property
    def kernel(self) -> Scheduler:
        return self._driver.scheduler

    def sharers(self) -> dict[str, str]:
        return {}

    def _look(self, now: float) -> list[Event]:
        found = self._chooser.look(now, now, self)
        if found.next_s < math.inf:
            self._driver.call_at(found.next_s, TIMERS, self._look_again)
            self._next_s = found.next_s
        if found.question is not None:
            self._ask(found.question, now)
        return self._follow(found.choice, now)

    def _look_again(self, now: float) -> list[Event]:
        return self._look(now) if now == self._next_s else []

    def _ask(self, question: Question, now: float) -> None:
        settings = self._portfolio.settings
        cpu_s = EACH_S + PER_QUERY_S * question.size * len(question.candidates)
        tried = try_present(
            question.fork.kernel, question.candidates, math.inf, question.pace, question.expected
        )
        found = verdict(settings.objective, list(question.candidates), tried, question.since_s)

        def answer(then: float) -> list[Event]:
            return self._follow(self._chooser.answered(question, found, then, cpu_s), then)

        self._driver.call_at(now + TRANSIT_S + cpu_s, TIMERS, answer)

    def _follow(self, choice: Choice | None, now: float) -> list[Event]:
        return [] if choice is None else [PolicyChosen(now, choice.profile)]

"""The loads in real time: a session per policy, which lives on from seed to seed."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.live.setting import Setting, checked, in_turn
from queryard.load import Alone, Ground, Played, Request, SessionTarget, play
from queryard.portfolio import Objective, QueryEnd, Schedule, objective_of
from queryard.portfolio.documents import in_usual_order

from .loads import LOADS, Machine
from .results import CANDIDATES, PORTFOLIO, Results, Seed

# The seed of a load that is played first in every session, and not looked at: from it sessions
# learn what templates take, and the portfolio starts its worker.
WARM_UP = -1


@dataclass(frozen=True)
class Run:
    """One run: its score, what it played, and what deciding took."""

    played: Played
    score: float
    took_s: float
    cpu_s: float = 0.0
    chosen: tuple[str, ...] = ()
    decided_s: tuple[float, ...] = ()


class Player:
    """A session under one policy."""

    def __init__(self, name: str, objective: Objective, ground: Ground) -> None:
        profile: Any = name
        if name == PORTFOLIO:
            candidates = in_usual_order(objective.name, CANDIDATES)
            profile = {"portfolio": {"objective": objective.name, "candidates": candidates}}
        self._objective = objective
        self._target = SessionTarget(name, ground, profile)

    def run(self, asked: Sequence[Request], alone: dict[str, Alone]) -> Run:
        session = self._target.session
        began_s, before_s = session.now(), session.report().portfolio_cpu_s
        former = {each["number"] for each in session.policy_decisions(1000)}
        played = play(asked, self._target, alone)
        decisions = [
            each
            for each in reversed(session.policy_decisions(1000))
            if each["number"] not in former and each["dropped"] is None
        ]
        return Run(
            played,
            score_of(self._objective, played, alone),
            session.now() - began_s,
            session.report().portfolio_cpu_s - before_s,
            tuple(each["chosen"] for each in decisions),
            tuple(each["took_s"] for each in decisions if not each["remembered"]),
        )

    def close(self) -> None:
        self._target.close()


def score_of(objective: Objective, played: Played, alone: dict[str, Alone]) -> float:
    """The objective over all queries of a run."""
    queries = tuple(
        QueryEnd(
            outcome.request.id,
            outcome.request.time_s,
            math.inf if outcome.ended_s is None else outcome.ended_s,
            alone[outcome.request.template].work_s,
            outcome.due_s,
            outcome.request.tenant,
        )
        for outcome in played.outcomes
    )
    return objective.score(objective.vector(Schedule(queries)))


class Progress:
    """How many runs are done, and how long the rest will take."""

    def __init__(self, runs: int) -> None:
        self._runs = runs
        self._done = 0
        self._began_s = time.monotonic()

    def note(self, what: str) -> None:
        self._done += 1
        took_s = time.monotonic() - self._began_s
        left_s = took_s / self._done * (self._runs - self._done)
        print(f"  [{self._done}/{self._runs}, {left_s:3.0f} s left] {what}", flush=True)


def bench_load(
    name: str,
    chosen: Setting,
    ground: Ground,
    machine: Machine,
    alone: dict[str, Alone],
    phase_s: float,
    progress: Progress,
) -> Results:
    """A load under the portfolio and every candidate; every query must be answered."""
    draw, words = LOADS[name]
    objective = objective_of(words)
    policies = (PORTFOLIO, *CANDIDATES)
    players = {policy: Player(policy, objective, ground) for policy in policies}

    def run(policy: str, asked: Sequence[Request], what: str) -> Run:
        found = players[policy].run(asked, alone)
        progress.note(f"{name}, {what}, {policy}: {found.score:.3g}")
        return found

    results = Results(name, words)
    try:
        first = chosen.given.first
        for seed in (WARM_UP, *range(first, first + chosen.seeds)):
            asked = draw(machine, phase_s, seed)
            what = "warm-up" if seed == WARM_UP else f"seed {seed}"
            runs = {policy: partial(run, policy, asked, what) for policy in policies}
            found = in_turn(max(seed, 0), runs)
            checked({policy: each.played for policy, each in found.items()})
            if seed != WARM_UP:
                results.seeds.append(_seed(seed, len(asked), found))
    finally:
        for player in players.values():
            player.close()
    return results


def _seed(seed: int, queries: int, found: dict[str, Run]) -> Seed:
    ours = found[PORTFOLIO]
    return Seed(
        seed,
        queries,
        {policy: each.score for policy, each in found.items()},
        ours.cpu_s,
        ours.took_s,
        ours.chosen,
        ours.decided_s,
    )

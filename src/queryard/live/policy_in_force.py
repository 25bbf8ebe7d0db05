"""The policy that a host follows: chosen by an operator, or again and again by a portfolio."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from queryard.portfolio.arrivals import Arrived
from queryard.portfolio.documents import Portfolio

from . import inputs
from .choosing.questions import Choice
from .choosing.runner import Choosing
from .choosing.state import BY_OPERATOR, BY_PORTFOLIO, CHANGES_KEPT, PolicyChange, PolicyState
from .door import Door
from .facts import QueryFacts
from .loop import Loop


class PolicyInForce:
    """`choose` changes it; `failed` is told of errors of a portfolio. From any thread."""

    def __init__(self, door: Door, loop: Loop, failed: Callable[[BaseException], None]) -> None:
        self._door = door
        self._loop = loop
        self._failed = failed
        # How far Unix time is ahead of the host's clock.
        self._ahead_s = time.time() - loop.now()
        self.choosing: Choosing | None = None
        """The portfolio at work; None under a fixed policy."""
        self._changing = threading.Lock()
        # What portfolios decided that choose no more, and the processor seconds they took.
        self._former_decisions: list[dict[str, Any]] = []
        self._former_cpu_s = self._former_beside_cpu_s = 0.0

    def start(self, portfolio: Portfolio | None) -> None:
        """Let a portfolio choose from now on, if there is one; the loop must have started."""
        if portfolio is not None:
            self.choosing = self._chooses(portfolio)

    def choose(
        self,
        profile: Mapping[str, Any],
        by: str = BY_OPERATOR,
        reason: str = "",
        portfolio: Portfolio | None = None,
    ) -> None:
        """Follow another policy from now on; what runs is not disturbed.

        A `portfolio` goes on choosing from then on. One that was there before chooses no more; the
        same one goes on with what it has learnt, also where tenants have other shares.
        """
        self._door.check_open()
        with self._changing:
            now = self.choosing
            if now is not None and portfolio is not None and now.portfolio.is_same(portfolio):
                if now.portfolio != portfolio:
                    now.follow(
                        portfolio,
                        lambda found: self._door.post(inputs.ChoosePolicy(found, reason, by)),
                    )
                return
            self._stop_choosing()
            self._door.post(inputs.ChoosePolicy(profile, reason, by))
            self.start(portfolio)

    def query_entered(self) -> None:
        """A query was admitted: the queue is another one."""
        choosing = self.choosing
        if choosing is not None:
            choosing.wake()

    def query_ended(self, facts: QueryFacts) -> None:
        """What a portfolio has foreseen of a query is compared with what came of it."""
        choosing = self.choosing
        if choosing is not None:
            ended_s = facts.ended_s if facts.error is None else None
            request, submitted_s = facts.request, facts.submitted_s
            due_in_s = None if request.deadline_s is None else request.deadline_s - submitted_s
            came = Arrived(submitted_s, request.tenant, facts.work_s, due_in_s)
            choosing.ended(facts.id, ended_s, came, facts.usage.held_s)

    def forget(self) -> Callable[[], None]:
        """Forget what the portfolio has learnt, if there is one; the policy in force stays.

        What it returns gives that back, as long as the portfolio is the same.
        """
        choosing = self.choosing
        return choosing.forget() if choosing is not None else lambda: None

    def close(self) -> None:
        """No choice is made after this returns."""
        with self._changing:
            self._stop_choosing()

    def _chooses(self, portfolio: Portfolio) -> Choosing:
        def choose(choice: Choice) -> None:
            self._door.post(inputs.ChoosePolicy(choice.profile, choice.reason, BY_PORTFOLIO))

        return Choosing(portfolio, self._loop.ask, choose, self._loop.now, self._failed)

    def _stop_choosing(self) -> None:
        former = self.choosing
        if former is not None:
            former.close()
            told = former.decisions(CHANGES_KEPT, self._ahead_s)
            self.choosing = None
            self._former_decisions = (told + self._former_decisions)[:CHANGES_KEPT]
            self._former_cpu_s += former.cpu_s
            self._former_beside_cpu_s += former.beside_cpu_s

    # --- looking on ------------------------------------------------------------------------------

    def state(self) -> PolicyState:
        """The policy in force, since when and why."""
        state = self._door.ask(lambda coordinator: coordinator.policies.state)
        choosing = self.choosing
        return state if choosing is None else replace(state, portfolio=choosing.portfolio.document)

    def profile(self) -> Mapping[str, Any]:
        """The policy in force, as a table of parts."""
        return self._door.ask(lambda coordinator: coordinator.policies.profile)

    def changes(self, limit: int = 100) -> tuple[PolicyChange, ...]:
        """The last changes of the policy, the latest first."""
        kept = self._door.ask(lambda coordinator: tuple(coordinator.policies.changes))
        return kept[::-1][:limit]

    def decisions(self, limit: int = 100) -> list[dict[str, Any]]:
        """The last decisions of portfolios, the latest first."""
        choosing = self.choosing
        latest = [] if choosing is None else choosing.decisions(limit, self._ahead_s)
        return (latest + self._former_decisions)[: max(0, limit)]

    @property
    def cpu_s(self) -> float:
        """The processor seconds of all decisions of portfolios so far."""
        choosing = self.choosing
        return self._former_cpu_s + (0.0 if choosing is None else choosing.cpu_s)

    @property
    def beside_cpu_s(self) -> float:
        """Of these, what no lasting thread of this process has used: its workers above all."""
        choosing = self.choosing
        beside_s = 0.0 if choosing is None else choosing.beside_cpu_s
        return self._former_beside_cpu_s + beside_s

"""A portfolio on a host in which nothing runs: its worker is a function, and time is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from queryard.backends.fake import Script
from queryard.core.model import Node
from queryard.live import inputs
from queryard.live.choosing.chooser import Chooser
from queryard.live.choosing.questions import Choice, Question
from queryard.live.choosing.verdicts import verdict
from queryard.portfolio.arrivals import Arrived
from queryard.portfolio.documents import read_portfolio
from queryard.portfolio.present import try_present

from ..fake_host import MIB, FakeHost

TICK_S = 0.25


def tried(question: Question, candidates: Any) -> Any:
    """What a worker finds that works as it should."""
    return try_present(
        question.fork.without_sharers(), candidates, 10.0, question.pace, question.expected
    )


class FakeChoosing:
    """`answer` gives what the worker answers and after how long; an error if it fails."""

    def __init__(
        self,
        document: Any,
        script: Script | None = None,
        answer: Callable[[Question, Any], tuple[float, Any]] | None = None,
        slots: int = 2,
        cpu_s: float = 0.001,
    ) -> None:
        portfolio = read_portfolio(document)
        first = dict(next(iter(portfolio.settings.candidates.values())))
        self.host = FakeHost((Node("local", slots, 4096.0 * MIB),), script, first)
        self.chooser = Chooser(portfolio, 0.0)
        self._answer = answer or (lambda question, candidates: (0.1, tried(question, candidates)))
        self._cpu_s = cpu_s
        self._told: set[str] = set()
        self._coming: tuple[float, Question, Any] | None = None
        self.choices: list[Choice] = []

    def run(self, until_s: float) -> None:
        """Let time pass, and look at the queue on every tick."""
        while self.host.now_s < until_s:
            self.host.run(min(until_s, self.host.now_s + TICK_S))
            self.host.advance(min(until_s, self.host.now_s + TICK_S))
            self.tick()

    def tick(self) -> None:
        host, now = self.host, self.host.now_s
        for query, facts in host.ended.items():
            if query not in self._told:
                self._told.add(query)
                came = Arrived(facts.submitted_s, facts.request.tenant, facts.work_s)
                end_s = facts.ended_s if facts.error is None else None
                self.chooser.ended(query, end_s, came)
        if self._coming is not None and now >= self._coming[0]:
            self._hear(now)
        look = self.chooser.look(now, now, host.coordinator)
        self._follow(look.choice)
        if look.question is not None:
            after_s, found = self._answer(look.question, dict(look.question.candidates))
            self._coming = now + after_s, look.question, found

    def _hear(self, now: float) -> None:
        assert self._coming is not None
        _, question, found = self._coming
        self._coming = None
        if isinstance(found, Exception):
            self.chooser.failed(question, str(found), now, self._cpu_s)
            return
        objective = self.chooser.portfolio.settings.objective
        read = verdict(objective, list(question.candidates), found, question.since_s)
        self._follow(self.chooser.answered(question, read, now, self._cpu_s))

    def _follow(self, choice: Choice | None) -> None:
        if choice is not None:
            self.choices.append(choice)
            self.host.post(inputs.ChoosePolicy(choice.profile, choice.reason, "portfolio"))

    @property
    def in_force(self) -> str:
        return self.host.coordinator.policies.state.name

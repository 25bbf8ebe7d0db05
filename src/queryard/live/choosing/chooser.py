"""When to look at the queue, what to ask of a worker, and what follows from its answer.

It has no clock, no thread and no process: times are handed in, and what is to be done is given
back. `runner` does it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from queryard.core.state import State
from queryard.portfolio.arrivals import MARK, Arrived, Recent
from queryard.portfolio.budget import Budget
from queryard.portfolio.documents import Portfolio
from queryard.portfolio.patterns import Pattern, PatternMemory, pattern_of
from queryard.portfolio.present import Pace
from queryard.portfolio.reflection import Outcome, Reflection
from queryard.portfolio.scores import Schedule
from queryard.portfolio.selection import BURST, CHANGED, FIRST_LOOK, Selector
from queryard.portfolio.trials import takes_s

from ..estimates.forecasts import Fork
from .decisions import PolicyDecision, Tried, told
from .questions import Choice, Look, Question, View, Wanted
from .standing import Standing
from .verdicts import Verdict

# How many decisions are kept to be told.
KEPT = 500
# What the start of a worker is expected to cost, until one has started: it loads modules.
START_CPU_S = 0.35
# What a decision is expected to cost, until some were made: per candidate and query, with so many
# queries more than there are.
TRIAL_CPU_S, MORE_QUERIES = 0.0002, 10
# After a failure the next decision waits for so long, after the second in turn twice as long.
AGAIN_S, MOST_AGAIN_S = 1.0, 60.0
# What the latest answer counts in how long answers usually take.
USUAL = 0.2
REMEMBERED = "remembered pattern"
CHECK = "check of a remembered choice"


class Chooser:
    """Decides for one host. `current` is the candidate in force."""

    def __init__(
        self,
        portfolio: Portfolio,
        now: float,
        reflection: Reflection | None = None,
        recent: Recent | None = None,
    ) -> None:
        settings = portfolio.settings
        self.portfolio = portfolio
        self.decisions: deque[PolicyDecision] = deque(maxlen=KEPT)
        self.budget = Budget(settings.share, now)
        self._selector = Selector(settings)
        self._reflection = reflection or Reflection(settings.objective)
        self._recent = recent or Recent(now)
        self._memory = PatternMemory(portfolio.patterns)
        self._sizes = any("provisioning" in of for of in settings.candidates.values())
        self._asked: Question | None = None
        self._wanted = Wanted(now, FIRST_LOOK, 0)
        self._numbers = 0
        self._failures = 0
        # What starting a worker costs; what a decision costs per query.
        self._start_cpu_s = START_CPU_S
        self._query_cpu_s = TRIAL_CPU_S * len(portfolio.around(self.current))
        # How long an answer usually takes.
        self._usual_s = 0.05
        self._standing = Standing()
        # When the last question was asked, and about how many queries.
        self._planned = math.inf, 0
        self._pace = Pace()
        self._not_before_s = -math.inf
        # Whether a remembered choice is in force that no decision has checked.
        self._unchecked = False

    @property
    def current(self) -> str:
        return self._selector.current

    @property
    def asked(self) -> Question | None:
        """The question that a worker is thinking about."""
        return self._asked

    def follow(self, portfolio: Portfolio) -> Mapping[str, Any]:
        """The candidates have other profiles from now on; that of the one in force.

        What was learnt of them stays.
        """
        self.portfolio = portfolio
        self._selector.settings = portfolio.settings
        return portfolio.settings.candidates[self.current]

    def forget(self) -> Callable[[], None]:
        """Forget what forecasts were worth, what was decided for which queue, and what is usual.

        What decisions cost is known as before, and the policy in force stays. What it returns gives
        back what was forgotten, in the place of what was learnt since.
        """
        selector = self._selector
        parts = self._reflection.forget(), self._memory.forget()
        before = selector.usual, self._standing, self._pace
        selector.usual, self._standing, self._pace = {}, Standing(), Pace()
        self._unchecked = False

        def give_back() -> None:
            for part in parts:
                part()
            selector.usual, self._standing, self._pace = before

        return give_back

    # --- looking ---------------------------------------------------------------------------------

    def look(self, asked_s: float, now: float, view: View, has_worker: bool = True) -> Look:
        """Look at the queue, on the thread of the coordinator: it must be quick.

        `asked_s` is when this look was asked for.
        """
        state = view.kernel.state
        self._note(self._reflection.settle(now))
        if not state.queries:
            return Look()
        next_s = now + self.portfolio.settings.least_s
        # A query that is alone has all slots, under every policy.
        if len(state.queries) < 2 and not self._sizes:
            return Look(next_s=next_s)
        pattern = pattern_of(state)
        trigger = self._selector.trigger(state, now) or self._crowded(state, now)
        # Memory answers where a decision is due; it does not undo one that was just made.
        choice = (
            None if trigger is None else self._recall(pattern, asked_s, now, len(state.queries))
        )
        trigger = trigger or (CHECK if self._unchecked else None)
        # A queue that is gone before an answer can come is not worth a question.
        queue_s = takes_s(state) * self._pace.value
        is_short = not self._sizes and queue_s < 2 * self._usual_s
        if trigger is None or is_short or self._asked is not None:
            return Look(choice, None, next_s)
        if not self._may_ask(now, len(state.queries), has_worker):
            return Look(choice, None, next_s)
        if not has_worker:
            self._wanted = Wanted(now, trigger, len(state.queries))
            return Look(choice, None, next_s, wants_worker=True)
        waiting = map(Arrived.of, state.queries.values())
        expected = self._recent.expected(waiting, now, queue_s, state.total_slots)
        if not self._may_ask(now, len(state.queries) + len(expected)):
            return Look(choice, None, next_s)
        self._selector.plan(state, now)
        self._planned = now, len(state.queries)
        self._numbers += 1
        fork = Fork(view.kernel.fork(), view.sharers())
        # Of no use in a trial, and there may be many.
        fork.kernel.state.keys.clear()
        left = set(state.queries)
        candidates = self.portfolio.around(self.current)
        self._asked = Question(
            self._numbers,
            now,
            trigger,
            pattern,
            fork,
            len(left),
            left,
            candidates,
            self._pace.value,
            expected,
        )
        return Look(choice, self._asked, next_s)

    def _may_ask(self, now: float, queries: int, has_worker: bool = True) -> bool:
        """Whether there is processor time to ask about so many queries, or to start a worker."""
        cost_s = (MORE_QUERIES + queries) * self._query_cpu_s if has_worker else self._start_cpu_s
        return now >= self._not_before_s and self.budget.free_s(now, cost_s) <= now

    def _crowded(self, state: State, now: float) -> str | None:
        """Whether many more queries wait than at the last decision, however small they are.

        Many small ones are little work beside one that is large, and have the most to lose.
        """
        planned_s, queries = self._planned
        is_early = now - planned_s < self.portfolio.settings.least_s
        return CHANGED if len(state.queries) * (1 - BURST) > queries and not is_early else None

    def _recall(self, pattern: Pattern, asked_s: float, now: float, queries: int) -> Choice | None:
        """What was decided before for a queue like this, if another policy is in force."""
        before = self.current
        known = self._memory.recall(pattern, before)
        if known is None or known == before:
            return None
        self._numbers += 1
        reason = f"{known} was the best for a queue that looked the same"
        self.decisions.append(
            PolicyDecision(
                number=self._numbers,
                time_s=now,
                trigger=REMEMBERED,
                waiting=queries,
                before=before,
                chosen=known,
                reason=reason,
                took_s=now - asked_s,
                remembered=True,
            )
        )
        self._unchecked = True
        return self._switch(known, reason, now)

    # --- answers ---------------------------------------------------------------------------------

    def answered(
        self, question: Question, found: Verdict, now: float, cpu_s: float
    ) -> Choice | None:
        """A worker has tried the candidates out; what to follow from now on, if it is another."""
        if question is not self._asked:
            return None
        late_s = now - question.asked_s
        if late_s > self.portfolio.late_s:
            self.failed(question, f"the answer came after {late_s:.1f} s", now, cpu_s)
            return None
        if not found.vectors:
            self.failed(question, "no candidate could be tried out", now, cpu_s, found.dropped)
            return None
        self._asked = None
        self._failures = 0
        self._usual_s += USUAL * (late_s - self._usual_s)
        per_query_s = cpu_s / (MORE_QUERIES + question.size)
        self._query_cpu_s += USUAL * (per_query_s - self._query_cpu_s)
        self.budget.spend(cpu_s, now)
        why = None
        if not question.left:
            why = "its queries had ended when the answer came"
        elif self.current not in question.candidates:
            why = "it was not tried, and came into force from memory before the answer"
        if why is not None:
            self._tell(question, now, cpu_s, found.dropped, why)
            return None
        return self._decide(question, found, now, cpu_s)

    def _decide(
        self, question: Question, found: Verdict, now: float, cpu_s: float
    ) -> Choice | None:
        selector, before = self._selector, self.current
        whole = selector.scores(found.vectors)
        # The margin is a share of what can still be changed, not of what was lost before.
        lost = selector.settings.objective.score(found.lost, selector.usual)
        bare = {name: max(0.0, score - lost) for name, score in whole.items()}
        scores = {name: bare[name] * self._reflection.correction(name) for name in bare}
        # One that could not be tried is not chosen, and not kept if another one can be.
        for name in found.dropped:
            scores[name] = math.inf
        margin = self.portfolio.settings.margin
        self._standing.note(scores)
        chosen = self._standing.steady(selector.best(scores), before, scores, bare, margin)
        near = scores[chosen] / (1 - margin)
        as_good = [name for name, score in scores.items() if score <= near]
        self._unchecked = False
        held = self._memory.learn(question.pattern, chosen, as_good)
        reason = told(scores, before, chosen, margin, question.queries)
        if not held:
            reason += "; what was remembered of such a queue was wrong"
        record = self._tell(question, now, cpu_s, found.dropped, None, chosen, reason)
        record.tried = tuple(
            Tried(name, scores[name], scores[name] / bare[name] if bare[name] else 1.0, vector)
            for name, vector in found.vectors.items()
        ) + tuple(Tried(name, dropped=why) for name, why in found.dropped.items())
        record.complete = all(trial.complete for trial in found.trials.values())
        record.forecast = bare.get(chosen)
        choice = None if chosen == before else self._switch(chosen, reason, now)
        if chosen in found.trials:
            every = found.trials[chosen].schedule.queries
            schedule = Schedule(tuple(q for q in every if not q.id.startswith(MARK)))
            self._reflection.expect(question.number, chosen, schedule, question.since_s)
        return choice

    def failed(
        self,
        question: Question,
        why: str,
        now: float,
        cpu_s: float,
        dropped: Mapping[str, str] | None = None,
    ) -> None:
        """A worker died, hung or gave no answer of use: that costs this decision, and no more."""
        if question is not self._asked:
            return
        self._asked = None
        self._wait_after_failure(now, cpu_s)
        self._tell(question, now, cpu_s, dropped or {}, why)

    def started(self, cpu_s: float, now: float) -> None:
        """A worker has started, and has used so much for it."""
        self._start_cpu_s = cpu_s
        self.budget.spend(cpu_s, now)

    def not_started(self, why: str, now: float, cpu_s: float) -> None:
        """There is no worker for the decision that was due, which costs that decision."""
        self._wait_after_failure(now, cpu_s)
        wanted = self._wanted
        self._numbers += 1
        self.decisions.append(
            PolicyDecision(
                number=self._numbers,
                time_s=now,
                trigger=wanted.trigger,
                waiting=wanted.queries,
                before=self.current,
                chosen=self.current,
                reason=f"{self.current} stays: {why}",
                took_s=now - wanted.at_s,
                cpu_s=cpu_s,
                dropped=why,
            )
        )

    def _wait_after_failure(self, now: float, cpu_s: float) -> None:
        """Ask no worker for a while: one has failed, or has not started."""
        self._failures += 1
        wait_s = min(MOST_AGAIN_S, AGAIN_S * 2 ** (min(self._failures, 10) - 1))
        self._not_before_s = now + wait_s
        self.budget.spend(cpu_s, now)

    def ended(
        self,
        query: str,
        end_s: float | None,
        came: Arrived,
        held_s: float = 0.0,
    ) -> None:
        """A query has ended; `end_s` is None if it has failed or was cancelled.

        It has used its core-seconds in `held_s` slot-seconds.
        """
        self._recent.note(came)
        self._pace.note(came.work_s, held_s)
        if self._asked is not None:
            self._asked.left.discard(query)
        self._note(self._reflection.ended(query, end_s))

    # --- what is remembered ----------------------------------------------------------------------

    def _switch(self, chosen: str, reason: str, now: float) -> Choice:
        self._selector.current = chosen
        self._note(self._reflection.settle(now, chosen))
        return Choice(chosen, self.portfolio.settings.candidates[chosen], reason)

    def _tell(
        self,
        question: Question,
        now: float,
        cpu_s: float,
        dropped: Mapping[str, str],
        why: str | None,
        chosen: str | None = None,
        reason: str = "",
    ) -> PolicyDecision:
        record = PolicyDecision(
            number=question.number,
            time_s=now,
            trigger=question.trigger,
            waiting=question.queries,
            before=self.current,
            chosen=chosen or self.current,
            reason=reason or f"{self.current} stays: {why}",
            tried=tuple(Tried(name, dropped=reason) for name, reason in dropped.items()),
            took_s=now - question.asked_s,
            cpu_s=cpu_s,
            dropped=why,
        )
        self.decisions.append(record)
        return record

    def _note(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            for record in reversed(self.decisions):
                if record.number == outcome.number:
                    record.outcome = outcome
                    break

"""The query first of which a delay costs most for the work it needs, by slowdown and lateness."""

from __future__ import annotations

from collections.abc import Collection

from queryard.core.entities import Candidate
from queryard.core.parts import QueryOrder
from queryard.core.state import State

from ..checks import above_zero

# A query with nothing left by its estimate goes first, but not infinitely so.
LEAST_WORK_S = 1e-3
# As in the score: what takes less is slowed as if it took this.
MIN_E_S = 1.0


class CostOfDelay(QueryOrder):
    """Serve the largest (cost if it goes last - cost if it goes first) / work left, of which the
    next slot saves the part 1 / ((k + 1)(k + 2)) if it holds k. O(log n), amortised.

    A second of waiting costs a query `slowdown` / its work; one that is t seconds late costs
    `violation` · t² / D besides, D being the waiting queries with deadlines (weights as in POSUM's
    score, §5.4.3, in which only queries without a deadline have a slowdown). The first query takes
    what it takes alone, the last comes after all that wait now. Clock and queue are those of the
    last refresh.

    Without deadlines the least work · work left goes first: of 10 and 60 core-seconds the 10, and
    the 60 before new 10s when less than 1.7 of them are left. While 100 s of work wait, a query
    that must end in 50 s gains from going first; one that must end in 200 s does not yet.

    A query of which a delay costs twice as much holds 1.4 times the slots: tasks are not taken
    back, and if the long ones of one query filled all slots, the next query would wait for them.
    """

    name = "cost-of-delay"
    citation = "after the generalised cµ-rule (van Mieghem 1995)"
    changes_with = frozenset({"slots", "work", "size", "time"})

    def __init__(self, slowdown: float = 100.0, violation: float = 1.0) -> None:
        self.slowdown = above_zero("slowdown", slowdown)
        self.violation = above_zero("violation", violation)
        self._clock_s = 0.0
        self._drain_s = 0.0
        self._due = 1

    def attach(self, state: State) -> None:
        self.prepare(state.queries.values(), state)

    def prepare(self, candidates: Collection[Candidate], state: State) -> None:
        self._clock_s = state.now
        left_s = sum(candidate.left_s for candidate in candidates)
        self._drain_s = left_s / (state.total_slots or 1)
        due = sum(candidate.query.deadline is not None for candidate in candidates)
        self._due = max(1, due)

    def key(self, candidate: Candidate, state: State) -> float:
        # Written out, as it is asked for twice per task.
        query = candidate.query
        left_s, total_s = query.left_s, query.total_s
        takes_s = query.alone_s * left_s / total_s if total_s else 0.0
        waits_s = self._drain_s if self._drain_s > takes_s else takes_s
        # What its turn is worth, of now and after all others.
        gain = self.slowdown * waits_s / (total_s if total_s > MIN_E_S else MIN_E_S)
        if query.deadline is not None:
            least_s = max(0.0, self._clock_s + takes_s - query.deadline)
            most_s = max(0.0, self._clock_s + takes_s + waits_s - query.deadline)
            gain += self.violation * (most_s**2 - least_s**2) / self._due
        held = candidate.slots
        work_s = left_s if left_s > LEAST_WORK_S else LEAST_WORK_S
        return -gain / work_s / ((held + 1) * (held + 2))

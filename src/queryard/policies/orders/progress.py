"""Online queries by what their answers will gain."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Self

from queryard.core.entities import Candidate, JobState, QueryState
from queryard.core.errors import unknown_name
from queryard.core.parts import QueryOrder
from queryard.core.state import State
from queryard.estimate.progress import Outlook, fit_batch_time, fit_curves

from ..checks import above_zero
from .progress_shares import OBJECTIVES, Claim, allocate

# With more queries than slots an epoch has at most this many turns.
MOST_TURNS = 8
# Curves are fitted to at most this many batches, the last ones.
RECENT = 50


class Account:
    """The slot-seconds of one query in the epoch: what it should have and what it had."""

    __slots__ = ("age", "gain", "opened_s", "served_s", "slots", "surplus_s", "target_s")

    def __init__(self, opened_s: float) -> None:
        self.opened_s = opened_s
        # None until the first allocation that knows of it: a fair share.
        self.target_s: float | None = None
        self.served_s = 0.0
        # How much more than its target it had in the epoch before, by turns being too long.
        self.surplus_s = 0.0
        # How many slots it has held since the order last looked.
        self.slots = 0
        self.gain = 1.0
        self.age = 0

    def fork(self) -> Account:
        copy = Account(self.opened_s)
        copy.target_s = self.target_s
        copy.served_s = self.served_s
        copy.surplus_s = self.surplus_s
        copy.slots = self.slots
        copy.gain = self.gain
        copy.age = self.age
        return copy


class Progress(QueryOrder):
    """Serve the query that is furthest behind the slot-seconds it was allotted for the epoch.

    ReLAQS §4.7: every `epoch_s` the slots are allotted by Alg. 1 (see `progress_shares`) to
    the largest predicted fall of error, or by another `objective`; `min_share` of 1/n is left
    to everybody. Key: (served this epoch + slots · seconds left of it) / allotted, ties to the
    larger gain. With slots for all this deals out whole slots; with more queries than slots it
    gives turns within the epoch, and who gets none ages. Exact queries in the same leaf get
    1/n. Priority levels count from 1; a query without a priority has level 1.
    Deviations: the curve is fitted from the second batch on, as the first has no change; the
    slots are the leaf's fair part of all, by queries. Cost: O(log n) a decision, O(n) an event
    while online queries are active, O(slots · log n + batches) an epoch.

    Of two queries on six slots, with predicted errors 1/slots and 0.25/slots: four and two.
    """

    name = "progress"
    citation = "ReLAQS §4.7, Alg. 1"
    changes_with = frozenset({"slots", "time"})

    def __init__(
        self, epoch_s: float = 5.0, objective: str = "sum", min_share: float = 0.0
    ) -> None:
        self.epoch_s = above_zero("epoch_s", epoch_s)
        if objective not in OBJECTIVES:
            raise ValueError(unknown_name("objective", objective, OBJECTIVES))
        self.objective = OBJECTIVES[objective]
        if isinstance(min_share, bool) or not 0 <= min_share <= 1:
            raise ValueError(f"min_share must lie between 0 and 1, got {min_share!r}")
        self.min_share = min_share
        self._accounts: dict[str, Account] = {}
        self._begun_s = -math.inf
        self._turn_s = epoch_s
        self._counted_s = 0.0

    def fork(self) -> Self:
        twin = super().fork()
        twin._accounts = {query: account.fork() for query, account in self._accounts.items()}
        return twin

    def attach(self, state: State) -> None:
        self._accounts = {}
        self._begun_s = -math.inf
        self._counted_s = state.now

    # --- who is next -----------------------------------------------------------------------

    def prepare(self, candidates: Collection[Candidate], state: State) -> None:
        self._count(state)
        if self._accounts and state.now >= self._begun_s + self.epoch_s:
            self._begin(state)

    def key(self, candidate: Candidate, state: State) -> tuple[float, float]:
        # Slots may be tried out here: who held how many until now was noted in `wake_s`.
        query = candidate.query
        account = self._accounts.get(query.id)
        fair = state.total_slots / len(state.queries)
        if account is None:
            if not any(job.spec.divisible for job in query.jobs):
                return (query.slots / fair if fair else 0.0, 0.0)
            account = self._open(query, state)
        self._count(state)
        ends_s = self._begun_s + self.epoch_s
        target_s = account.target_s
        if target_s is None:
            target_s = fair * (ends_s - account.opened_s)
        projected_s = account.served_s + query.slots * max(0.0, ends_s - state.now)
        return (projected_s / target_s if target_s > 0 else math.inf, -account.gain)

    def _open(self, query: QueryState, state: State) -> Account:
        account = self._accounts[query.id] = Account(state.now)
        if state.now >= self._begun_s + self.epoch_s:
            self._count(state)
            self._begin(state)
        return account

    def _count(self, state: State) -> None:
        """Add what was served since the last look."""
        elapsed_s = state.now - self._counted_s
        if elapsed_s > 0:
            for account in self._accounts.values():
                account.served_s += account.slots * elapsed_s
            self._counted_s = state.now

    def wake_s(self, state: State) -> float | None:
        """All is decided: note who holds what; wake when the epoch, or a turn, is over."""
        if not self._accounts:
            return None
        self._count(state)
        for query_id, account in list(self._accounts.items()):
            query = state.queries.get(query_id)
            if query is None:
                del self._accounts[query_id]
            else:
                account.slots = query.slots
        if len(self._accounts) < 2 or not state.total_slots:
            return None
        if state.now >= self._begun_s + self.epoch_s:
            self._begin(state)
        turns = int((state.now - self._begun_s) / self._turn_s + 1e-9) + 1
        return self._begun_s + min(turns * self._turn_s, self.epoch_s)

    # --- epochs ----------------------------------------------------------------------------

    def _begin(self, state: State) -> None:
        """Allot the slots of the next epoch."""
        for query_id in list(self._accounts):
            if query_id not in state.queries or state.queries[query_id].stage == "ending":
                del self._accounts[query_id]
        if not self._accounts:
            return
        slots = state.total_slots * len(self._accounts) / len(state.queries)
        claims = []
        for query_id, account in self._accounts.items():
            had_some = account.target_s is None or account.served_s > account.surplus_s
            account.age = 0 if had_some else account.age + 1
            claims.append(self._claim(state.queries[query_id], account.age))
        shares = allocate(claims, slots, self.objective, self.min_share)
        crowded = len(claims) > slots
        longest = max(1 / MOST_TURNS, slots / len(claims)) if crowded else 1.0
        self._begun_s = state.now
        self._turn_s = self.epoch_s * longest
        for claim, account in zip(claims, self._accounts.values(), strict=True):
            share = shares[claim.uid]
            over_s = account.served_s - (account.target_s or account.served_s)
            account.surplus_s = min(max(0.0, over_s), self._turn_s) if crowded else 0.0
            account.served_s = account.surplus_s
            account.target_s = share * self.epoch_s
            account.gain = (
                claim.error_at(share) - claim.error_at(share + 1) if claim.error_at else 1.0
            )

    def _claim(self, query: QueryState, age: int) -> Claim:
        jobs = [job for job in query.jobs if job.ready and job.spec.divisible]
        width = sum(job.spec.divisible.width for job in jobs if job.spec.divisible) or math.inf
        weight = query.spec.priority if query.spec.priority > 0 else 1.0
        outlook = next((found for job in jobs if (found := outlook_of(job))), None)
        if outlook is None:
            return Claim(query.uid, None, width, weight, age)
        epoch_s = self.epoch_s

        def error_at(slots: float, outlook: Outlook = outlook) -> float:
            return outlook.error_at(slots, epoch_s)

        return Claim(query.uid, error_at, width, weight, age)


def outlook_of(job: JobState) -> Outlook | None:
    """What the answers of an online job say about the next ones; None before the first."""
    answers, divisible = job.answers, job.spec.divisible
    if not answers or divisible is None:
        return None
    # P_1 is 1 because there is no change yet: it tells nothing once there is another.
    points = [(each.batch, each.progress) for each in (answers[1:] or answers)[-RECENT:]]
    work = [(each.batch, each.core_s) for each in answers[-RECENT:]]
    last = answers[-1].batch
    done = min(max(last, job.done_share * divisible.batches), last + 1)
    curve, _ = fit_curves(points)
    time = fit_batch_time(work, divisible.nested)
    return Outlook(curve, time, done, divisible.batches)

"""Online queries by what their answers will gain."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Self

from queryard.core.entities import Candidate, QueryState
from queryard.core.errors import unknown_name
from queryard.core.parts import QueryOrder
from queryard.core.state import State

from ..checks import above_zero
from .progress_claims import claim_of, level
from .progress_shares import OBJECTIVES, allocate

# With more queries than slots an epoch has at most this many turns.
MOST_TURNS = 8


@dataclass(slots=True)
class Account:
    """The slot-seconds of one query in the epoch: what it should have and what it had."""

    opened_s: float
    # None until the first allocation that knows of it: a fair share.
    target_s: float | None = None
    served_s: float = 0.0
    # How much more than its target it had in the epoch before, by turns being too long.
    surplus_s: float = 0.0
    # How many slots it has held since the order last looked.
    slots: int = 0
    gain: float = 1.0
    age: int = 0


class Progress(QueryOrder):
    """Serve the query that is furthest behind the slot-seconds it was allotted for the epoch.

    ReLAQS §4.7: every `epoch_s` the slots are allotted by Alg. 1 (see `progress_shares`) to
    the largest predicted fall of error, or by another `objective`; `min_share` of 1/n is left
    to each query. Key: (served this epoch + slots · seconds left of it) / allotted, ties to the
    larger gain. With slots for all this deals out whole slots; with more queries than slots it
    gives turns within the epoch, and a query without any ages. Exact queries in the same leaf get
    1/n. Priority levels count from 1; a query without a priority has level 1.
    Deviations: where the engine tells what is left of the error, that is predicted instead of
    progress; the curve is fitted from the second batch on, as the first has no change; the slots
    are the leaf's fair part of all, by queries. Cost: O(log n) per decision, O(n) per event
    while online queries are active, O(slots · log n + batches) per epoch.

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
        self.objective = objective
        if isinstance(min_share, bool) or not 0 <= min_share <= 1:
            raise ValueError(f"min_share must lie between 0 and 1, got {min_share!r}")
        self.min_share = min_share
        self._accounts: dict[str, Account] = {}
        self._begun_s = -math.inf
        self._turn_s = epoch_s
        self._counted_s = 0.0

    def fork(self) -> Self:
        twin = super().fork()
        twin._accounts = {query: replace(account) for query, account in self._accounts.items()}
        return twin

    def attach(self, state: State) -> None:
        self._accounts = {}
        self._begun_s = -math.inf
        self._counted_s = state.now

    def look_every(self, seconds: float) -> None:
        if seconds > self.epoch_s:
            self._turn_s *= seconds / self.epoch_s
            self.epoch_s = seconds

    # --- which query is next ---------------------------------------------------------------

    def prepare(self, candidates: Collection[Candidate], state: State) -> None:
        self._count(state)
        if self._accounts and state.now >= self._begun_s + self.epoch_s:
            self._begin(state)

    def key(self, candidate: Candidate, state: State) -> tuple[float, float]:
        # Slots may be tried out here: how many a query held until now was noted in `wake_s`.
        query = candidate.query
        account = self._accounts.get(query.id)
        fair = state.total_slots / (len(state.queries) or 1)
        if account is None:
            if query.id not in state.queries:
                return (math.inf, 0.0)  # it ends in this instant
            if not any(job.spec.divisible for job in query.jobs):
                return (query.slots / fair if fair else 0.0, 0.0)
            account = self._open(query, state)
        self._count(state)
        ends_s = self._begun_s + self.epoch_s
        target_s = account.target_s
        if target_s is None:
            target_s = fair * level(query) * (ends_s - account.opened_s)
        projected_s = account.served_s + query.slots * max(0.0, ends_s - state.now)
        return (projected_s / target_s if target_s > 0 else math.inf, -account.gain)

    def _open(self, query: QueryState, state: State) -> Account:
        account = self._accounts[query.id] = Account(state.now)
        if state.now == self._begun_s or state.now >= self._begun_s + self.epoch_s:
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
        """All is decided: note the slots of each query; wake when the epoch, or a turn, is over."""
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
        crowded = len(self._accounts) > slots
        longest = max(1 / MOST_TURNS, slots / len(self._accounts)) if crowded else 1.0
        self._turn_s = self.epoch_s * longest
        # More may come in the instant in which an epoch begins; the last one was closed then.
        if state.now > self._begun_s:
            for account in self._accounts.values():
                self._close(account, self._turn_s if crowded else 0.0)
        self._begun_s = state.now
        claims = [
            claim_of(state.queries[query_id], account.age, self.epoch_s)
            for query_id, account in self._accounts.items()
        ]
        shares = allocate(claims, slots, OBJECTIVES[self.objective], self.min_share)
        for claim, account in zip(claims, self._accounts.values(), strict=True):
            share = shares[claim.uid]
            account.target_s = share * self.epoch_s
            account.gain = (
                claim.error_at(share) - claim.error_at(share + 1) if claim.error_at else 1.0
            )

    @staticmethod
    def _close(account: Account, most_surplus_s: float) -> None:
        """Carry over what turns that were too long gave; age a query that had nothing."""
        if account.target_s is None:
            account.served_s = 0.0
            return
        had_some = account.served_s > account.surplus_s
        account.age = 0 if had_some else account.age + 1
        # Slots that no other query wanted are not held against a query that was allotted none.
        over_s = account.served_s - account.target_s if account.target_s else 0.0
        account.surplus_s = min(max(0.0, over_s), most_surplus_s)
        account.served_s = account.surplus_s

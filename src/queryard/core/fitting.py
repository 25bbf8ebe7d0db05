"""A deal among jobs with speed-up curves: in a leaf, a slot goes where it is worth most.

The pool tree says which leaf has a slot, as without curves; `claims` say which candidate of it.
"""

from __future__ import annotations

from heapq import merge
from itertools import islice

from .claims import Claims
from .deal import Deal
from .entities import NO_LIMIT, Candidate, JobState
from .filling import most_free
from .kernel import Kernel
from .nodes import NodeState
from .pools import Pool
from .serving import PASSING, is_alone, next_leaf

# A slot that speeds a job up by less than this part of a slot is offered to all others first.
WORTH = 0.1


class FittingDeal(Deal):
    """Each query is dealt as many slots as it can use well while others wait."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        # Which candidate is next changes from slot to slot.
        self._front = None
        # What candidates claim, by leaf, lane and host.
        self._claims: dict[tuple[int, int, str, bool], Claims] = {}
        # Jobs to which another slot is not worth much, with their claims.
        self._worth = WORTH
        self._sated: dict[int, JobState] = {}
        self._waived: list[tuple[Claims, int, Candidate, JobState]] = []
        # Whether the tree need not be asked for each slot, and whether all slots are of one node.
        self._is_plain = self._tree.lanes == 1 and not self._state.apart
        self._in_a_row = len(self._nodes) == 1

    def _deal(self) -> None:
        if self._state.apart:
            self._nodes.sort(key=most_free)  # as free slots will be filled
        self._tree.fits = self._serve
        self._offer_all()
        if self._sated:
            # Slots that are of little use to these are of none to others.
            self._worth = 0.0
            self._release()
            self._offer_all()
        self._tree.fits = None

    def _release(self) -> None:
        for job in self._sated.values():
            job.fit = NO_LIMIT
            self._standing.shift(job)
        self._sated.clear()
        for claims, place, candidate, job in self._waived:
            claims.again(place, candidate, job)

    def _is_enough(self, job: JobState) -> bool:
        if not self._worth or job.speedup.gain(job.slots) >= self._worth:
            return False
        self._sate(job)
        return True

    def _sate(self, job: JobState) -> None:
        job.fit = job.slots
        self._sated[job.uid] = job

    def _offer(self, node: NodeState) -> bool:
        """Give slots of the node as the tree would, leaf after leaf; ask the tree for the rest."""
        gave = False
        while self._is_plain and node.free and (self._in_a_row or not gave):
            leaf = next_leaf(self._tree, 0)
            if leaf is None or leaf.by_slots or not self._serve(leaf, 0, node):
                break
            gave = True
        return gave or super()._offer(node)

    def _serve(self, leaf: Pool, lane: int, node: NodeState) -> bool:
        """Give a slot to the candidate of a leaf to which it is worth most; or several slots that
        would go to the leaf.
        """
        claims = self._claims_of(leaf, lane, node)
        if self._is_plain and claims.first() is not None and self._widen(claims, leaf, node):
            return True
        while (best := claims.best()) is not None:
            if not self._attempt(best[1], lane, node):
                continue
            job = self._dealt[-1][0]
            if job.uid in self._sated:
                self._waived.append((claims, *best, job))
            else:
                claims.again(*best, job)
            return True
        return False

    def _widen(self, claims: Claims, leaf: Pool, node: NodeState) -> bool:
        """Give slots to jobs that have some, while one of these is first; whether any was."""
        most = 1
        if self._in_a_row and is_alone(leaf):
            most = min(node.free, int(self._tree.room(leaf.index)))
        slots = 0
        while slots < most and (claim := claims.first()) is not None:
            job, speed = claim[3:]
            if not job.lanes or job.map is not None or len(job.query.runnable[0]) > 1:
                break
            slots += 1
            job.slots += 1
            job.query.slots += 1
            home = self._home(job, node)
            home.free -= 1
            home.leased += 1
            self._dealt.append((job, home))
            faster = job.speedup.speed(job.slots + 1)
            if self._worth and faster - speed < self._worth:
                claims.drop_first()
                self._sate(job)
                self._waived.append((claims, claim[1], claim[2], job))
                self._standing.shift(job)
            else:
                claims.raise_first(faster)
                if job.slots >= job.width:
                    self._standing.shift(job)
        if self._filling.charges.meters and slots:
            self._tree.charge(leaf.index, slots)
        return slots > 0

    def _claims_of(self, leaf: Pool, lane: int, node: NodeState) -> Claims:
        host = node.host if self._state.apart else ""
        key = (leaf.index, lane, host, node.draining)
        claims = self._claims.get(key)
        if claims is None:
            line = self._line(leaf, lane, node)
            claims = self._claims[key] = Claims(max(leaf.queries, len(line)), line, self._state.now)
        return claims

    def _line(self, leaf: Pool, lane: int, node: NodeState) -> list[Candidate]:
        """The candidates of a leaf in its order, as many as can matter."""
        turns = leaf.free_for(node, lane, self._state)
        if leaf.gates[lane].keys and not node.draining:
            turns = merge(leaf.turns(leaf.gates[lane], self._state), turns)
        most = self._state.total_slots + PASSING
        return [leaf.members[uid] for _, uid in islice(turns, most)]

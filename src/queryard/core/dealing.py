"""How slots come to divisible work and back: grants, revocations, and when to look again.

`share_out` says how all slots would be dealt now; here that is made so, once per instant.
"""

from __future__ import annotations

import math

from .changes import leases
from .commands import Grant, Revoke
from .deal import Shares
from .entities import JobState
from .kernel import Kernel
from .share_out import excess_leases, fitting_shares, limited, rotate


class Dealing:
    """Of one policy at work. `filling` fills the slots, and takes the commands."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._state = kernel.state
        self._filling = kernel.filling
        orders = kernel.policy.pools.orders
        # Whether an order drifts that does not ask for its own times.
        self._drifts = any("time" in order.changes_with and not order.is_timed for order in orders)
        # Whether an order goes by the time: what is ranked anew counts towards its next refresh.
        self._by_time = any("time" in order.changes_with for order in orders)
        # Whether an order goes by how long slots have been leased.
        self._rotates = any("leased" in order.changes_with for order in orders)
        # Leases revoked at the current time are not revoked again at the same time. Otherwise two
        # deals that undo each other could alternate without end.
        self._revoked: set[tuple[str, str]] = set()
        self._revoked_s = -1.0
        # What each job was dealt in this instant, where speed-up curves are known.
        self._shares: Shares | None = None

    def fork(self, kernel: Kernel) -> Dealing:
        copy = Dealing(kernel)
        copy._revoked = self._revoked.copy()
        copy._revoked_s = self._revoked_s
        return copy

    def fill(self) -> None:
        """Fill free slots; where speed-up curves are known, as far as jobs can use them well."""
        self._shares = None
        if self._state.curved:
            self._fill_fitting()
        self._filling.fill()

    def _fill_fitting(self) -> None:
        kernel, notes, standing = self._kernel, self._state.notes, self._kernel.standing
        if self._drifts and self._state.leaseholders:
            kernel.tree.refresh_due(self._state)
        if self._rotates:
            rotate(kernel)
        freed, is_new = list(notes.freed), standing.has_new_candidates
        self._shares = fitting_shares(kernel)
        standing.has_new_candidates = is_new
        has_free = any(node.free for node in self._state.nodes.values())
        if self._shares is not None and (has_free or self._by_time):
            with limited(kernel, self._shares):
                self._filling.fill()
            # What is left over, as on a host where no job was dealt more, is still of some use.
            notes.freed[:], standing.has_new_candidates = freed, is_new

    def settle(self) -> float:
        """Revoke what the policy, dealing all slots out anew, would give to others.

        Returns after how many seconds to look again although nothing happens: orders drift and
        turns end. 0 is never.
        """
        state, tree = self._state, self._kernel.tree
        grants = self._filling.grants
        if state.now != self._revoked_s:
            self._revoked.clear()
            self._revoked_s = state.now
        if self._drifts:
            tree.refresh_due(state)
        if tree.draws_lots and not tree.has_lots:
            tree.draw_lots(state)
        waits = self._rotates and rotate(self._kernel)
        excess = excess_leases(self._kernel, grants, self._revoked, self._shares)
        for job, node_id, slots in excess:
            self._revoked.add((job.id, node_id))
            self.revoke(job, node_id, slots)
        out = self._filling.out
        out.extend(self._grant(job, node, slots) for (job, node), slots in grants.items())
        grants.clear()
        tick_s = state.settings.tick_s if self._drifts or waits else 0.0
        if tree.contended_s < (tick_s or math.inf):
            tick_s = tree.contended_s
        return tick_s if any(tree.root.ready) else 0.0

    def _grant(self, job_id: str, node_id: str, slots: int) -> Grant:
        """Tell of granted slots, and of the shared scan on which the job rides with them."""
        job = self._state.jobs[job_id]
        shares = self._filling.shares(job)
        job.circle = self._kernel.sharing.circle(job, self._state) if shares else ""
        return Grant(job_id, node_id, slots, job.circle)

    def revoke(self, job: JobState, node_id: str, slots: int) -> None:
        """Take slots of a lease back."""
        leases.revoke(job, node_id, slots)
        self._filling.out.append(Revoke(job.id, node_id, slots))

"""What the scheduler consists of, for the modules that it calls with itself."""

from __future__ import annotations

from .admission import Admission
from .filling import Crew, Filling
from .parts import Part, ScanSharing
from .policy import Policy
from .ranks import PoolTree
from .sizing import Sizing
from .standing import Standing
from .state import State


class Kernel:
    """A state, a policy, and the rankings that join them. The scheduler makes and changes them."""

    state: State
    policy: Policy
    tree: PoolTree
    standing: Standing
    admission: Admission
    filling: Filling
    _crew: Crew
    _sizing: Sizing

    @property
    def sharing(self) -> ScanSharing:
        """The part that merges scans, with what it remembers."""
        return self._crew.sharing

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts at work, the orders of all leaves among them."""
        orders = [pool.order for pool in self.tree.pools.values() if pool.order is not None]
        return (*orders, *self._crew.parts, self._sizing.provisioning)

"""The registry: every part by its name, for each decision."""

from __future__ import annotations

from queryard.core.parts import (
    JobOrder,
    Part,
    Placement,
    Provisioning,
    QueryOrder,
    ScanSharing,
    SlotSplit,
)

from .job_orders.dfa import DepthFirst
from .job_orders.hlfet import HighestLevel
from .job_orders.lodfa import LocalDepthFirst
from .job_orders.submission import Submission
from .orders.dearest import Dearest
from .orders.edf import EarliestDeadline
from .orders.fair import Fair, FairJobs
from .orders.fifo import Fifo, FifoJobs
from .orders.largest_slowdown import LargestSlowdown
from .orders.priority import Priority
from .orders.progress import Progress
from .orders.qef import EfficientFair
from .orders.soonest import Soonest
from .orders.srtf import ShortestRemaining
from .orders.swrd import SmallestDemand
from .placement.anywhere import Anywhere
from .placement.local import LocalFirst
from .placement.locf import SkipLimited
from .provisioning.dlx import MeetDeadlines
from .provisioning.fixed import Fixed
from .provisioning.maxbsd import BoundSlowdown
from .provisioning.steps import MinusX, PlusX
from .sharing.alone import Alone
from .sharing.circular import Circular
from .sharing.mrshare import Batches
from .splits.best_static import BestStatic
from .splits.h_tumm import HeterogeneousTumm
from .splits.open import Open
from .splits.room import Room
from .splits.static import Static
from .splits.tumm import Tumm

ORDERS: tuple[type[QueryOrder], ...] = (
    Fifo,
    FifoJobs,
    Fair,
    FairJobs,
    Priority,
    EarliestDeadline,
    LargestSlowdown,
    ShortestRemaining,
    SmallestDemand,
    EfficientFair,
    Progress,
    Soonest,
    Dearest,
)
JOB_ORDERS: tuple[type[JobOrder], ...] = (Submission, HighestLevel, DepthFirst, LocalDepthFirst)
SPLITS: tuple[type[SlotSplit], ...] = (Open, Static, BestStatic, Tumm, HeterogeneousTumm, Room)
PLACEMENTS: tuple[type[Placement], ...] = (LocalFirst, Anywhere, SkipLimited)
SHARINGS: tuple[type[ScanSharing], ...] = (Alone, Batches, Circular)
PROVISIONINGS: tuple[type[Provisioning], ...] = (
    Fixed,
    PlusX,
    MinusX,
    MeetDeadlines,
    BoundSlowdown,
)

# Decision -> the parts that can make it, by name; the first is the default.
PARTS: dict[str, dict[str, type[Part]]] = {
    decision: {part.name: part for part in parts}
    for decision, parts in (
        ("order", ORDERS),
        ("jobs", JOB_ORDERS),
        ("slots", SPLITS),
        ("placement", PLACEMENTS),
        ("sharing", SHARINGS),
        ("provisioning", PROVISIONINGS),
    )
}

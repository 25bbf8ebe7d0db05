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
    Speculation,
)

from .job_orders.dfa import DepthFirst
from .job_orders.hlfet import HighestLevel
from .job_orders.lodfa import LocalDepthFirst
from .job_orders.submission import Submission
from .orders.cost_of_delay import CostOfDelay
from .orders.edf import EarliestDeadline
from .orders.fair import Fair, FairJobs
from .orders.fifo import Fifo, FifoJobs
from .orders.largest_slowdown import LargestSlowdown
from .orders.priority import Priority
from .orders.progress import Progress
from .orders.qef import EfficientFair
from .orders.rounds import Rounds
from .orders.srpt_fair import SrptFair
from .orders.srtf import ShortestRemaining
from .orders.swrd import SmallestDemand
from .placement.anywhere import Anywhere
from .placement.local import LocalFirst
from .placement.locf import SkipLimited
from .placement.rack import RackFirst
from .provisioning.dlx import MeetDeadlines
from .provisioning.fixed import Fixed
from .provisioning.maxbsd import BoundSlowdown
from .provisioning.steps import MinusX, PlusX
from .sharing.alone import Alone
from .sharing.circular import Circular
from .sharing.mrshare import Batches
from .speculation.late import Late
from .speculation.never import Never
from .splits.best_static import BestStatic
from .splits.h_tumm import HeterogeneousTumm
from .splits.open import Open
from .splits.reserve_short import ReserveShort
from .splits.static import Static
from .splits.tumm import Tumm

# The first part of a decision is the one of profiles that name none.
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
    SrptFair,
    CostOfDelay,
    Rounds,
)
JOB_ORDERS: tuple[type[JobOrder], ...] = (Submission, HighestLevel, DepthFirst, LocalDepthFirst)
SPLITS: tuple[type[SlotSplit], ...] = (
    Open,
    Static,
    BestStatic,
    Tumm,
    HeterogeneousTumm,
    ReserveShort,
)
PLACEMENTS: tuple[type[Placement], ...] = (LocalFirst, RackFirst, Anywhere, SkipLimited)
SHARINGS: tuple[type[ScanSharing], ...] = (Alone, Batches, Circular)
PROVISIONINGS: tuple[type[Provisioning], ...] = (
    Fixed,
    PlusX,
    MinusX,
    MeetDeadlines,
    BoundSlowdown,
)
SPECULATIONS: tuple[type[Speculation], ...] = (Never, Late)

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
        ("speculation", SPECULATIONS),
    )
}

# Names that parts had before, in profile files and journals, and the names they have now.
FORMER_PARTS: dict[str, dict[str, str]] = {
    "order": {"dearest": "cost-of-delay", "soonest": "srpt-fair"},
    "slots": {"room": "reserve-short"},
}


def part_name(decision: str, name: str) -> str:
    """The name a part has now; an unknown name stays as it is.

    >>> part_name("order", "soonest"), part_name("order", "fifo")
    ('srpt-fair', 'fifo')
    """
    return FORMER_PARTS.get(decision, {}).get(name, name)

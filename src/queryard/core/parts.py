"""One small interface per decision. A policy is a composition of named parts.

A part sees the state and estimates, never the truth. It may keep memory of its own as long as
`fork` copies it. Ties always end in an id: rankings append the candidate's number.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from .entities import Candidate, JobState, NodeState, QueryState
from .errors import InvalidProfile, unknown_name
from .phases import PhaseState
from .rankings import Key, Ranking

if TYPE_CHECKING:
    from .commands import Launch
    from .state import State

# What a key may depend on: the slots a candidate holds, since when it has leased some, its work
# left (less with every task that ends), the expected size of the whole of it (which only
# estimates change), the time.
Change = Literal["slots", "leased", "work", "size", "time"]


class Part:
    """What all parts share."""

    name: ClassVar[str] = ""
    citation: ClassVar[str] = ""
    # False where the rule may leave a slot free although a task could use it.
    work_conserving: ClassVar[bool] = True
    # True where the rule serves queries that have yet to arrive. In a simulation without arrivals
    # such a rule only costs, so a portfolio leaves it out.
    is_for_arrivals: ClassVar[bool] = False

    def fork(self) -> Self:
        """An independent copy; override where the part keeps containers."""
        return copy.copy(self)

    def attach(self, state: State) -> None:
        """Begin with this state; whatever the part keeps is rebuilt from it."""

    def take_over(self, before: Self, state: State) -> None:
        """Go on with what one of the same kind, in force until now, has seen; after `attach`."""

    def violations(self, state: State) -> Iterable[str]:
        """What the part remembers and is not so (see `validate`)."""
        return ()

    def wake_s(self, state: State) -> float | None:
        """When the part wants to be asked again though nothing happens; None for never."""
        return None

    @property
    def is_timed(self) -> bool:
        """Whether the part ever asks to be woken."""
        return type(self).wake_s is not Part.wake_s

    def woke(self, state: State) -> None:
        """A time asked for by some part has come."""

    def look_every(self, seconds: float) -> None:
        """Ask to be woken no more often than this; said to forks that are simulated for hours."""


class QueryOrder(Part):
    """Which candidate of a leaf is served next: the one with the smallest key."""

    # Whether whole queries are ranked, or their runnable jobs one by one.
    unit: ClassVar[Literal["query", "job"]] = "query"
    # What a candidate's key depends on beyond its submission. With "time" all keys of the
    # leaf are refreshed on a tick (see `ranks`), unless the order follows the clock by itself.
    changes_with: ClassVar[frozenset[Change]] = frozenset()

    def key(self, candidate: Candidate, state: State) -> Key:
        raise NotImplementedError

    def prepare(self, candidates: Collection[Candidate], state: State) -> None:
        """Look at all candidates of the leaf before their keys are refreshed."""

    def ranking(self) -> Ranking:
        """An empty ranking for candidates of the leaf; `Moving` if the order follows the clock."""
        return Ranking()

    def turns(
        self, ranking: Ranking, leaf: Sequence[Ranking], state: State
    ) -> Iterable[tuple[Key, int]]:
        """The candidates of a ranking as they stand now: (key, number), the smallest first.

        Asked at each decision where rankings are `Moving`; `leaf` are all rankings of the leaf.
        """
        return ranking.entries

    def key_now(self, key: Key, leaf: Sequence[Ranking], state: State) -> Key:
        """What a key of a `Moving` ranking is now, to be compared with others of its leaf."""
        return key

    def left(self, uid: int) -> None:
        """A candidate can use no slot any more."""

    def elapse(self, seconds: float, slots: float, queries: int, state: State) -> Iterable[int]:
        """So long, so many slots have served so many queries of the leaf.

        Returns the numbers of the candidates that have other keys now.
        """
        return ()

    @property
    def keeps_time(self) -> bool:
        """Whether the order wants to hear of the time that passes."""
        return type(self).elapse is not QueryOrder.elapse


class JobOrder(Part):
    """Which runnable job of the query gets the slot."""

    def pick(self, jobs: Sequence[JobState], state: State) -> JobState:
        raise NotImplementedError


class SlotSplit(Part):
    """Which work a free slot of a node serves.

    Work is ranked in lanes. A split with one lane leaves everything to the query's order; one
    with more says in which of them maps, reduces and divisible work stand, and which lane, or
    lanes in turn, the free slot is offered to.
    """

    lanes: ClassVar[int] = 1
    # The lanes, as bits, in which these stand.
    map_bits: ClassVar[int] = 1
    reduce_bits: ClassVar[int] = 1
    lease_bits: ClassVar[int] = 1
    _ONE_LANE: ClassVar[tuple[int, ...]] = (0,)

    def suits(self, job: JobState, phase: PhaseState, lane: int) -> bool:
        """Whether tasks of a phase of the job may stand in a lane that is open to their kind."""
        return True

    def serve(self, node: NodeState, state: State) -> tuple[int, ...]:
        """The lanes to try for a free slot of the node, best first."""
        return self._ONE_LANE

    def note(self, job: JobState, state: State) -> None:
        """A job changed: a task was launched, finished, failed, or it ended."""

    def ended(self, state: State) -> bool:
        """A query is gone; whether others therefore suit other lanes than before."""
        return False

    def opened(self, state: State) -> bool:
        """Whether slots may be used that were kept, beside those of nodes where some came free."""
        return False

    @property
    def restricts_lanes(self) -> bool:
        """Whether some tasks of a kind may not stand where others do."""
        return type(self).suits is not SlotSplit.suits


class Placement(Part):
    """Which pending map task of a job runs on the node, or that none should."""

    def pick(self, job: JobState, node: NodeState, state: State) -> int | None:
        """Take a task, or None to decline this node for now."""
        raise NotImplementedError

    def accepts(self, job: JobState, node: NodeState, state: State) -> bool:
        """Whether `pick` would take a task; changes nothing."""
        return True

    def home(self, job: JobState, nodes: Sequence[NodeState], state: State) -> NodeState | None:
        """Where divisible work that will stay on its host had best start, of nodes with a free
        slot; None if one is as good as another. Changes nothing.
        """
        return None


@dataclass(frozen=True, slots=True)
class Ride:
    """The read of one split: which map task of each rider, and the round it belongs to."""

    index: int
    riders: tuple[JobState, ...]
    round: str


class ScanSharing(Part):
    """Which tasks ride together on one read of a split.

    Only jobs that scan one table can share. If they have a task per split, the part decides
    which split comes next, and may hold them back (`job.held_back`) until a round or a batch
    opens. Jobs of which it changed `held_back` are returned, so that rankings follow. Divisible
    ones go round the splits by themselves; the part says whether they parse together (`circle`).
    """

    def ready(self, job: JobState, state: State) -> list[JobState]:
        """A job that can share has become ready."""
        return []

    def ride(self, job: JobState, node: NodeState, state: State) -> Ride | None:
        """The job's turn on this node; None if it does not share (any more)."""
        return None

    def launched(self, job: JobState, state: State) -> list[JobState]:
        """The ride just offered for this job was launched."""
        return []

    def ended(self, run: Launch, state: State) -> list[JobState]:
        """A launch of one of its rounds has ended."""
        return []

    def returned(self, job: JobState, index: int, state: State) -> list[JobState]:
        """A map task of a sharing job must run again."""
        return []

    def left(self, job: JobState, state: State) -> list[JobState]:
        """A job is gone."""
        return []

    def released(self, state: State) -> list[JobState]:
        """Jobs to look at again after the part woke."""
        return []

    def circle(self, job: JobState, state: State) -> str:
        """The shared scan on which a divisible job rides from now on; "" if on none."""
        return ""

    def companions(self, job: JobState, state: State) -> tuple[str, ...]:
        """The other queries that ride on the same shared scan, in the order in which they came."""
        return ()

    def scanned_s(self, job: JobState, state: State) -> float | None:
        """When a job that rides on a shared scan will have read all; None if it rides on none."""
        return None


class Speculation(Part):
    """Which tasks that run are run a second time elsewhere, the first to end counting."""

    def behind(self, state: State) -> Sequence[Launch]:
        """Launches to be repeated, the most urgent first; asked when slots are left over.

        Each is of one task, which no other launch does.
        """
        return ()

    def goes(self, run: Launch, node: NodeState, state: State) -> bool:
        """Whether the task of a launch may be run a second time on a node."""
        return node.id != run.node


class Provisioning(Part):
    """How many nodes there should be; asked once per period."""

    def nodes(self, state: State) -> int | None:
        """The wanted number of nodes, or None to leave it."""
        return None


# The pools a division can have; none are listed where any name will do.
DIVISIONS: dict[str, tuple[str, ...]] = {
    "tenant": (),
    "deadline": ("deadline", "batch"),
    "kind": ("exact", "online"),
}


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


@dataclass(frozen=True)
class PoolSpec:
    """A node of the tree of shares.

    A leaf names an `order`. An inner pool has `children`, or divides its queries `by` tenant,
    by whether they have a deadline, or by kind; children not named follow `default`.
    Tenants may be paths: `level` says which component of it a pool by tenant goes by. Where
    the path has ended the child is called "", a default like any other.
    `guarantee` and `cap` are shares of all slots. Without a cap a pool borrows what others
    leave; a hard reservation is a cap on all others.
    `weight` "queries" makes the weight the number of active queries. `choice` says how an
    inner pool turns to its children: by `share` of the slots at the moment, by `turns`, whose
    shares are of the slot-time (a turn lasts about `quantum_s`; a child that comes back may use
    slots for up to `credit` quanta at once), or by a `lottery`, with the weights as odds: for every
    task, and once per `quantum_s` for leased slots.
    """

    order: QueryOrder | None = None
    by: Literal["tenant", "deadline", "kind"] | None = None
    children: Mapping[str, PoolSpec] = field(default_factory=dict)
    default: PoolSpec | None = None
    weight: float | Literal["queries"] = 1.0
    guarantee: float = 0.0
    cap: float = 1.0
    choice: Literal["share", "turns", "lottery"] = "share"
    quantum_s: float = 0.5
    credit: float = 2.0
    level: int = 0

    def __post_init__(self) -> None:
        if (self.order is None) == (self.by is None):
            raise InvalidProfile("a pool needs either an order (a leaf) or 'by' (inner pool)")
        if self.weight != "queries" and not _is_positive(self.weight):
            raise InvalidProfile(f"weight must be above 0 or 'queries', got {self.weight!r}")
        if not _is_positive(self.quantum_s) or self.quantum_s == math.inf:
            raise InvalidProfile(f"quantum_s must be a number above 0, got {self.quantum_s!r}")
        if self.credit and not _is_positive(self.credit):
            raise InvalidProfile(f"credit must be a number of quanta from 0, got {self.credit!r}")
        for name in ("guarantee", "cap"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise InvalidProfile(f"{name} must be a share between 0 and 1, got {value!r}")
        if self.cap == 0:
            raise InvalidProfile("cap 0 would never let a query of the pool run")
        if self.guarantee > self.cap:
            raise InvalidProfile(f"guarantee {self.guarantee:g} is above the cap {self.cap:g}")
        self._check_children()
        named = sum(child.guarantee for child in self.children.values())
        if named > 1 + 1e-9:
            raise InvalidProfile(f"the guarantees of the pools add up to {named:g}, more than 1")

    def _check_children(self) -> None:
        """Every query must find a pool, and a named pool must be able to find queries."""
        if self.by is None:
            return
        divisions = DIVISIONS[self.by]
        for name in self.children:
            if divisions and name not in divisions:
                raise InvalidProfile(unknown_name(f"pool by {self.by}", name, divisions))
        missing = [name for name in divisions or ("others",) if name not in self.children]
        if missing and self.default is None:
            raise InvalidProfile(
                f"pools by {self.by}: no pool for {', '.join(missing)}; name it or give a default"
            )

    def route(self, query: QueryState) -> tuple[str, PoolSpec]:
        """The child a query belongs to."""
        spec = query.spec
        if self.by == "tenant":
            path = spec.tenant.split("/")
            name = path[self.level] if self.level < len(path) else ""
        elif self.by == "deadline":
            name = "batch" if spec.deadline_s is None else "deadline"
        else:
            name = spec.kind
        child = self.children.get(name, self.default)
        assert child is not None, "checked when the pool was made"
        return name, child

    @property
    def promised(self) -> float:
        """Its guarantee; at least what it guarantees to the pools in it, if its cap allows."""
        inside = sum(child.promised for child in self.children.values())
        return min(self.cap, max(self.guarantee, inside))

    @property
    def caps_all(self) -> bool:
        """Whether its children are known, and their caps add up to its own: all it may use."""
        if self.by is None or self.default is not None:
            return False
        return abs(sum(child.cap for child in self.children.values()) - self.cap) < 1e-9

    @property
    def draws_lots(self) -> bool:
        """Whether there is a lottery here or below."""
        below = [*self.children.values(), *([self.default] if self.default else [])]
        return self.choice == "lottery" or any(child.draws_lots for child in below)

    @property
    def orders(self) -> list[QueryOrder]:
        """The orders named in this pool and below it."""
        below = [*self.children.values(), *([self.default] if self.default else [])]
        own = [self.order] if self.order else []
        return own + [order for child in below for order in child.orders]

    @property
    def keeps_time(self) -> bool:
        """Whether pools take turns here, or an order goes by the time that has passed."""
        if self.order is not None:
            return self.order.keeps_time
        below = [*self.children.values(), *([self.default] if self.default else [])]
        return self.choice == "turns" or any(child.keeps_time for child in below)

    @property
    def work_conserving(self) -> bool:
        """Hard caps may leave slots idle."""
        if self.order is not None:
            return self.order.work_conserving and self.cap == 1
        below = [*self.children.values(), *([self.default] if self.default else [])]
        return self.cap == 1 and all(child.work_conserving for child in below)


@dataclass(frozen=True)
class Policy:
    """A profile with its parts made: one for each decision."""

    name: str
    pools: PoolSpec
    job_order: JobOrder
    split: SlotSplit
    placement: Placement
    sharing: ScanSharing
    provisioning: Provisioning
    speculation: Speculation
    # The data it was composed from, for the journal.
    profile: Mapping[str, Any]

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts, as composed."""
        return (
            *self.pools.orders,
            self.job_order,
            self.split,
            self.placement,
            self.sharing,
            self.provisioning,
            self.speculation,
        )

    @property
    def work_conserving(self) -> bool:
        """Whether a free slot is always given to a candidate that could use it."""
        return self.pools.work_conserving and all(part.work_conserving for part in self.parts)

    @property
    def timed(self) -> bool:
        """Whether some part asks to be woken."""
        return any(part.is_timed for part in self.parts)

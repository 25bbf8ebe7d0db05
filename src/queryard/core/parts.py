"""One small interface per decision. A policy is composed of such parts (`policy`).

A part sees the state and estimates, never the truth. It may keep memory of its own as long as
`fork` copies it. Ties always end in an id: rankings append the candidate's number.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from .entities import Candidate, JobState
from .nodes import NodeState
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

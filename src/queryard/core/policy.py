"""A policy: named parts, one for each decision, and the tree of pools with their shares."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .entities import QueryState
from .errors import InvalidProfile, unknown_name
from .parts import (
    JobOrder,
    Part,
    Placement,
    Provisioning,
    QueryOrder,
    ScanSharing,
    SlotSplit,
    Speculation,
)

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

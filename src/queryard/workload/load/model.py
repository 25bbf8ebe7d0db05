"""What is put to a machine, and when: the vocabulary of `queryard load`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple

from queryard.core.model import Tenant

ArrivalKind = Literal["poisson", "bursty", "at once", "every", "recorded"]


@dataclass(frozen=True, slots=True)
class Request:
    """One query: when it is submitted (seconds from the start), by which tenant, and its text.

    Requests of one `template` differ in parameters only; their time alone is measured together. The
    deadline is `deadline_s` after the submission, or `deadline_factor` times the time alone.
    """

    id: str
    time_s: float
    tenant: str
    template: str
    sql: str
    priority: float = 0.0
    deadline_factor: float | None = None
    deadline_s: float | None = None

    def due_within_s(self, alone: Mapping[str, Alone]) -> float | None:
        """Seconds from submission to deadline; None without one, or if its time alone is unknown.

        >>> ask = Request("r1", 0.0, "web", "q06", "SELECT 1", deadline_factor=3.0)
        >>> ask.due_within_s({"q06": Alone(2.0, 4.0)})
        6.0
        """
        if self.deadline_s is not None or self.deadline_factor is None:
            return self.deadline_s
        own = alone.get(self.template)
        return None if own is None else self.deadline_factor * own.alone_s


class Alone(NamedTuple):
    """What a template takes on the idle machine: wall seconds and core-seconds."""

    alone_s: float
    work_s: float


class Template(NamedTuple):
    """A query that can be asked again and again; `text` draws its parameters."""

    name: str
    text: Callable[[Random], str]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When queries arrive, counted from `start_s`.

    poisson and bursty: `rate_per_s` queries per second, or as many as make up the share `load` of
    what the slots can do. bursty: all of them within `on_s`, then none for `off_s`, repeatedly; the
    rate is the mean over both. every: one per `every_s`. recorded: as in `file`.
    """

    kind: ArrivalKind
    rate_per_s: float | None = None
    load: float | None = None
    on_s: float = 0.0
    off_s: float = 0.0
    every_s: float = 0.0
    start_s: float = 0.0
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class Amount:
    """How many queries arrive: `queries`, or all within `duration_s`; a recording has its own."""

    queries: int | None = None
    duration_s: float | None = None


@dataclass(frozen=True, slots=True)
class Asker:
    """A tenant, and the queries it sends.

    `share` is its part of the common arrivals, by weight against the others; one with `arrivals` of
    its own has none. `mix` weighs the templates. Of a template there are `variants` texts, or one
    for every request (None). The share `deadlines` of its queries have a deadline: `deadline_s`
    after submission, else the time alone times a factor drawn evenly from `tightness`.
    """

    tenant: Tenant
    mix: Mapping[str, float]
    share: float = 1.0
    priority: float = 0.0
    variants: int | None = None
    deadlines: float = 0.0
    tightness: tuple[float, float] = (1.0, 3.0)
    deadline_s: float | None = None
    arrivals: Arrivals | None = None
    amount: Amount = Amount()

    @property
    def name(self) -> str:
        return self.tenant.name


@dataclass(frozen=True, slots=True)
class Data:
    """What is read: TPC-H as schemas at scales, or a place of the user's; and a folder of SQL."""

    tpch: Mapping[str, float]
    place: Path | None = None
    sql: Path | None = None


@dataclass(frozen=True, slots=True)
class LoadSpec:
    """A whole load. `slots` and `memory_bytes` of None are those of the machine."""

    name: str
    data: Data
    templates: Mapping[str, Template]
    askers: tuple[Asker, ...]
    arrivals: Arrivals
    amount: Amount
    seed: int = 0
    slots: int | None = None
    memory_bytes: int | None = None
    profile: str = "marshal"

    @property
    def tenants(self) -> tuple[Tenant, ...]:
        """The tenants that have shares in the spec; none if no tenant has."""
        plain = all(asker.tenant == Tenant(asker.name) for asker in self.askers)
        return () if plain else tuple(asker.tenant for asker in self.askers)

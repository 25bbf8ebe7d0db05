"""What a generated workload is made of: sizes, shapes, load, owners, deadlines.

The presets are the three mixes of TLS (100 queries each, by input size). Their last bin,
printed as "more than 100 GB", is drawn between 100 and 200 GB, the largest size in its figures.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from queryard.core.amounts import parse_bytes, parse_seconds
from queryard.core.errors import InvalidRecord, unknown_name

from .shapes import MIXED, SHAPES

GB = 1e9


@dataclass(frozen=True, slots=True)
class SizeBin:
    """A share of the queries, with input sizes drawn evenly between two bounds."""

    name: str
    share: float
    least_gb: float
    most_gb: float

    def __post_init__(self) -> None:
        if not (self.share >= 0 and 0 < self.least_gb <= self.most_gb < math.inf):
            raise InvalidRecord(f"size bin {self.name!r}: needs a share and sizes above 0")

    @property
    def mean_bytes(self) -> float:
        return (self.least_gb + self.most_gb) / 2 * GB


def _tls_bins(*shares: float) -> tuple[SizeBin, ...]:
    sizes = ((1, 10), (20, 20), (50, 50), (100, 100), (100, 200))
    return tuple(
        SizeBin(str(number), share, least, most)
        for number, (share, (least, most)) in enumerate(zip(shares, sizes, strict=True), 1)
    )


@dataclass(frozen=True, slots=True)
class Preset:
    """Size bins, and the share of queries that are a single job of another framework."""

    bins: tuple[SizeBin, ...]
    plain_jobs: float = 0.0


PRESETS: Mapping[str, Preset] = {
    "bing": Preset(_tls_bins(44, 8, 24, 22, 2)),
    "facebook": Preset(_tls_bins(85, 4, 8, 2, 1)),
    "qmix": Preset(_tls_bins(85, 4, 8, 2, 1), plain_jobs=0.2),
}


@dataclass(frozen=True, slots=True)
class Mix:
    """A Poisson stream of queries. Shares are between 0 and 1, of all queries.

    `load` is the work that arrives in a second over what the slots can do in one.
    `deadlines` get alone time x U(1, 3), as in POSUM. `online` queries answer in mini-batches,
    `divisible` ones run as a whole under leases; of their work the share `serial` is done by one
    slot while others wait. `shared` queries read their bin's common
    table, all others tables of their own. `memory` is reserved per byte of input.
    `classes` is how many kinds of query there are; those of a kind have one shape and one cost
    per byte. `map_s_per_gb` is the mean of that cost, at which a block of 256 MB takes 15 s.
    """

    queries: int = 100
    bins: tuple[SizeBin, ...] = PRESETS["facebook"].bins
    plain_jobs: float = 0.0
    shape: str = MIXED
    load: float = 0.8
    deadlines: float = 0.0
    online: float = 0.0
    divisible: float = 0.0
    serial: float = 0.0
    shared: float = 0.0
    tenants: Mapping[str, float] = field(default_factory=lambda: {"default": 1.0})
    memory: float = 0.0
    classes: int = 12
    block_bytes: float = 256e6
    map_s_per_gb: float = 60.0

    def __post_init__(self) -> None:
        for name in ("plain_jobs", "deadlines", "online", "divisible", "serial", "shared"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidRecord(f"{name} must lie between 0 and 1, got {getattr(self, name)}")
        for name in ("queries", "load", "classes", "block_bytes", "map_s_per_gb"):
            if not 0 < getattr(self, name) < math.inf:
                raise InvalidRecord(f"{name} must be above 0, got {getattr(self, name)}")
        if not 0 <= self.memory < math.inf:
            raise InvalidRecord(f"memory must be at least 0, got {self.memory}")
        if self.online + self.divisible > 1:
            raise InvalidRecord("online and divisible queries together are more than all queries")
        if self.shape not in (*SHAPES, MIXED):
            raise InvalidRecord(unknown_name("shape", self.shape, (*SHAPES, MIXED)))
        if not sum(item.share for item in self.bins) > 0:
            raise InvalidRecord("the shares of the size bins add up to 0")
        if not (self.tenants and all(weight > 0 for weight in self.tenants.values())):
            raise InvalidRecord(f"tenants need weights above 0, got {dict(self.tenants)}")


MIX_KEYS = (
    "queries",
    "bins",
    "shape",
    "load",
    "deadlines",
    "online",
    "divisible",
    "serial",
    "shared",
    "tenants",
    "memory",
    "classes",
    "block",
    "map_s_per_gb",
)


def parse_mix(text: str) -> Mix:
    """A mix from `key=value` pairs, as `--generate` takes them.

    `bins` is a preset, or bins of SHARE:GB or SHARE:GB-GB joined by '/'; `tenants` are names
    with an optional weight, joined by '/'.

    >>> mix = parse_mix("queries=50, bins=80:1-5/20:40, load=0.7, tenants=web:3/batch")
    >>> mix.queries, [b.share for b in mix.bins], dict(mix.tenants)
    (50, [80.0, 20.0], {'web': 3.0, 'batch': 1.0})
    """
    values: dict[str, object] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if key not in MIX_KEYS:
            raise InvalidRecord(unknown_name("key", key, MIX_KEYS))
        if not equals or not value:
            raise InvalidRecord(f"{pair!r}: write {key}=VALUE")
        if key in values or (key == "block" and "block_bytes" in values):
            raise InvalidRecord(f"{key} is given twice")
        values.update(_read_key(key, value))
    return Mix(**values)  # type: ignore[arg-type]


def _read_key(key: str, value: str) -> dict[str, object]:
    if key == "bins":
        if value in PRESETS:
            return {"bins": PRESETS[value].bins, "plain_jobs": PRESETS[value].plain_jobs}
        return {"bins": tuple(_read_bin(part) for part in value.split("/"))}
    if key == "tenants":
        return {"tenants": dict(_read_tenant(part) for part in value.split("/"))}
    if key == "block":
        return {"block_bytes": parse_bytes(value)}
    if key == "shape":
        return {"shape": value}
    if key == "map_s_per_gb":
        return {key: parse_seconds(value)}
    wanted = {item.name: item.type for item in fields(Mix)}[key]
    try:
        return {key: int(value) if wanted == "int" else float(value)}
    except ValueError as error:
        raise InvalidRecord(f"{key}={value}: expected a number") from error


def _read_bin(text: str) -> SizeBin:
    found = re.fullmatch(r"\s*([\d.]+)\s*:\s*([\d.]+)(?:\s*-\s*([\d.]+))?\s*", text)
    try:
        if found is None:
            raise ValueError
        least, most = float(found[2]), float(found[3] or found[2])
        return SizeBin(f"{text.partition(':')[2].strip()} GB", float(found[1]), least, most)
    except ValueError as error:
        problem = unknown_name("bins", text, PRESETS)
        raise InvalidRecord(f"{problem}, or write SHARE:GB or SHARE:GB-GB") from error


def _read_tenant(text: str) -> tuple[str, float]:
    name, colon, weight = (part.strip() for part in text.partition(":"))
    try:
        return name, float(weight) if colon else 1.0
    except ValueError as error:
        raise InvalidRecord(f"tenants: {text!r} is not NAME or NAME:WEIGHT") from error

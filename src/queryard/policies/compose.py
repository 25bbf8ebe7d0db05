"""From data to a policy: a profile names one part for each decision.

A profile is a mapping, as TOML or JSON give it. A part is its name, or a table with its name
and its settings; whatever is left out takes the default.

>>> compose({"order": "fifo"}).job_order.name
'submission'
>>> compose({"order": "fifos"})
Traceback (most recent call last):
...
queryard.core.errors.InvalidProfile: order: unknown order 'fifos'; did you mean 'fifo'? (valid: ...
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, cast

from queryard.core.errors import InvalidModel, InvalidProfile, unknown_name
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
from queryard.core.policy import Policy, PoolSpec

from .parts import PARTS, part_name

DEFAULTS = {decision: next(iter(parts)) for decision, parts in PARTS.items()}
ABOUT = ("name", "summary", "citation", "origin")
CHOICES = ("share", "turns", "lottery")
SHARE_KEYS = ("weight", "guarantee", "cap", "choice", "quantum_s", "credit")
POOL_KEYS = ("by", "children", "default", "order", *SHARE_KEYS)


def settings_of(part: type[Part]) -> dict[str, inspect.Parameter]:
    """The settings a part takes, from its constructor."""
    if part.__init__ is object.__init__:
        return {}
    parameters = inspect.signature(part.__init__).parameters
    return {name: value for name, value in parameters.items() if name != "self"}


def make_part(decision: str, given: Any, where: str) -> Part:
    """One part from its name, or from a table of its name and settings."""
    known = PARTS[decision]
    if isinstance(given, str):
        name, settings = given, {}
    elif isinstance(given, Mapping):
        settings = {key: value for key, value in given.items() if key != "name"}
        name = given.get("name", DEFAULTS[decision])
    else:
        raise InvalidProfile(f"{where}: expected the name of a part or a table, got {given!r}")
    if isinstance(name, str):
        name = part_name(decision, name)
    if name not in known:
        raise InvalidProfile(f"{where}: {unknown_name(decision, name, known)}")
    part = known[name]
    valid = settings_of(part)
    for key in settings:
        if key not in valid:
            raise InvalidProfile(f"{where}: {unknown_name(f'setting of {name}', key, valid)}")
    try:
        return part(**settings)
    except (InvalidModel, TypeError, ValueError) as error:
        raise InvalidProfile(f"{where}, {name}: {error}") from error


def for_arrivals(profile: Mapping[str, Any]) -> dict[str, Any]:
    """What a profile says for the sake of queries that are yet to come.

    >>> for_arrivals({"order": "srtf", "slots": "reserve-short"})
    {'slots': 'reserve-short'}
    """
    return {
        decision: given
        for decision, given in profile.items()
        if decision in PARTS and make_part(decision, given, decision).is_for_arrivals
    }


def make_pools(data: Any, where: str, level: int = 0) -> PoolSpec:
    """The tree of pools; a leaf is a table with an order, or just the order's name.

    `level` counts the pools by tenant around this one: each takes one component of the path.
    """
    if isinstance(data, str):
        data = {"order": data}
    if not isinstance(data, Mapping):
        raise InvalidProfile(f"{where}: expected a table, got {data!r}")
    for key in data:
        if key not in POOL_KEYS:
            raise InvalidProfile(f"{where}: {unknown_name('key', key, POOL_KEYS)}")
    by = data.get("by")
    if by is not None and by not in ("tenant", "deadline", "kind"):
        raise InvalidProfile(
            f"{where}.by: {unknown_name('division', by, ('tenant', 'deadline', 'kind'))}"
        )
    choice = data.get("choice", "share")
    if choice not in CHOICES:
        raise InvalidProfile(f"{where}.choice: {unknown_name('choice', choice, CHOICES)}")
    if "quantum_s" in data and choice == "share":
        raise InvalidProfile(
            f'{where}.quantum_s: only pools with choice = "turns" or "lottery" have one'
        )
    if "credit" in data and choice != "turns":
        raise InvalidProfile(f'{where}.credit: only pools with choice = "turns" have one')
    children = data.get("children", {})
    if not isinstance(children, Mapping):
        raise InvalidProfile(f"{where}.children: expected a table of pools, got {children!r}")
    order = make_part("order", data["order"], f"{where}.order") if "order" in data else None
    below = level + (by == "tenant")
    default = data.get("default")
    try:
        return PoolSpec(
            order=cast(QueryOrder | None, order),
            by=by,
            children={
                name: make_pools(child, f"{where}.children.{name}", below)
                for name, child in children.items()
            },
            default=None if default is None else make_pools(default, f"{where}.default", below),
            weight=data.get("weight", 1.0),
            guarantee=data.get("guarantee", 0.0),
            cap=data.get("cap", 1.0),
            choice=choice,
            quantum_s=data.get("quantum_s", PoolSpec.quantum_s),
            credit=data.get("credit", PoolSpec.credit),
            level=level,
        )
    except InvalidProfile as error:
        text = str(error)
        raise InvalidProfile(text if text.startswith(where) else f"{where}: {text}") from error


def compose(profile: Mapping[str, Any]) -> Policy:
    """Make the policy a profile describes; errors list the valid names."""
    if not isinstance(profile, Mapping):
        raise InvalidProfile(f"a profile is a table of parts, got {profile!r}")
    valid = (*ABOUT, "pools", *DEFAULTS)
    for key in profile:
        if key not in valid:
            raise InvalidProfile(unknown_name("key of a profile", key, ("base", *valid)))
    if "pools" in profile and "order" in profile:
        raise InvalidProfile("give either pools or an order: the leaves of the pools name orders")
    pools = profile.get("pools", {"order": profile.get("order", DEFAULTS["order"])})
    where = "pools" if "pools" in profile else "order"
    if where == "order":
        spec = PoolSpec(cast(QueryOrder, make_part("order", pools["order"], where)))
    else:
        spec = make_pools(pools, where)

    def part(decision: str) -> Part:
        return make_part(decision, profile.get(decision, DEFAULTS[decision]), decision)

    return Policy(
        name=str(profile.get("name", "unnamed")),
        pools=spec,
        job_order=cast(JobOrder, part("jobs")),
        split=cast(SlotSplit, part("slots")),
        placement=cast(Placement, part("placement")),
        sharing=cast(ScanSharing, part("sharing")),
        provisioning=cast(Provisioning, part("provisioning")),
        speculation=cast(Speculation, part("speculation")),
        profile=profile,
    )

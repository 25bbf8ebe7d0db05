"""Profiles by name: what there is, and the data of the one that was asked for.

>>> next(info.composition for info in catalogue() if info.name == "tls")
'qef + lodfa'
>>> resolve_profile("tls")["order"]
'qef'
>>> resolve_profile({"base": "tls", "sharing": "circular"})["jobs"]
'lodfa'
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from queryard.core.errors import InvalidProfile, unknown_name

from .compose import ABOUT, DEFAULTS, compose
from .parts import part_name
from .profiles import FORMER_PROFILES, PROFILES


@dataclass(frozen=True, slots=True)
class ProfileInfo:
    """What `queryard policies` shows of a profile; a text that is not given is ""."""

    name: str
    composition: str
    summary: str
    citation: str
    origin: str


def catalogue() -> list[ProfileInfo]:
    """All registered profiles: baselines, published ones, new ones."""
    return [about(profile) for profile in PROFILES.values()]


def profile_name(name: str) -> str:
    """The name a profile has now; an unknown name stays as it is.

    >>> profile_name("dearest"), profile_name("tls")
    ('cost-of-delay', 'tls')
    """
    return FORMER_PROFILES.get(name, name)


def about(profile: Mapping[str, Any]) -> ProfileInfo:
    """What a profile says of itself, and its composition."""
    said = {key: str(profile.get(key, "")) for key in ABOUT}
    return ProfileInfo(composition=composition(profile), **said)


def resolve_profile(given: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """The data of a registered profile, or of one of the caller's own, checked.

    One's own may name a `base`, a registered profile from which it takes what it leaves out.
    """
    if isinstance(given, str):
        name = profile_name(given)
        if name not in PROFILES:
            raise InvalidProfile(unknown_name("profile", given, PROFILES))
        return copy.deepcopy(dict(PROFILES[name]))
    if not isinstance(given, Mapping):
        raise InvalidProfile(f"a profile is a name or a table of parts, got {given!r}")
    profile = _on_its_base(given) if "base" in given else dict(given)
    compose(profile)
    return profile


def _on_its_base(given: Mapping[str, Any]) -> dict[str, Any]:
    name = given["base"]
    if not isinstance(name, str) or (name := profile_name(name)) not in PROFILES:
        raise InvalidProfile(f"base: {unknown_name('profile', name, PROFILES)}")
    base = copy.deepcopy(dict(PROFILES[name]))
    merged = {key: value for key, value in base.items() if key not in ABOUT}
    if "order" in given:
        merged.pop("pools", None)
    if "pools" in given:
        order = merged.pop("order", DEFAULTS["order"])
        merged["pools"] = _continue(merged.get("pools", {"order": order}), given["pools"])
    kept = {key: value for key, value in given.items() if key not in ("base", "pools")}
    return merged | kept


def _continue(base: Any, given: Any) -> Any:
    """A pool that says neither `by` nor `order` continues the pool of the base.

    So do its children, each with the base's child of its name, else with the default.
    """
    if not isinstance(given, Mapping) or "by" in given or "order" in given:
        return given
    if isinstance(base, str):
        base = {"order": base}
    if not isinstance(base, Mapping):
        return given
    merged = {**base, **given}
    default = base.get("default")
    if "default" in given:
        merged["default"] = default = _continue(default, given["default"])
    if isinstance(given.get("children"), Mapping):
        known = base.get("children", {})
        merged["children"] = known | {
            name: _continue(known.get(name, default), child)
            for name, child in given["children"].items()
        }
    return merged


def composition(profile: Mapping[str, Any]) -> str:
    """The parts of a profile in one line, without the defaults."""
    if "pools" in profile:
        first = _pools(profile["pools"])
    else:
        first = _part("order", profile.get("order", DEFAULTS["order"]))
    rest = [
        _part(decision, profile[decision])
        for decision, default in DEFAULTS.items()
        if decision != "order" and profile.get(decision, default) != default
    ]
    return " + ".join([first, *rest])


def _part(decision: str, given: Any) -> str:
    if isinstance(given, str):
        return part_name(decision, given)
    name = part_name(decision, given.get("name", DEFAULTS[decision]))
    settings = ", ".join(f"{key}={value}" for key, value in given.items() if key != "name")
    return f"{name}({settings})" if settings else str(name)


def _pools(pool: Any) -> str:
    """For example `by deadline (edf ≤70% | largest-slowdown ≤30%)`."""
    if isinstance(pool, str):
        return part_name("order", pool)
    share = "".join(
        f" {sign}{pool[key]:.0%}" for key, sign in (("guarantee", "≥"), ("cap", "≤")) if key in pool
    )
    if "order" in pool:
        return f"{_part('order', pool['order'])}{share}"
    below = [*pool.get("children", {}).values(), *([pool["default"]] if "default" in pool else [])]
    how = {"lottery": "drawn ", "turns": "in turns "}.get(pool.get("choice", ""), "")
    return f"{how}by {pool['by']} ({' | '.join(_pools(child) for child in below)}){share}"

"""A policy taken apart: which part makes which decision, by what rule and with what settings."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from queryard.core.errors import InvalidProfile, unknown_name
from queryard.core.parts import Part, PoolSpec
from queryard.policies import ProfileInfo, catalogue, compose, resolve_profile
from queryard.policies.compose import settings_of


@dataclass(frozen=True, slots=True)
class PartDetail:
    """A part of a policy: the decision it makes, its rule and the settings in effect."""

    decision: str
    name: str
    rule: str
    settings: Mapping[str, Any]
    citation: str


@dataclass(frozen=True, slots=True)
class PolicyDetail:
    """A policy taken apart."""

    pools: PoolSpec
    parts: list[PartDetail]
    work_conserving: bool


def find_policy(name: str) -> ProfileInfo:
    known = {info.name: info for info in catalogue()}
    if name not in known:
        raise InvalidProfile(unknown_name("policy", name, known))
    return known[name]


def describe_policy(name: str) -> PolicyDetail:
    """The parts of a policy, in the order in which they decide."""
    policy = compose(resolve_profile(name))
    made = [
        *(("query order", order) for order in policy.pools.orders),
        ("job order", policy.job_order),
        ("slot split", policy.split),
        ("placement", policy.placement),
        ("scan sharing", policy.sharing),
        ("provisioning", policy.provisioning),
    ]
    return PolicyDetail(policy.pools, [_detail(*pair) for pair in made], policy.work_conserving)


def _detail(decision: str, part: Part) -> PartDetail:
    rule = (inspect.getdoc(part) or "").partition("\n\n")[0]
    settings = {
        name: getattr(part, name, parameter.default)
        for name, parameter in settings_of(type(part)).items()
    }
    return PartDetail(decision, part.name, " ".join(rule.split()), settings, part.citation)

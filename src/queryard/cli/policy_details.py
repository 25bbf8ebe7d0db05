"""A policy taken apart: which part makes which decision, by what rule and with what settings."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from queryard.core.parts import Part
from queryard.core.policy import PoolSpec
from queryard.policies import compose
from queryard.policies.compose import settings_of


@dataclass(frozen=True, slots=True)
class PartDetail:
    """A part: the decision it makes, its rule and its settings."""

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


def describe_policy(profile: Mapping[str, Any]) -> PolicyDetail:
    """The parts of a policy, in the order in which they decide, with the settings in effect.

    Orders that are the same in several pools are named once.
    """
    policy = compose(profile)
    made = [
        *(("order", order) for order in policy.pools.orders),
        ("jobs", policy.job_order),
        ("slots", policy.split),
        ("placement", policy.placement),
        ("sharing", policy.sharing),
        ("provisioning", policy.provisioning),
        ("speculation", policy.speculation),
    ]
    parts: list[PartDetail] = []
    for detail in (_in_effect(decision, part) for decision, part in made):
        if detail not in parts:
            parts.append(detail)
    return PolicyDetail(policy.pools, parts, policy.work_conserving)


def describe_part(decision: str, part: type[Part]) -> PartDetail:
    """A part as it is registered, with the defaults of its settings."""
    rule = (inspect.getdoc(part) or "").partition("\n\n")[0]
    defaults = {name: parameter.default for name, parameter in settings_of(part).items()}
    return PartDetail(decision, part.name, " ".join(rule.split()), defaults, part.citation)


def _in_effect(decision: str, part: Part) -> PartDetail:
    usual = describe_part(decision, type(part))
    settings = {name: getattr(part, name, value) for name, value in usual.settings.items()}
    return PartDetail(decision, usual.name, usual.rule, settings, usual.citation)

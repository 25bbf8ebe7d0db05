"""The rules of a session: its policy, its tenants and its limits, as asked for and as followed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from queryard.core.model import Tenant
from queryard.policies import for_tenants, resolve_profile
from queryard.portfolio.documents import Portfolio, names_portfolio, read_portfolio

from .admission.limits import Limits, read_limits
from .admission.tenants import Tenants, read_tenants
from .settings import near, paced, sized, warn_of_idle_parts


@dataclass(frozen=True, slots=True)
class Rules:
    """`chosen` is the policy as it was asked for, `profile` the one to begin with.

    A `portfolio` goes on choosing from then on; it is None under a fixed policy. `slots` are the
    least and the most of them. `on_cluster` says that work runs at the nodes of one.
    """

    slots: tuple[int, int]
    tenants: Tenants
    limits: Limits
    chosen: str | Mapping[str, Any]
    profile: Mapping[str, Any]
    portfolio: Portfolio | None
    on_cluster: bool = False

    def with_profile(self, chosen: str | Mapping[str, Any]) -> Rules:
        """The same tenants and limits under another policy."""
        profile, portfolio = _resolved(chosen, self.slots, self.tenants, self.on_cluster)
        return replace(self, chosen=chosen, profile=profile, portfolio=portfolio)


def read_rules(
    slots: tuple[int, int],
    tenants: Mapping[str, Any] | Sequence[Tenant] | Tenants | None,
    limits: Mapping[str, Any] | Limits | None,
    chosen: str | Mapping[str, Any],
    on_cluster: bool = False,
) -> Rules:
    """Rules as `connect` takes them; raises if something is wrong with them."""
    found, held = read_tenants(tenants), read_limits(limits or {}, "limits")
    profile, portfolio = _resolved(chosen, slots, found, on_cluster)
    return Rules(slots, found, held, chosen, profile, portfolio, on_cluster)


def _resolved(
    chosen: str | Mapping[str, Any],
    slots: tuple[int, int],
    tenants: Tenants,
    on_cluster: bool,
) -> tuple[Mapping[str, Any], Portfolio | None]:
    """The policy to begin with, and the portfolio that goes on choosing, if it is one."""
    if not names_portfolio(chosen):
        profile = _shared(chosen, slots, tenants, on_cluster)
        warn_of_idle_parts(profile, on_cluster)
        return profile, None
    portfolio = read_portfolio(chosen)
    settings = portfolio.settings
    candidates = {
        name: _shared(of, slots, tenants, on_cluster) for name, of in settings.candidates.items()
    }
    for candidate in candidates.values():
        warn_of_idle_parts(candidate, on_cluster)
    portfolio = replace(portfolio, settings=replace(settings, candidates=candidates))
    return next(iter(candidates.values())), portfolio


def _shared(
    chosen: str | Mapping[str, Any],
    slots: tuple[int, int],
    tenants: Tenants,
    on_cluster: bool,
) -> Mapping[str, Any]:
    """A profile inside the shares of the tenants, if it can be followed on this machine."""
    found = paced(sized(resolve_profile(chosen), slots))
    found = near(found) if on_cluster else found
    return for_tenants(found, tenants.shares) if tenants.shares else found

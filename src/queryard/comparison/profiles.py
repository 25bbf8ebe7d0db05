"""The policies of a comparison, by name, from a file or as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from queryard.core.errors import InvalidProfile, unknown_name
from queryard.core.model import Tenant
from queryard.policies import catalogue, for_tenants, load_profiles, resolve_profile
from queryard.policies.catalogue import profile_name
from queryard.portfolio import PortfolioSettings, by_themselves, parse_portfolio
from queryard.portfolio.documents import names_portfolio, read_portfolio

ALL = "all"
PORTFOLIO = "portfolio"
Profile = Mapping[str, Any]


def own_profiles(given: Mapping[str, Profile] | Path | str | None) -> dict[str, Profile]:
    """The user's own profiles by name: from a TOML file, or as data."""
    if given is None:
        return {}
    if isinstance(given, str | Path):
        return load_profiles(given)
    return {name: _own(name, table) for name, table in given.items()}


def _own(name: str, table: Profile) -> Profile:
    """A profile by its table, which may be that of a portfolio."""
    if names_portfolio(table):
        return {PORTFOLIO: read_portfolio(table).settings}
    return resolve_profile({"name": name, **table})


def choose_profiles(
    names: Sequence[str], own: Mapping[str, Profile], others: Sequence[str] = ()
) -> dict[str, Profile]:
    """Profiles by name, in the order asked for; the user's `own` come before the built-in ones.

    `all` stands for every built-in profile; former names of profiles are valid, too. If no name is
    one of `own`, all of them join. A portfolio brings its candidates. `others` are names that the
    caller knows besides.
    """
    built_in = [info.name for info in catalogue()]
    chosen: dict[str, Profile] = {}
    for name in names:
        if name == ALL:
            chosen |= {known: resolve_profile(known) for known in built_in}
        elif name in own:
            # The candidates of a portfolio run by themselves, too.
            candidates = own[name][PORTFOLIO].candidates if PORTFOLIO in own[name] else {}
            chosen = {**candidates, **chosen, name: own[name]}
        elif profile_name(name) in built_in:
            chosen[name] = resolve_profile(name)
        elif name.partition(":")[0] == PORTFOLIO and PORTFOLIO in others:
            name = name.rstrip(":")  # nothing after a colon is what is usual
            # Its candidates run by themselves, too: one of them is the best in hindsight.
            portfolio = parse_portfolio(name, own)
            chosen = {**by_themselves(name, own), **chosen, name: {PORTFOLIO: portfolio}}
        elif name.partition(":")[0] == PORTFOLIO:
            raise InvalidProfile(
                f"{name}: a portfolio runs beside its candidates; "
                f"write `queryard compare … --policy {name}`"
            )
        else:
            known = [*built_in, *own, *others, ALL]
            raise InvalidProfile(unknown_name("policy", name, known))
    if own.keys().isdisjoint(chosen):
        chosen |= own
    return chosen


def settle_tenants(
    profiles: Mapping[str, Profile], tenants: Sequence[Tenant]
) -> dict[str, Profile]:
    """The profiles inside the shares of these tenants."""
    return {name: _settled(profile, tenants) for name, profile in profiles.items()}


def _settled(profile: Profile, tenants: Sequence[Tenant]) -> Profile:
    if PORTFOLIO not in profile:
        return for_tenants(profile, tenants)
    portfolio: PortfolioSettings = profile[PORTFOLIO]
    inside = {name: for_tenants(part, tenants) for name, part in portfolio.candidates.items()}
    return {PORTFOLIO: replace(portfolio, candidates=inside)}

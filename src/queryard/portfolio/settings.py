"""What a portfolio chooses from, for what, and how often."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from queryard.core.errors import InvalidProfile, unknown_name
from queryard.policies import for_arrivals, resolve_profile

from .scores import OBJECTIVES, Objective, objective_of
from .trials import Profile

# POSUM §4.3.1; and policies that did well where the paper's did not.
ALLOCATIONS = ("edls-sh", "edls-pr", "srtf", "locf")
NEW_ALLOCATIONS = ("cost-of-delay", "tls", "swrd", "edf", "fair")
PROVISIONINGS = ("+x", "-x", "dlx", "maxbsd")
# The usual candidates; the first is in force until the first decision.
DEFAULT = (*NEW_ALLOCATIONS, *ALLOCATIONS)


@dataclass(frozen=True, slots=True)
class PortfolioSettings:
    """What to choose from, for what, how often, and at which cost.

    A decision is due four times while the queue drains, but at least every `period_s` and at most
    every `least_s`; equal values fix the period. Another policy must be better than the one in
    force by `margin`; the first candidate comes back when it is as good. A trial ends with the
    queue, at `horizon_s` from now, or after `most_launches` tasks; queries that are left then end
    in the order of their work. A decision that takes longer than `too_late` x `period_s` is
    dropped. In simulation a decision takes `launch_cost_s` per simulated task. Deciding takes at
    most `share` of a core on average.
    """

    candidates: Mapping[str, Profile] = field(default_factory=dict)
    objective: Objective = OBJECTIVES["mixed"]
    period_s: float = 240.0
    least_s: float = 0.5
    margin: float = 0.1
    horizon_s: float = math.inf
    most_launches: int = 20_000
    too_late: float = 1.0
    share: float = 0.05
    launch_cost_s: float = 5e-5

    def __post_init__(self) -> None:
        if not self.candidates:
            raise InvalidProfile("a portfolio needs at least one candidate")
        if not 0 < self.least_s <= self.period_s:
            raise InvalidProfile(
                "a portfolio decides between its least and its longest period: "
                f"0 < {self.least_s:g} <= {self.period_s:g} must hold"
            )
        if not 0 <= self.margin < 1:
            raise InvalidProfile(f"the margin of a portfolio is a share, got {self.margin!r}")
        if not 0 < self.share <= 1:
            raise InvalidProfile(f"the share of a core must be above 0, got {self.share!r}")


def candidates_of(
    names: Sequence[str] = DEFAULT,
    provisionings: Sequence[str] = (),
    own: Mapping[str, Profile] | None = None,
) -> dict[str, Profile]:
    """Profiles by name, those in `own` first; with provisioning parts, each with each.

    Parts of the first that serve later arrivals are given to all others that have none in their
    place: a trial of the queue does not show what is lost without them.

    >>> list(candidates_of(("fifo", "srtf"), ("+x", "dlx")))
    ['fifo +x', 'fifo dlx', 'srtf +x', 'srtf dlx']
    >>> candidates_of(("cost-of-delay", "srtf"))["srtf"]["slots"]
    'reserve-short'
    """
    found: dict[str, Profile] = {}
    shared: Profile | None = None
    for name in names:
        profile = own[name] if own and name in own else resolve_profile(name)
        if shared is None:
            shared = for_arrivals(profile)
        profile = {**shared, **profile}
        for part in provisionings:
            found[f"{name} {part}"] = {**profile, "provisioning": part}
        if not provisionings:
            found[name] = profile
    return found


def parse_portfolio(text: str, own: Mapping[str, Profile] | None = None) -> PortfolioSettings:
    """From `portfolio[:OBJECTIVE[:POLICIES[:PROVISIONING]]]`, names joined by slashes.

    >>> settings = parse_portfolio("portfolio:response:fifo/swrd")
    >>> settings.objective.name, list(settings.candidates)
    ('response', ['fifo', 'swrd'])
    >>> list(parse_portfolio("portfolio:priced:srtf:+x/-x").candidates)
    ['srtf +x', 'srtf -x']
    """
    goal, chosen, sizing = _parsed(text)
    return PortfolioSettings(candidates_of(chosen, sizing, own), goal)


def by_themselves(text: str, own: Mapping[str, Profile] | None = None) -> dict[str, Profile]:
    """The candidates of `parse_portfolio`, each without the parts taken over from the first.

    >>> by_themselves("portfolio:mixed:cost-of-delay/srtf")["srtf"].get("slots")
    >>> by_themselves("portfolio:mixed:srtf:+x")["srtf +x"]["provisioning"]
    '+x'
    """
    _, chosen, sizing = _parsed(text)
    found: dict[str, Profile] = {}
    for name in chosen:
        found |= candidates_of((name,), sizing, own)
    return found


def _parsed(text: str) -> tuple[Objective, Sequence[str], Sequence[str]]:
    """The objective, the policies to choose from, and the provisioning parts."""
    parts = text.split(":")
    if len(parts) > 4:
        raise InvalidProfile(
            f"{text!r}: write portfolio:OBJECTIVE:POLICIES:PROVISIONING, such as "
            "portfolio:priced:srtf/locf:+x/-x"
        )
    objective, names, provisionings = (*parts[1:], "", "", "")[:3]
    chosen = [name for name in names.split("/") if name]
    sizing = [name for name in provisionings.split("/") if name]
    for name in sizing:
        if name not in PROVISIONINGS:
            raise InvalidProfile(unknown_name("provisioning part", name, PROVISIONINGS))
    return objective_of(objective or "mixed"), chosen or DEFAULT, sizing

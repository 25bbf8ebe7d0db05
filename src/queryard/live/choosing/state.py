"""The policy in force, and the changes that led to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

# How many changes are kept in memory; the history has all of them.
CHANGES_KEPT = 500
# The two that change a policy without a person: the start of a session, and its portfolio.
AT_START = "start"
BY_PORTFOLIO = "portfolio"
BY_OPERATOR = "operator"
UNNAMED = "of your own"
FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class PolicyState:
    """The policy in force: since when (the session's clock), by what it was chosen, and why.

    `by` is "start", "portfolio", or what the caller of `use_profile` says ("operator").
    `portfolio` is the document of the portfolio that chooses; None if a fixed policy is followed.
    """

    name: str
    since_s: float
    by: str
    reason: str
    portfolio: Mapping[str, Any] | None = None


class PolicyChange(NamedTuple):
    """One change of the policy, on the session's clock."""

    time_s: float
    before: str
    after: str
    by: str
    reason: str


class PolicyLog:
    """What the coordinator remembers of policies. One thread changes it."""

    def __init__(self, profile: Mapping[str, Any]) -> None:
        self.profile = profile
        self.state = PolicyState(name_of(profile), 0.0, AT_START, "the session began with it")
        self.changes: deque[PolicyChange] = deque(maxlen=CHANGES_KEPT)

    def chosen(self, profile: Mapping[str, Any], now_s: float, by: str, reason: str) -> None:
        """Another policy is in force from now on, or the same one for another reason."""
        name = name_of(profile)
        self.changes.append(PolicyChange(now_s, self.state.name, name, by, reason))
        self.profile = profile
        self.state = PolicyState(name, now_s, by, reason)


def name_of(profile: Mapping[str, Any]) -> str:
    """What a policy is called.

    >>> name_of({"name": "tls", "order": "qef"}), name_of({"order": "qef"})
    ('tls', 'of your own')
    """
    return str(profile.get("name", UNNAMED))


def is_resizing(profile: Mapping[str, Any]) -> bool:
    """Whether a policy changes the number of slots.

    >>> is_resizing({"order": "fifo"}), is_resizing({"provisioning": {"name": "+x"}})
    (False, True)
    """
    rule = profile.get("provisioning", FIXED)
    name = rule.get("name", FIXED) if isinstance(rule, Mapping) else rule
    return bool(name != FIXED)

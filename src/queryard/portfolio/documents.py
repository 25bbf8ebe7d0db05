"""A portfolio as a profile: what `profile = "portfolio"` and `{portfolio = {…}}` say.

profile = "portfolio"
profile = "portfolio:small queries fast:marshal/swrd/fair"

[session.profile.portfolio]
objective = "deadlines first"
candidates = ["marshal", "edf", { name = "mine", base = "tls", sharing = "circular" }]
share = 0.02
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from queryard.core.errors import InvalidProfile, unknown_name
from queryard.policies import resolve_profile

from .patterns import MOST
from .scores import LOW_COST, objective_of
from .settings import PROVISIONINGS, PortfolioSettings, candidates_of
from .trials import Profile

PORTFOLIO = "portfolio"
KEYS = (
    "objective",
    "candidates",
    "provisioning",
    "margin",
    "share",
    "least_s",
    "period_s",
    "late_s",
    "patterns",
)
# What a session chooses from, unless it is told; the first is in force until the first decision,
# and wherever all are as good.
LIVE = (
    "marshal",
    "cost-of-delay",
    "swrd",
    "edf",
    "deadline-first",
    "query-fair",
    "tenant-tls",
    "s3-pays",
    "relaqs",
)
LIVE_OBJECTIVE = "small queries fast"
# The first of them for an objective, where it is another one: what is as good as all others in calm
# is in force when a batch with deadlines comes, before that is seen.
FIRST = {"deadlines first": "edf"}
# Sizes of a cluster are asked for this often: queries of a session take seconds, not minutes.
SIZED_EVERY_S = 2.0
# A session decides at least this often while queries wait, unless its share of a core is used up.
PERIOD_S = 1.0
LEAST_S = 0.1
LATE_S = 5.0


@dataclass(frozen=True, slots=True)
class Portfolio:
    """A portfolio that was asked for: its settings, and the document that says the same.

    A decision that is not there after `late_s` is dropped. `patterns` are remembered at most.
    """

    settings: PortfolioSettings
    document: Mapping[str, Any]
    late_s: float = LATE_S
    patterns: int = MOST

    def is_same(self, other: Portfolio) -> bool:
        """Whether both were asked for alike; profiles may have other shares of tenants in them."""
        return self.document == other.document

    def around(self, current: str) -> dict[str, Profile]:
        """What one decision tries out, where `current` is in force: all candidates.

        With provisioning parts, each policy stands with each part, and all of them would take too
        long. All policies are tried with the part in force; the policy in force and the first one
        with all parts. Two decisions lead from any candidate to any other.

        >>> list(read_portfolio("portfolio:low cost:fifo/edf/tls:+x/-x/dlx").around("edf -x"))
        ['fifo +x', 'fifo -x', 'fifo dlx', 'edf +x', 'edf -x', 'edf dlx', 'tls -x']
        """
        candidates = dict(self.settings.candidates)
        if not self.document["provisioning"]:
            return candidates
        (policy, part), first = current.rsplit(" ", 1), _policy(next(iter(candidates)))
        return {
            name: profile
            for name, profile in candidates.items()
            if name.endswith(f" {part}") or _policy(name) in (policy, first)
        }


def _policy(name: str) -> str:
    """The policy in the name of a candidate with a provisioning part."""
    return name.rsplit(" ", 1)[0]


def names_portfolio(given: object) -> bool:
    """Whether a profile is a portfolio.

    >>> names_portfolio("portfolio"), names_portfolio({"portfolio": {}}), names_portfolio("tls")
    (True, True, False)
    """
    if isinstance(given, str):
        return given.partition(":")[0] == PORTFOLIO
    return isinstance(given, Mapping) and PORTFOLIO in given


def read_portfolio(given: str | Mapping[str, Any]) -> Portfolio:
    """The portfolio that a profile names; errors name the key.

    >>> found = read_portfolio({"portfolio": {"objective": "throughput", "candidates": ["fifo"]}})
    >>> found.document["candidates"], found.settings.objective.name
    (['fifo'], 'throughput')
    >>> list(read_portfolio("portfolio:fair to tenants:marshal/fair").settings.candidates)
    ['marshal', 'fair']
    """
    table = _table(given)
    goal = table.get("objective", LIVE_OBJECTIVE)
    try:
        objective = objective_of(goal)
    except (TypeError, AttributeError):
        raise InvalidProfile(
            "portfolio: objective is a name or weights of metrics, as { stretch = 1 }, "
            f"got {goal!r}"
        ) from None
    sizing = _names(table, "provisioning", PROVISIONINGS if objective.name == LOW_COST else ())
    for name in sizing:
        if name not in PROVISIONINGS:
            problem = unknown_name("provisioning part", name, PROVISIONINGS)
            raise InvalidProfile(f"portfolio: {problem}")
    names, own = _candidates(table, objective.name)
    candidates = _named(candidates_of(names, sizing, own), bool(sizing))
    usual = PortfolioSettings(candidates, objective)
    settings = replace(
        usual,
        margin=_number(table, "margin", usual.margin),
        share=_number(table, "share", usual.share),
        least_s=_number(table, "least_s", LEAST_S),
        period_s=_number(table, "period_s", PERIOD_S),
    )
    late_s = _number(table, "late_s", LATE_S)
    if late_s <= 0:
        raise InvalidProfile(f"portfolio: late_s must be above 0, got {late_s!r}")
    patterns = table.get("patterns", MOST)
    if isinstance(patterns, bool) or not isinstance(patterns, int) or patterns < 0:
        raise InvalidProfile(
            f"portfolio: patterns is how many are remembered, at least 0, got {patterns!r}"
        )
    document = {
        "objective": goal if isinstance(goal, str) else dict(goal),
        "candidates": [own.get(name, name) for name in names],
        "provisioning": list(sizing),
        "margin": settings.margin,
        "share": settings.share,
        "least_s": settings.least_s,
        "period_s": settings.period_s,
        "late_s": late_s,
        "patterns": patterns,
    }
    return Portfolio(settings, document, late_s, patterns)


def _table(given: str | Mapping[str, Any]) -> dict[str, Any]:
    """The document of a portfolio, from its short form as well."""
    if isinstance(given, str):
        parts = given.split(":")
        if len(parts) > 4:
            raise InvalidProfile(
                f"{given!r}: write portfolio:OBJECTIVE:POLICIES:PROVISIONING, such as "
                "portfolio:low cost:marshal/edf:+x/-x"
            )
        objective, names, sizing = (*parts[1:], "", "", "")[:3]
        found: dict[str, Any] = {"objective": objective} if objective else {}
        for key, text in (("candidates", names), ("provisioning", sizing)):
            if text:
                found[key] = [name for name in text.split("/") if name]
        return found
    others = sorted(set(given) - {PORTFOLIO, "name", "summary"})
    if others:
        raise InvalidProfile(
            f"a profile is a portfolio or has parts of its own: {others[0]!r} stands beside "
            "'portfolio'; make a candidate of it"
        )
    table = given[PORTFOLIO]
    if not isinstance(table, Mapping):
        raise InvalidProfile(
            f'portfolio: must be a table, as {{ objective = "throughput" }}, got {table!r}'
        )
    for key in table:
        if key not in KEYS:
            raise InvalidProfile(f"portfolio: {unknown_name('key', str(key), KEYS)}")
    return dict(table)


def in_usual_order(objective: str, names: Sequence[str] = LIVE) -> list[str]:
    """Candidates as they stand for an objective, unless the user says otherwise.

    >>> in_usual_order("deadlines first", ("marshal", "swrd", "edf"))
    ['edf', 'marshal', 'swrd']
    """
    first = FIRST.get(objective)
    return sorted(names, key=lambda name: name != first)


def _candidates(table: Mapping[str, Any], objective: str) -> tuple[list[str], dict[str, Profile]]:
    """The names of all candidates, and the profiles of those that are not registered."""
    given = table.get("candidates", in_usual_order(objective))
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise InvalidProfile(
            "portfolio: candidates is a list of profiles, the first of which is in force until the "
            f"first decision, got {given!r}"
        )
    names: list[str] = []
    own: dict[str, Profile] = {}
    for each in given:
        if isinstance(each, Mapping):
            if PORTFOLIO in each:
                raise InvalidProfile("portfolio: a candidate cannot be a portfolio itself")
            name = each.get("name")
            if not isinstance(name, str) or not name:
                raise InvalidProfile(f"portfolio: a candidate of your own needs a name: {each!r}")
            own[name] = resolve_profile(each)
        else:
            name = str(resolve_profile(each)["name"])
        if name in names:
            raise InvalidProfile(f"portfolio: there are two candidates {name!r}")
        names.append(name)
    return names, own


def _named(candidates: Mapping[str, Profile], is_sized: bool) -> dict[str, Profile]:
    """Candidates with the names by which they are told apart."""
    found: dict[str, Profile] = {}
    for name, profile in candidates.items():
        found[name] = {**profile, "name": name}
        if is_sized:
            rule = {"name": profile["provisioning"], "period_s": SIZED_EVERY_S}
            found[name] = {**found[name], "provisioning": rule}
    return found


def _names(table: Mapping[str, Any], key: str, usual: Sequence[str]) -> tuple[str, ...]:
    given = table.get(key, usual)
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidProfile(f"portfolio: {key} is a list of names, got {given!r}")
    return tuple(str(name) for name in given)


def _number(table: Mapping[str, Any], key: str, usual: float) -> float:
    given = table.get(key, usual)
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InvalidProfile(f"portfolio: {key} must be a number, got {given!r}")
    return float(given)

"""What a what-if asks for, checked by the server before a process computes it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from queryard.comparison import PORTFOLIO, choose_profiles, own_profiles
from queryard.core.errors import QueryardError
from queryard.core.model import Tenant
from queryard.core.tenants import SHARES
from queryard.portfolio.documents import names_portfolio

from ..problems import InvalidRequest
from .whatif_job import Job

MOST_POLICIES = 20
SPAN_S = 3600.0


def read_job(given: Mapping[str, Any], history: Path, tenants: Sequence[Tenant]) -> Job:
    """What is asked, checked; unknown policies and documents that are wrong are errors here."""
    until = _moment(given.get("until"), "until", time.time())
    since = _moment(given.get("since"), "since", until - SPAN_S)
    if not since < until:
        raise InvalidRequest(f"since: {since} must lie before until, {until}")
    names: list[str] = []
    profiles: dict[str, Mapping[str, Any]] = {}
    wanted = given.get("policies") or ()
    if not wanted:
        raise InvalidRequest('policies: name at least one, as ["fair", "srtf"]')
    for number, policy in enumerate(wanted, 1):
        if isinstance(policy, Mapping):
            usual = PORTFOLIO if names_portfolio(policy) else f"policy {number}"
            name = str(policy.get("name") or usual)
            profiles[name] = {key: value for key, value in policy.items() if key != "name"}
            policy = name
        names.append(policy)
    try:
        chosen = choose_profiles(names, own_profiles(profiles), (PORTFOLIO,))
    except QueryardError as error:
        raise InvalidRequest(f"policies: {error}") from error
    if len(chosen) > MOST_POLICIES:
        raise InvalidRequest(
            f"policies: {len(chosen)} are compared, and at most {MOST_POLICIES} can be; name fewer"
        )
    shares = tuple(
        (tenant.name, *(getattr(tenant, field) for field in SHARES)) for tenant in tenants
    )
    return Job(str(history), since, until, tuple(names), profiles, shares, given.get("slots"))


def _moment(given: object, what: str, usual: float) -> float:
    """Seconds since 1970, from such a number or a time of ISO 8601 (of UTC without a zone).

    >>> _moment("2026-11-18T00:00", "since", 0.0)
    1794960000.0
    """
    if given is None:
        return usual
    if isinstance(given, int | float) and not isinstance(given, bool):
        return float(given)
    try:
        found = datetime.fromisoformat(str(given))
    except ValueError:
        raise InvalidRequest(
            f"{what}: must be seconds since 1970 or a time of ISO 8601, got {given!r}"
        ) from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()

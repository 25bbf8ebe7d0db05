"""Changes in words: one sentence each, for the page, the log and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from queryard.core import readable

from .steered import LIMITS, PROFILE, Key

_CALLED = {"waiting": "waiting queries", "wait_s": "expected wait", "memory_bytes": "memory"}


def policy_name(profile: Any) -> str:
    """What a policy is called in a sentence.

    >>> policy_name("fair"), policy_name({"name": "mine", "order": "srtf"}), policy_name({})
    ('fair', 'mine', 'a policy of its own')
    """
    if isinstance(profile, str):
        return profile
    if isinstance(profile, Mapping):
        if "portfolio" in profile:
            return "portfolio"
        return str(profile.get("name") or profile.get("base") or "a policy of its own")
    return str(profile)


def setting_text(key: Key, before: Any, after: Any) -> str:
    """What a setting was and is.

    >>> setting_text(("tenant", "web", "weight"), 1.0, 3)
    'weight 1 → 3'
    >>> setting_text(("tenant", "web", "wait_s"), None, 90.0)
    'limit of the expected wait: none → 90 s'
    """
    if key == PROFILE:
        return f"policy {policy_name(before)} → {policy_name(after)}"
    field = key[-1]
    if field in LIMITS:
        return f"limit of the {_CALLED[field]}: {_limit(field, before)} → {_limit(field, after)}"
    return f"{field} {before:g} → {after:g}"


def _limit(field: str, value: Any) -> str:
    if value is None:
        return "none"
    if field == "wait_s":
        return f"{value:g} s"
    return f"{value / 1e6:,.6g} MB" if field == "memory_bytes" else f"{value:,}"


def settings_text(settings: Sequence[tuple[Key, Any, Any]]) -> str:
    """What several settings were and are; those of one tenant together."""
    tenants: dict[str, list[str]] = {}
    said = []
    for key, before, after in settings:
        if key[0] == "tenant":
            tenants.setdefault(key[1], []).append(setting_text(key, before, after))
        elif key == PROFILE:
            said.append(setting_text(key, before, after))
        else:
            said.append(_state_text(key, after))
    said += [f"tenant {name!r}: {', '.join(parts)}" for name, parts in tenants.items()]
    return "; ".join(said)


def _state_text(key: Key, after: Any) -> str:
    """What a pause or a draining, or the end of one, means."""
    if key == ("paused",):
        return "resumed: waiting queries start" if after is None else "paused: no query starts"
    return "open: queries are taken" if after is None else "draining: no further queries are taken"


def cancelled_text(tenant: str, queries: int) -> str:
    return f"cancelled {readable.several(queries, 'query')} of tenant {tenant!r}"


def word_of(value: Any) -> str:
    """On whose word something is so, as `why` and errors tell it: a name, and the reason given."""
    reason = f" ({value['reason']})" if value.get("reason") else ""
    return f"{value['by']}{reason}"

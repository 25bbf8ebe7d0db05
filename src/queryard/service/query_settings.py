"""Settings of a connection that say how its queries are scheduled, whatever the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from queryard.core.errors import QueryardError, unknown_name
from queryard.live.amounts import as_seconds, as_time_left
from queryard.live.request import PLANS, checked_plan, checked_priority, checked_tenant

PREFIX = "queryard."
# By name: what refuses a wrong value, and what is allowed.
QUERY_SETTINGS: Mapping[str, tuple[Callable[[str], object], str]] = {
    "queryard.deadline": (
        lambda value: as_time_left(value, "deadline"),
        "a time from now, as '10 s' or '5 min'",
    ),
    "queryard.plan": (checked_plan, f"one of {', '.join(PLANS)}"),
    "queryard.priority": (
        lambda value: checked_priority(float(value)),
        "a finite number, as 0 or 2.5",
    ),
    "queryard.tenant": (checked_tenant, "a name, or names from above, as 'sales/emea'"),
    "queryard.time_limit": (
        lambda value: as_seconds(value, "time_limit"),
        "a time, as '30 s' or '5 min'",
    ),
}


def check_setting(name: str, value: str) -> None:
    """Refuse a name that is no setting, and a value that it cannot have; an empty one unsets it.

    >>> check_setting("queryard.priority", "2.5")
    >>> check_setting("queryard.priority", "high")
    Traceback (most recent call last):
    queryard.core.errors.QueryardError: queryard.priority: 'high' is not possible; allowed is a \
finite number, as 0 or 2.5
    """
    if name not in QUERY_SETTINGS:
        raise QueryardError(unknown_name("setting", name, tuple(QUERY_SETTINGS)))
    check, allowed = QUERY_SETTINGS[name]
    try:
        if value:
            check(value)
    except (QueryardError, ValueError):
        raise QueryardError(f"{name}: {value!r} is not possible; allowed is {allowed}") from None


def query_options(values: Mapping[str, str]) -> dict[str, Any]:
    """The options of `submit`, from settings by name; the tenant is the connection's own.

    >>> query_options({"queryard.priority": "2", "queryard.deadline": "10 s", "queryard.plan": ""})
    {'priority': 2.0, 'deadline': '10 s'}
    """
    found: dict[str, Any] = {}
    for option in ("priority", "deadline", "time_limit", "plan"):
        if value := values.get(f"{PREFIX}{option}"):
            found[option] = float(value) if option == "priority" else value
    return found

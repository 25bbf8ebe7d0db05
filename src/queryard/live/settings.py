"""Settings of a session from a catalog file, and policies that change the number of slots.

[session]
slots = [1, 8]
memory = "16 GB"
profile = "marshal"
retention = { days = 7, size = "200 MB" }
fresh = "1 s"
slow_start = 0.5
statistics = "off"
backend = "ray"
address = "auto"

[tenants.web]
weight = 3
guarantee = 0.25
limits = { waiting = 100, wait = "5 min" }

[limits]
waiting = 10000
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any, Literal, get_args

from queryard.core.errors import InvalidProfile, QueryardError, unknown_name
from queryard.policies import compose
from queryard.policies.compose import settings_of
from queryard.policies.effects import idle_in_sessions
from queryard.sql.catalog import Catalog
from queryard.sql.catalog.canonical import is_text_table

KEYS = (
    "slots",
    "memory",
    "temp",
    "plan",
    "profile",
    "history",
    "retention",
    "fresh",
    "slow_start",
    "statistics",
    "backend",
    "address",
)
Collecting = Literal["auto", "off"]
COLLECTING_BYTES = 128 << 20
EPOCH_S = 1.0
HEARTBEAT_S = 0.1
LEAST_COLLECTING_BYTES = 48 << 20
# Of the memory, and on disk: what parsed segments of text may take that are kept for later queries.
SEGMENTS_SHARE = 1 / 16
SEGMENTS_DISK_BYTES = 4 << 30


def session_settings(given: Mapping[str, object]) -> dict[str, Any]:
    """What the tables `session`, `tenants` and `limits` of a catalog file say."""
    own = given.get("session", {})
    if not isinstance(own, Mapping):
        raise QueryardError(f"session: must be a table, as [session], got {own!r}")
    for key in own:
        if key not in KEYS:
            raise QueryardError(f"session: {unknown_name('key', str(key), KEYS)}")
    settings = dict(own)
    if isinstance(own.get("slots"), list):
        settings["slots"] = tuple(own["slots"])
    return {**settings, **{key: given[key] for key in ("tenants", "limits") if key in given}}


def collecting_bytes(given: object, memory_bytes: int) -> int:
    """The part of a budget in which statistics collect themselves; 0 if they do not.

    >>> collecting_bytes("auto", 8 << 30) >> 20, collecting_bytes("off", 8 << 30)
    (128, 0)
    """
    if given not in get_args(Collecting):
        raise QueryardError(f'statistics: must be "auto" or "off", got {given!r}')
    part = min(COLLECTING_BYTES, memory_bytes // 16)
    return part if given == "auto" and part >= LEAST_COLLECTING_BYTES else 0


def kept_segments_bytes(memory_bytes: int, catalog: Catalog) -> int:
    """The part of a budget in which parsed segments of text are kept; 0 where there is no text."""
    has_text = any(is_text_table(table) for table in catalog.tables.values())
    return int(memory_bytes * SEGMENTS_SHARE) if has_text else 0


def checked_slow_start(given: object) -> float:
    """The share of a job's maps that must have ended before its reduces are launched."""
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not 0 <= given <= 1:  # type: ignore[operator]
        raise QueryardError(
            f"slow_start: must be a share from 0 to 1 of the maps of a job, got {given!r}"
        )
    return float(given)  # type: ignore[arg-type]


def sized(profile: Mapping[str, Any], slots: tuple[int, int]) -> Mapping[str, Any]:
    """A profile that can be followed with these slots: one that adds and removes them stays
    between the least and the most there are.
    """
    provisioning = profile.get("provisioning", "fixed")
    table = {"name": provisioning} if isinstance(provisioning, str) else dict(provisioning)
    if table.get("name", "fixed") == "fixed":
        return profile
    least, most = slots
    if least == most:
        raise InvalidProfile(
            f"provisioning {table['name']!r} changes the number of slots, and this session has "
            f"{most} at all times; give the least and the most, as slots=(1, {max(most, 2)})"
        )
    # The parts say what they can be told.
    policy = compose(profile)
    known = settings_of(type(policy.provisioning))
    bounds = {key: value for key, value in (("minimum", least), ("maximum", most)) if key in known}
    return {**profile, "provisioning": {**table, **bounds}}


def paced(profile: Mapping[str, Any]) -> Mapping[str, Any]:
    """A profile for queries of seconds: slots are allotted to online queries every second.

    The papers' queries take minutes, and so the default of policies is longer.

    >>> paced({"order": "progress"})
    {'order': {'name': 'progress', 'epoch_s': 1.0}}
    """
    found: dict[str, Any] = {}
    for key, value in profile.items():
        if key == "order" and value == "progress":
            found[key] = {"name": value, "epoch_s": EPOCH_S}
        elif isinstance(value, Mapping):
            found[key] = paced(value)
        else:
            found[key] = value
    return found


def near(profile: Mapping[str, Any]) -> Mapping[str, Any]:
    """A profile for a cluster: unless it says otherwise, work goes to the node that has its data in
    caches or on its disk, else to one of the same rack, else to any.

    A slot that `locf` leaves free is offered again after a moment: tasks take about a second here,
    and half a minute in the paper.

    >>> near({"order": "fifo"})["placement"], near({"placement": "locf"})["placement"]
    ('rack', {'name': 'locf', 'heartbeat_s': 0.1})
    """
    placement = profile.get("placement", "rack")
    if placement == "locf":
        placement = {"name": placement, "heartbeat_s": HEARTBEAT_S}
    return {**profile, "placement": placement}


def warn_of_idle_parts(profile: Mapping[str, Any], on_cluster: bool = False) -> None:
    """Say which parts of a profile that was chosen do nothing in a session.

    The warning names the line of the program that has chosen it.
    """
    if idle := idle_in_sessions(profile, on_cluster):
        name = profile.get("name", "of your own")
        told = f"policy {name}: {'; '.join(idle)}"
        warnings.warn(told, UserWarning, stacklevel=_calls_within() + 1)


def _calls_within() -> int:
    """How many calls there are between here and the first one from outside of the package."""
    package = __name__.partition(".")[0]
    frame, calls = sys._getframe(1), 0
    while frame.f_globals.get("__name__", "").partition(".")[0] == package:
        calls += 1
        if frame.f_back is None:
            break
        frame = frame.f_back
    return calls

"""Settings of a session from a catalog file, and policies that change the number of slots.

[session]
slots = [1, 8]
memory = "16 GB"
profile = "marshal"
retention = { days = 7, size = "200 MB" }
fresh = "1 s"
slow_start = 0.5
statistics = "off"

[backend]
kind = "ray"
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
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from queryard.core.errors import InvalidProfile, QueryardError, unknown_name
from queryard.core.positions import toml_lines
from queryard.policies import compose
from queryard.policies.compose import settings_of
from queryard.policies.effects import idle_in_sessions
from queryard.sql.catalog import Catalog
from queryard.sql.catalog.canonical import is_text_table

from .backend_setting import BackendSetting, InvalidBackend, read_backend

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
)
Collecting = Literal["auto", "off"]
COLLECTING_BYTES = 128 << 20
EPOCH_S = 1.0
HEARTBEAT_S = 0.1
LEAST_COLLECTING_BYTES = 48 << 20
# Of the memory, and on disk: what parsed segments of text may take that are kept for later queries.
SEGMENTS_SHARE = 1 / 16
SEGMENTS_DISK_BYTES = 4 << 30


class Bounds(NamedTuple):
    """The least and the most there may be, and of what: slots of a process, nodes of a cluster."""

    least: int
    most: int
    of: Literal["slots", "nodes"] = "slots"


def session_settings(given: Mapping[str, object], file: str | Path | None = None) -> dict[str, Any]:
    """What the tables `session`, `backend`, `tenants` and `limits` of a catalog file say.

    Errors name the line, if `file` is the file they stand in.
    """
    own = given.get("session", {})
    if not isinstance(own, Mapping):
        raise _wrong(f"session: must be a table, as [session], got {own!r}", file, ("session",))
    for key in own:
        if key not in KEYS:
            problem = f"session: {_unknown_key(str(key))}"
            raise _wrong(problem, file, ("session", str(key)))
    settings = dict(own)
    if isinstance(own.get("slots"), list):
        settings["slots"] = tuple(own["slots"])
    if "backend" in given:
        settings["backend"] = _backend(given["backend"], own, file)
    return {**settings, **{key: given[key] for key in ("tenants", "limits") if key in given}}


def _unknown_key(key: str) -> str:
    """What is wrong with a key of `[session]`."""
    if key in ("backend", "address"):
        name = "kind" if key == "backend" else key
        return f"{key}: stands in a table of its own, as {name} under [backend]"
    return unknown_name("key", key, KEYS)


def _backend(given: object, own: Mapping[str, object], file: str | Path | None) -> BackendSetting:
    if not isinstance(given, Mapping):
        raise _wrong(f"backend: must be a table, as [backend], got {given!r}", file, ("backend",))
    for key in ("slots", "memory"):
        if key in given and key in own:
            problem = f"{key}: is said in [session] and in [backend]; say it once"
            raise _wrong(problem, file, ("backend", key))
    try:
        return read_backend(given)
    except InvalidBackend as error:
        raise _wrong(str(error), file, ("backend", error.key)) from None


def _wrong(problem: str, file: str | Path | None, path: tuple[str, ...]) -> QueryardError:
    """An error about a setting, with its line if that can be found."""
    if file is None or Path(file).suffix.lower() != ".toml":
        return QueryardError(problem)
    try:
        lines = toml_lines(Path(file).expanduser().read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return QueryardError(f"{file}: {problem}")
    while path not in lines:
        path = path[:-1]
    return QueryardError(f"{file}, line {lines[path]}: {problem}")


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


def sized(profile: Mapping[str, Any], bounds: Bounds) -> Mapping[str, Any]:
    """A profile that can be followed with these slots, or nodes: one that adds and removes them
    stays between the least and the most there are.
    """
    provisioning = profile.get("provisioning", "fixed")
    table = {"name": provisioning} if isinstance(provisioning, str) else dict(provisioning)
    if table.get("name", "fixed") == "fixed":
        return profile
    least, most, of = bounds
    if of == "nodes" and least == most:
        raise InvalidProfile(
            f"provisioning {table['name']!r} changes the number of nodes, and none was said for "
            "this cluster; give the least and the most, as nodes = [1, 8] under [backend]"
        )
    if least == most:
        raise InvalidProfile(
            f"provisioning {table['name']!r} changes the number of slots, and this session has "
            f"{most} at all times; give the least and the most, as slots=(1, {max(most, 2)})"
        )
    # The parts say what they can be told.
    policy = compose(profile)
    known = settings_of(type(policy.provisioning))
    within = {key: value for key, value in (("minimum", least), ("maximum", most)) if key in known}
    return {**profile, "provisioning": {**table, **within}}


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

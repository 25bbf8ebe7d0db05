"""Profiles of one's own, from TOML.

    [profiles.office]
    base = "hierarchical"
    jobs = "lodfa"
    sharing = { name = "circular", waves = 2 }

    # The tenant of this name.
    [profiles.office.pools.children.dashboard]
    order = "qef"
    weight = 3
    guarantee = 0.25

Everything but `base` (optional) is as in `compose`; other tables of the file are left alone.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from queryard.core.errors import InvalidProfile

from .catalogue import resolve_profile


def load_profiles(path: str | Path) -> dict[str, Mapping[str, Any]]:
    """The profiles of a file by name, checked; errors name the file and the key."""
    try:
        text = Path(path).read_text("utf-8")
    except OSError as error:
        raise InvalidProfile(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InvalidProfile(f"{path}: is not UTF-8 text: {error}") from error
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidProfile(
            f"{path}: not valid TOML, in which profiles are written: {error}"
        ) from error
    tables = data.get("profiles")
    if not isinstance(tables, Mapping) or not tables:
        raise InvalidProfile(f"{path}: has no profiles; write them as [profiles.NAME] tables")
    profiles = {}
    for name, table in tables.items():
        where = f"{path}, profiles.{name}"
        if not isinstance(table, Mapping):
            raise InvalidProfile(f"{where}: expected a table, got {table!r}")
        try:
            profiles[name] = resolve_profile({"name": name, **table})
        except InvalidProfile as error:
            raise InvalidProfile(f"{where}: {error}") from error
    return profiles

"""Imports Ray, or says what is missing."""

from __future__ import annotations

import os
import sys
from typing import Any

from queryard.core.errors import QueryardError

# Ray takes 127.0.0.1 for an address that others cannot reach, and listens on all interfaces
# instead, unless this is set before its first import.
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


class RayMissing(QueryardError):
    """Ray is not installed, or cannot be used as it is."""


def import_ray() -> Any:
    """The module `ray`."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        version = ".".join(map(str, sys.version_info[:2]))
        raise RayMissing(
            f"backend ray: Ray cannot be imported ({error}); install it with "
            f"pip install 'queryard[ray]'. If there is no wheel of Ray for Python {version}, use a "
            "Python that has one (https://pypi.org/project/ray/#files)"
        ) from None
    return ray


def import_on_loopback() -> Any:
    """The module `ray`, such that clusters of this process listen on 127.0.0.1 only."""
    if sys.modules.get("ray") is not None and os.environ.get(LOOPBACK) != "0":
        raise RayMissing(
            "address='local': Ray was imported before, and would listen on all interfaces of this "
            f"machine; set the environment variable {LOOPBACK}=0 before the program imports ray, "
            "or import queryard's session first"
        )
    os.environ[LOOPBACK] = "0"
    return import_ray()

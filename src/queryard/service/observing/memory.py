"""Memory of this process."""

from __future__ import annotations

import os


def resident_bytes() -> int:
    """Memory of this process; 0 where that is not told."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0

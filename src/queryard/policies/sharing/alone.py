"""No sharing."""

from __future__ import annotations

from queryard.core.parts import ScanSharing


class Alone(ScanSharing):
    """Every task reads its own split."""

    name = "none"

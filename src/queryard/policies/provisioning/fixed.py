"""A cluster of constant size."""

from __future__ import annotations

from queryard.core.parts import Provisioning


class Fixed(Provisioning):
    """The cluster stays as it is."""

    name = "fixed"

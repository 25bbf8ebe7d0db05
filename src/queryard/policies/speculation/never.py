"""Every task runs once."""

from __future__ import annotations

from queryard.core.parts import Speculation


class Never(Speculation):
    """No task runs a second time while it runs."""

    name = "none"

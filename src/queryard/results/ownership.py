"""A session belongs to the process that opened it.

A forked process has a copy of the session's memory and none of its threads: it would wait for them
for ever.
"""

from __future__ import annotations

import os

from queryard.core.errors import QueryardError


class Owner:
    """The process that this was made in."""

    def __init__(self) -> None:
        self.pid = os.getpid()

    @property
    def is_here(self) -> bool:
        return os.getpid() == self.pid

    def check(self) -> None:
        """Complain in any other process."""
        if not self.is_here:
            raise QueryardError(
                f"this session belongs to process {self.pid}; open one of its own in the forked "
                f"process {os.getpid()} with queryard.connect"
            )

"""The end of a test that hangs, with the stacks of all threads."""

from __future__ import annotations

import contextlib
import faulthandler
import os
from collections.abc import Iterator

# Where stacks are written. What goes to the usual place while a test runs is captured by pytest,
# and lost with the process.
_out = [2]


def keep_output() -> None:
    """Remember where errors go; to be called while nothing is captured."""
    _out[:] = [os.dup(2)]


def show_stacks() -> None:
    """Write the stacks of all threads."""
    faulthandler.dump_traceback(file=_out[0])


@contextlib.contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """End the process, with all stacks, if this takes longer; also if no thread of Python runs."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=_out[0])
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()

"""An end to every hang."""

from __future__ import annotations

import faulthandler
import sys

import pytest


@pytest.fixture(autouse=True)
def no_hang():
    """A hang ends the run with all stacks, instead of waiting for ever."""
    faulthandler.dump_traceback_later(120, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()

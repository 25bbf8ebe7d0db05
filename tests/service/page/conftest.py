"""A real browser on a real server; where there is no Chromium, these tests are skipped."""

from __future__ import annotations

import faulthandler
import sys

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")
pytest.importorskip("prometheus_client")
pytest.importorskip("uvicorn")


@pytest.fixture(autouse=True)
def no_hang():
    """A hang ends the run with all stacks, instead of waiting for ever."""
    faulthandler.dump_traceback_later(120, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()

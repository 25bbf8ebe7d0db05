"""Helpers beside these tests, and an end to every hang."""

from __future__ import annotations

import faulthandler
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def no_hang():
    faulthandler.dump_traceback_later(120, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "place" / "history.sqlite"

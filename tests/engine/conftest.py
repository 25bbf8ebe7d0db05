"""Data and limits for the tests of native execution."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.native_driving import Bench, write_facts


@pytest.fixture(scope="session")
def facts(tmp_path_factory) -> Path:
    """A folder with `facts` (400,000 rows in 8 row groups), `dims` (1,000 rows) and `none` (0)."""
    folder = tmp_path_factory.mktemp("facts")
    write_facts(folder)
    return folder


@pytest.fixture
def bench(facts, tmp_path):
    """An engine with two slots, without kernel and driver: the test lends the slots."""
    made = Bench(facts, tmp_path / "temp")
    yield made
    made.close()

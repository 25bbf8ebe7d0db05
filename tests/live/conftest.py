"""Small data, and sessions on it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from engine.native_driving import write_facts

import queryard

# The grammar of random queries lives there.
sys.path.insert(0, str(Path(__file__).parents[1] / "engine" / "staged"))


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> Path:
    """A folder with `facts` (400,000 rows in 8 row groups), `dims` (1,000 rows) and `none` (0)."""
    folder = tmp_path_factory.mktemp("data")
    write_facts(folder)
    return folder


@pytest.fixture
def qy(data, tmp_path):
    """A session that only reads, with two slots and a small budget."""
    with queryard.connect(data, slots=2, memory="512 MB", temp=tmp_path / "temp") as session:
        yield session


@pytest.fixture
def writer(data, tmp_path):
    """A session that may write."""
    with queryard.connect(
        data, slots=2, memory="512 MB", temp=tmp_path / "temp", write=True
    ) as session:
        yield session

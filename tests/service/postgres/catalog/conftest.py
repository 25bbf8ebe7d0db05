"""One catalog for all tests that only ask."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from shop import SHOP

from queryard.service.postgres.catalog import CatalogQueries


@pytest.fixture(scope="session")
def queries() -> Iterator[CatalogQueries]:
    made = CatalogQueries(SHOP)
    yield made
    made.close()

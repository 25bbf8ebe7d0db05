"""One catalog for all tests that only ask."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from queryard.service.postgres.catalog import CatalogQueries
from tests.service.postgres.catalog.shop import SHOP


@pytest.fixture(scope="session")
def queries() -> Iterator[CatalogQueries]:
    made = CatalogQueries(SHOP)
    yield made
    made.close()

"""One server for all tests that do not ask for limits of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import wait_until

from tests.service.postgres.served_postgres import Served, a_server


@pytest.fixture(autouse=True)
def idle(request):
    """A server that tests share has nothing left of the test before."""
    for name in ("server", "hasty"):
        if name in request.fixturenames:
            yard = request.getfixturevalue(name).ground.yard
            wait_until(lambda: not yard.active())  # noqa: B023


@pytest.fixture(scope="package")
def server(tmp_path_factory) -> Iterator[Served]:
    with a_server(tmp_path_factory.mktemp("postgres")) as served:
        yield served


@pytest.fixture
def folder(server) -> Path:
    """Where the data of the server are."""
    return server.data

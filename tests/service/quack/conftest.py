"""One server for all tests that do not ask for limits of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from waiting import wait_until

from tests.service.quack.plain_client import Client
from tests.service.quack.served_quack import Served, a_server


@pytest.fixture(autouse=True)
def idle(request):
    """A server that tests share has nothing left of the test before."""
    if "server" in request.fixturenames:
        yard = request.getfixturevalue("server").yard
        wait_until(lambda: not yard.active())


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Served]:
    with a_server(tmp_path_factory.mktemp("quack")) as served:
        yield served


@pytest.fixture
def client(server) -> Iterator[Client]:
    made = server.client()
    yield made
    made.close()

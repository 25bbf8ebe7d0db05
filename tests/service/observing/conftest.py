"""One server per module, with a history and a tenant of each kind."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")
pytest.importorskip("prometheus_client")
pytest.importorskip("uvicorn")

from service.http.serving import a_server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("observed")
    with a_server(folder, session={"history": folder / "history.sqlite"}) as made:
        yield made


@pytest.fixture
def ann(server):
    with server.client("ann") as client:
        yield client


@pytest.fixture
def eve(server):
    with server.client("eve") as client:
        yield client


@pytest.fixture
def root(server):
    with server.client("root") as client:
        yield client

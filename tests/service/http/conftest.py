"""One server per module, unless a test needs limits of its own."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")
pytest.importorskip("prometheus_client")
pytest.importorskip("uvicorn")

from service.http.serving import a_server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    with a_server(folder, session={"history": folder / "history.sqlite"}) as made:
        yield made


@pytest.fixture
def ann(server):
    with server.client("ann") as client:
        yield client

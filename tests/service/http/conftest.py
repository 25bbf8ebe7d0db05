"""One server per module, unless a test needs limits of its own."""

from __future__ import annotations

import faulthandler
import sys

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")
pytest.importorskip("prometheus_client")
pytest.importorskip("uvicorn")

from service.http.serving import a_server


@pytest.fixture(autouse=True)
def no_hang(request):
    """A hang ends the run with all stacks, instead of waiting for ever."""
    limit_s = 3600 if request.node.get_closest_marker("long") else 120
    faulthandler.dump_traceback_later(limit_s, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    with a_server(folder, session={"history": folder / "history.sqlite"}) as made:
        yield made


@pytest.fixture
def ann(server):
    with server.client("ann") as client:
        yield client

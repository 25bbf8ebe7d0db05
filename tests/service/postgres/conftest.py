"""One server for all tests that do not ask for limits of their own."""

from __future__ import annotations

import faulthandler
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from queryard.engine.access import Access

sys.path.insert(0, str(Path(__file__).parent))

from served_postgres import Served, a_server  # noqa: E402


@pytest.fixture(autouse=True)
def no_hang():
    """A hang ends the run with all stacks, instead of waiting for ever."""
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session")
def server(tmp_path_factory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("postgres")
    data = folder / "data"
    data.mkdir()
    from tests.service.yard_ground import write_data

    write_data(data)
    with duckdb.connect(str(data / "shop.duckdb")) as shop:
        shop.execute(
            "CREATE TABLE stock (id INTEGER PRIMARY KEY, name VARCHAR, price DECIMAL(9,2))"
        )
        shop.execute("INSERT INTO stock VALUES (1, 'nail', 0.05), (2, 'saw', 12.5)")
    grants = {"sales": Access(sealed=True, writes=frozenset({"shop"}))}
    with a_server(folder, grants=grants) as served:
        served.data = data
        yield served


@pytest.fixture
def folder(server) -> Path:
    """Where the data of the server are."""
    return server.data

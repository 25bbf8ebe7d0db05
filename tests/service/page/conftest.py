"""A real browser on a real server; where there is no Chromium, these tests are skipped."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")
pytest.importorskip("prometheus_client")
pytest.importorskip("uvicorn")

from queryard.service.logs import log
from service.http.serving import a_server
from service.page.browsing import SLOW, a_browser, a_page, signed_in
from service.yard_ground import write_data

LARGE = 400_000


@pytest.fixture(scope="package")
def browser():
    with a_browser() as made:
        yield made


@pytest.fixture(scope="package")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    data = folder / "data"
    data.mkdir()
    write_data(data)
    # Enough blocks to estimate from.
    large = {"g": [n % 3 for n in range(LARGE)], "x": [float(n % 101) for n in range(LARGE)]}
    pq.write_table(pa.table(large), data / "large.parquet", row_group_size=LARGE // 200)
    with a_server(folder, session={"history": folder / "history.sqlite"}) as made:
        with made.client("ann") as ann:
            for sql in ("SELECT count(*) FROM numbers", "SELECT * FROM small", "SELECT nothing"):
                ann.post("/v1/queries?wait=10", json={"sql": sql})
        log("the page is looked at", query="q-1")
        yield made


@pytest.fixture
def admin(browser, server):
    """A page that an admin has signed in to."""
    with a_page(browser) as page:
        yield signed_in(page, server.url, server.secrets["root"])


@pytest.fixture
def slow(server):
    """A query of ann's that is on its way for as long as the test."""
    with server.client("ann") as ann:
        query = ann.post("/v1/queries", json={"sql": SLOW}).json()["id"]
        yield query
        ann.delete(f"/v1/queries/{query}")

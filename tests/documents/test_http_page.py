"""What the page of HTTP shows can be sent, and what it names is there."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import date, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from blocks import ROOT, blocks_of

pytest.importorskip("fastapi")
pytest.importorskip("httpx")
pytest.importorskip("prometheus_client")
pytest.importorskip("uvicorn")

from service.http.serving import a_server

from queryard.service.problems import BY_CLASS, BY_HEADING

SHOWN = [block.text for block in blocks_of("docs/http.md") if block.language == "sh"]
PAGE = (ROOT / "docs/http.md").read_text("utf-8")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "data").mkdir()
    days = [date(2026, 1, 1) + timedelta(days=n % 365) for n in range(2000)]
    orders = {"id": range(2000), "amount": [float(n % 1000) for n in range(2000)], "day": days}
    pq.write_table(pa.table(orders), folder / "data" / "orders.parquet")
    with a_server(folder, session={"history": folder / "history.sqlite"}) as made:
        yield made


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_requests_of_the_page_are_answered(server):
    assert SHOWN[0].startswith("export URL=")
    script = "set -e\n" + "".join(SHOWN[1:]).replace("curl -s", "curl --fail-with-body -s")
    ran = subprocess.run(
        ["bash", "-c", script],
        env={"URL": server.url, "TOKEN": server.secrets["ann"], "PATH": "/usr/bin:/bin"},
        capture_output=True,
        encoding="utf-8",
        timeout=100,
    )
    assert ran.returncode == 0, ran.stdout[-500:] + ran.stderr
    assert '"first_rows": [[2000]]' in ran.stdout


def test_the_page_names_every_path_and_figure(server):
    with server.client("root") as root:
        document = root.get("/openapi.json").json()
        figures = root.get("/metrics").text
    named = re.sub(r"\{\w+\}", "{}", PAGE)
    for path in document["paths"]:
        shown = re.sub(r"\{\w+\}", "{}", path).replace("/v1/queries/{}/", "…/")
        last = shown.removeprefix("…")
        assert shown in named or last in named, path
    for name in re.findall(r"^# TYPE (queryard_\w+)", figures, re.M):
        if not name.endswith("_created"):
            assert name in PAGE, name


def test_the_page_names_kinds_of_problems_that_are_there():
    known = {kind.name for _, kind in BY_CLASS} | {kind.name for kind in BY_HEADING.values()}
    table = PAGE.partition("| status | types |")[2]
    named = set(re.findall(r"`([a-z-]+)`", table))
    assert named <= known | {"defect"}
    assert {"unauthorized", "syntax", "rows-gone", "already-ran", "no-room"} <= named

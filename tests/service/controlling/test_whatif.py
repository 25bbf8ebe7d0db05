"""What-ifs: the table of `queryard.compare` on a window, from a process of its own."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from waiting import wait_until

import queryard
from queryard.history import HistoryReader
from queryard.replay import window
from queryard.service.controlling import whatif
from queryard.service.http import models_controls as models
from service.http.serving import Server, a_server

SQL = "SELECT count(*) FROM range({}) t(i) WHERE i % 7 = 3"
EVIL = "<script>alert(1)</script>"
SCRIPT = re.compile(r"<\s*script|\bon\w+\s*=|javascript:|<\s*foreignObject", re.IGNORECASE)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("whatif")
    tenants = {"sales": {"weight": 2}}
    history = folder / "history.sqlite"
    with a_server(folder, session={"history": history, "tenants": tenants}) as made:
        with made.client("ann") as ann:
            asked = [
                ann.post("/v1/queries", json={"sql": SQL.format(200_000 + n)}).json()["id"]
                for n in range(8)
            ]
            for query in asked:
                assert ann.get(f"/v1/queries/{query}?wait=30").json()["state"] == "finished"
        writer = made.yard.session.host._recorder.history
        assert writer is not None
        writer.flush()
        yield made


@pytest.fixture
def root(server: Server) -> Iterator[httpx.Client]:
    with server.client("root") as client:
        yield client


def ask(root: httpx.Client, **body: Any) -> str:
    reply = root.post("/v1/whatif", json=body)
    assert reply.status_code == 201, reply.text
    models.WhatIfState.model_validate(reply.json())
    return reply.json()["id"]


def over(root: httpx.Client, name: str) -> dict[str, Any]:
    def ended() -> dict[str, Any] | None:
        found = root.get(f"/v1/whatif/{name}").json()
        models.WhatIfFound.model_validate(found)
        return found if found["state"] in ("done", "failed") else None

    found = wait_until(ended)
    assert found is not None
    return found


def test_it_is_what_compare_finds_on_the_same_window(server: Server, root: httpx.Client):
    until = time.time()
    mine = {"name": "mine", "order": "srtf"}
    found = over(root, ask(root, until=until, policies=["fifo", mine, "fair"], slots=3))
    assert found["error"] is None
    assert (found["state"], found["progress"], found["by"]) == ("done", 1.0, "root")
    file = server.yard.session.host.history_file
    assert file is not None
    with HistoryReader(file) as reader:
        tenants = server.yard.session.tenants
        part = window(reader, until - 3600, until, slots=3, tenants=tenants)
    compared = queryard.compare(
        part.trace,
        policies=["fifo", "mine", "fair"],
        profiles={"mine": {"order": "srtf"}},
        estimates=part.estimates,
        by_tenant=True,
    )
    rows = [scores.to_json() for scores in compared.scores.values()]
    ideals = [scores.to_json() for scores in compared.references.values()]
    assert [{**row, "kind": "policy"} for row in rows] == found["rows"][:3]
    assert [{**row, "kind": "reference"} for row in ideals] == found["rows"][3:]
    assert [row["name"] for row in found["rows"]][:4] == ["fifo", "mine", "fair", "as recorded"]
    assert found["table"] == compared.table()
    assert found["verdict"] == compared.verdict
    assert found["title"] == compared.title
    assert found["estimates"].startswith("policies know what every task takes")


def test_figures_have_no_script_whatever_names_say(server: Server, root: httpx.Client):
    with server.client("root") as admin:
        sql = f"SELECT '{EVIL}'"
        body = {"sql": sql, "tenant": f"ops/{EVIL.replace('/', '')}"}
        assert admin.post("/v1/queries?wait=20", json=body).status_code == 200
    portfolio = {"portfolio": {"objective": "throughput", "candidates": ["fifo", "fair"]}}
    wanted = ["fifo", {"name": EVIL, "order": "srtf"}, portfolio]
    found = over(root, ask(root, policies=wanted))
    assert found["error"] is None
    # A portfolio runs beside its candidates.
    names = {row["name"] for row in found["rows"] if row["kind"] == "policy"}
    assert names == {"fifo", EVIL, "fair", "portfolio"}
    (figure,) = found["figures"]
    assert figure["svg"].count("<svg") == 1
    assert not SCRIPT.search(figure["svg"])
    names = {
        element.tag.rpartition("}")[2] for element in ElementTree.fromstring(figure["svg"]).iter()
    }
    assert "script" not in names
    assert "svg" in names


def test_a_large_figure_is_an_image_in_the_svg(monkeypatch: pytest.MonkeyPatch, server: Server):
    from queryard.service.controlling import whatif_asked, whatif_job

    monkeypatch.setattr(whatif_job, "MOST_SVG_BYTES", 1000)
    given = {"policies": ["fifo"]}
    file = server.yard.session.host.history_file
    assert file is not None
    told: list[float] = []
    found = whatif_job.computed(whatif_asked.read_job(given, file, ()), told.append)
    svg = found["figures"][0]["svg"]
    assert "data:image/png;base64," in svg
    assert not SCRIPT.search(svg)
    assert ElementTree.fromstring(svg) is not None
    assert told == sorted(told)
    monkeypatch.setattr(whatif_job, "find_spec", lambda name: None)
    found = whatif_job.computed(whatif_asked.read_job(given, file, ()), told.append)
    assert found["figures"] == []
    assert f"there is no figure: {whatif_job.NO_MATPLOTLIB}" in found["notes"]


def test_what_cannot_be_asked(server: Server, root: httpx.Client):
    for body, said in (
        ({"policies": []}, "policies"),
        ({"policies": ["fairr"]}, "did you mean 'fair'"),
        ({"policies": [{"order": "nosuch"}]}, "nosuch"),
        ({"policies": ["all"]}, "name fewer"),
        ({"policies": ["fair"], "since": "yesterday"}, "ISO 8601"),
        ({"policies": ["fair"], "since": 5, "until": 4}, "must lie before"),
        ({"policies": ["fair"], "slots": 0}, "slots"),
        ({"policies": ["fair"], "weather": 1}, "weather"),
    ):
        reply = root.post("/v1/whatif", json=body)
        assert reply.status_code == 422, reply.text
        assert said in reply.json()["detail"], reply.json()
    found = over(root, ask(root, policies=["fair"], since=5, until=6))
    assert found["state"] == "failed"
    assert "no query has run" in found["error"]
    assert root.get("/v1/whatif/nosuch").status_code == 404
    assert root.delete("/v1/whatif/nosuch").status_code == 404
    with server.client("ann") as ann:
        for reply in (
            ann.post("/v1/whatif", json={"policies": ["fair"]}),
            ann.get("/v1/whatif"),
            ann.get("/v1/whatif/x"),
            ann.delete("/v1/whatif/x"),
        ):
            assert reply.status_code == 403


@pytest.fixture
def idle_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that says it is half done, and waits for the end of its input."""
    boot = """
import sys
sys.stdin.readline()
print('{"progress": 0.5}', flush=True)
sys.stdin.read()
"""
    monkeypatch.setattr(whatif, "_BOOT", boot)


def running(root: httpx.Client, name: str) -> dict[str, Any]:
    def found() -> dict[str, Any]:
        return root.get(f"/v1/whatif/{name}").json()

    wait_until(lambda: found()["progress"] == 0.5)
    return found()


def pid_of(server: Server, name: str) -> int:
    process = server.yard.whatifs._all[name].process
    assert process is not None
    return process.pid


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.usefixtures("idle_worker")
def test_a_worker_that_is_killed_is_an_error_of_its_what_if_only(
    server: Server, root: httpx.Client
):
    first, second = ask(root, policies=["fair"]), ask(root, policies=["fair"])
    assert running(root, first)["state"] == "running"
    assert root.get(f"/v1/whatif/{second}").json()["state"] == "waiting", "one at a time"
    os.kill(pid_of(server, first), signal.SIGKILL)
    found = over(root, first)
    assert (found["state"], found["rows"]) == ("failed", [])
    assert "ended by SIGKILL" in found["error"]
    running(root, second)
    pid = pid_of(server, second)
    assert root.delete(f"/v1/whatif/{second}").status_code == 204
    assert root.get(f"/v1/whatif/{second}").status_code == 404
    wait_until(lambda: gone(pid))
    with server.client("ann") as ann:
        assert ann.post("/v1/queries?wait=20", json={"sql": "SELECT 1"}).status_code == 200


@pytest.mark.usefixtures("idle_worker")
def test_only_a_few_wait(root: httpx.Client):
    names = [ask(root, policies=["fair"])]
    running(root, names[0])
    names += [ask(root, policies=["fair"]) for _ in range(whatif.MOST_WAITING)]
    reply = root.post("/v1/whatif", json={"policies": ["fair"]})
    assert reply.status_code == 429
    assert "4 what-ifs are waiting" in reply.json()["detail"]
    listed = root.get("/v1/whatif").json()
    models.WhatIfList.model_validate(listed)
    assert [each["id"] for each in listed["whatifs"]][:5] == names[::-1]
    for name in names:
        assert root.delete(f"/v1/whatif/{name}").status_code == 204


@pytest.mark.usefixtures("idle_worker")
def test_one_that_takes_too_long_is_ended_and_none_outlives_the_server(tmp_path: Path):
    file = tmp_path / "history.sqlite"
    whatifs = whatif.WhatIfs(limit_s=0.3)
    made = whatifs.submit("ann", {"policies": ["fair"]}, file, ())
    wait_until(lambda: whatifs.show(made["id"])["state"] == "failed")
    assert "took longer than 0.3 s" in whatifs.show(made["id"])["error"]
    whatifs.close()

    others = whatif.WhatIfs()
    made = others.submit("ann", {"policies": ["fair"]}, file, ())
    process = wait_until(lambda: others._all[made["id"]].process)
    others.close()
    assert gone(process.pid)
    assert others._thread is not None
    assert not others._thread.is_alive()


def test_a_worker_ends_with_its_input():
    """As when the server is killed: nothing tells the worker but the end of its input."""
    import json
    import subprocess
    import sys

    package = str(Path(queryard.__file__).resolve().parents[1])
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import time, queryard.service.controlling.whatif_worker as w\n"
            f"w.computed = lambda job, hear: time.sleep(60)\n{whatif._BOOT}",
            package,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    job = {"history": "", "since": 0, "until": 1, "policies": [], "profiles": {}, "tenants": []}
    process.stdin.write(json.dumps(job).encode() + b"\n")
    process.stdin.flush()
    process.stdin.close()
    assert process.wait(30) == 1
    assert process.stdout is not None
    process.stdout.close()

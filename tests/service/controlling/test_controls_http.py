"""Controls over HTTP: each change takes effect on the live server, is recorded and is undone."""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from waiting import wait_until

from queryard.service.http import models_controls as models
from service.http.serving import Server, a_server

SLOW = "SELECT count(*) FROM range(2000000000) t(i) WHERE i % 7 = 3"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    history = tmp_path / "history.sqlite"
    tenants = {"sales": {"weight": 2, "limits": {"waiting": 50}}}
    with a_server(tmp_path, session={"history": history, "tenants": tenants}) as made:
        yield made


@pytest.fixture
def root(server: Server) -> Iterator[httpx.Client]:
    with server.client("root") as client:
        yield client


def do(root: httpx.Client, change: str, **arguments: Any) -> dict[str, Any]:
    reply = root.post("/v1/controls", json={"change": change, **arguments})
    assert reply.status_code == 200, reply.text
    models.ChangeRecord.model_validate(reply.json())
    return reply.json()


def undo(root: httpx.Client, number: int) -> dict[str, Any]:
    reply = root.post(f"/v1/controls/{number}/undo")
    assert reply.status_code == 200, reply.text
    return reply.json()


def shown(root: httpx.Client) -> dict[str, Any]:
    found = root.get("/v1/controls").json()
    models.ControlsState.model_validate(found)
    return found


def tenant(root: httpx.Client, name: str) -> dict[str, Any]:
    (found,) = [each for each in shown(root)["tenants"] if each["name"] == name]
    return found


def submit(client: httpx.Client, sql: str, **options: Any) -> str:
    reply = client.post("/v1/queries", json={"sql": sql, **options})
    assert reply.status_code == 201, reply.text
    return reply.json()["id"]


def state_of(client: httpx.Client, query: str, wait: float = 0) -> dict[str, Any]:
    return client.get(f"/v1/queries/{query}", params={"wait": wait}).json()


def test_only_admins_see_and_change(server: Server):
    with server.client("ann") as ann:
        for method, path in (
            ("GET", "/v1/controls"),
            ("POST", "/v1/controls"),
            ("POST", "/v1/controls/1/undo"),
        ):
            body = {"change": "pause"} if method == "POST" and path.endswith("controls") else None
            reply = ann.request(method, path, json=body)
            assert reply.status_code == 403, reply.text
            assert reply.json()["type"].endswith("not-admin")
    assert server.yard.controls.state == "open"


def test_another_policy_and_back(server: Server, root: httpx.Client):
    first = shown(root)
    assert first["profile"] == "marshal"
    made = do(root, "profile", profile="fair", reason="to see")
    assert (made["by"], made["text"], made["reason"]) == ("root", "policy marshal → fair", "to see")
    assert (made["before"], made["after"], made["undoable"]) == ("marshal", "fair", True)
    assert server.yard.session.profile["name"] == "fair"
    assert server.yard.session.policy_state().by == "root"
    document = {"name": "mine", "order": "srtf"}
    second = do(root, "profile", profile=document)
    assert shown(root)["profile"] == document
    reply = root.post(f"/v1/controls/{made['id']}/undo")
    assert reply.status_code == 409
    assert "came later; undo that first" in reply.json()["detail"]
    undone = undo(root, second["id"])
    assert (undone["undoes"], undone["undoable"]) == (second["id"], False)
    assert shown(root)["profile"] == "fair"
    undo(root, made["id"])
    assert server.yard.session.profile["name"] == "marshal"
    assert [change["undone_by"] for change in shown(root)["changes"]] == [None, None, 3, 4]
    reply = root.post(f"/v1/controls/{made['id']}/undo")
    assert "was undone already, by change 4" in reply.json()["detail"]


def test_a_portfolio_stays_when_shares_change(server: Server, root: httpx.Client):
    document = {"portfolio": {"objective": "throughput", "candidates": ["fifo", "fair"]}}
    made = do(root, "profile", profile=document)
    assert made["text"] == "policy marshal → portfolio"
    do(root, "tenant", tenant="web", weight=4)
    found = shown(root)
    assert found["profile"] == document
    assert found["portfolio"]["objective"] == "throughput"
    reply = root.post(
        "/v1/controls",
        json={"change": "profile", "profile": {"portfolio": {"candidates": ["nosuch"]}}},
    )
    assert (reply.status_code, "nosuch" in reply.json()["detail"]) == (422, True)
    undo(root, made["id"])
    found = shown(root)
    assert (found["profile"], found["portfolio"]) == ("marshal", None)
    assert server.yard.session.profile["name"] == "marshal"


def test_the_older_route_of_policies_is_a_change_too(server: Server, root: httpx.Client):
    assert root.put("/v1/profiles/current", json={"profile": "fifo"}).status_code == 200
    assert shown(root)["changes"][0]["text"] == "policy marshal → fifo"


def test_shares_and_limits_of_a_tenant(server: Server, root: httpx.Client):
    made = do(root, "tenant", tenant="sales", weight=5, guarantee=0.25)
    assert made["text"] == "tenant 'sales': weight 2 → 5, guarantee 0 → 0.25"
    assert made["before"] == {"tenant": "sales", "weight": 2, "guarantee": 0.0}
    pools = server.yard.session.profile["pools"]["children"]
    assert (pools["sales"]["weight"], pools["sales"]["guarantee"]) == (5, 0.25)
    do(root, "tenant", tenant="web", cap=0.5, limits={"waiting": 0, "wait": "2 min"})
    web = tenant(root, "web")
    assert (web["cap"], web["limits"]) == (
        0.5,
        {"waiting": 0, "wait_s": 120.0, "memory_bytes": None},
    )
    with server.client("eve") as eve:
        reply = eve.post("/v1/queries", json={"sql": "SELECT 1"})
        assert reply.status_code == 429
        assert "tenant 'web': the limit of waiting queries is 0" in reply.json()["detail"]
        undo(root, 2)
        assert eve.post("/v1/queries?wait=20", json={"sql": "SELECT 1"}).status_code == 200
    assert tenant(root, "web")["limits"]["waiting"] is None
    do(root, "tenant", tenant="sales", limits=None)
    assert tenant(root, "sales")["limits"]["waiting"] is None
    undo(root, 4)
    undo(root, 1)
    assert tenant(root, "sales")["weight"] == 2
    assert tenant(root, "sales")["limits"]["waiting"] == 50


def test_a_weight_counts_for_queries_that_wait_already(tmp_path: Path):
    """Two tenants have ten queries each waiting; one is given almost everything."""
    tenants = {"sales": {"weight": 1}, "web": {"weight": 1}}
    options = {"slots": 1, "tenants": tenants}
    with (
        a_server(tmp_path, session=options) as server,
        server.client("root") as root,
        server.client("ann") as ann,
        server.client("eve") as eve,
    ):
        do(root, "pause")
        sql = "SELECT count(*) FROM range(1000000) WHERE range % {} = 1"
        mine = [submit(ann, sql.format(n)) for n in range(2, 12)]
        others = [submit(eve, sql.format(n + 100)) for n in range(2, 12)]
        do(root, "tenant", tenant="web", weight=1000)
        do(root, "resume")
        states = [state_of(eve, query, wait=60) for query in others]
        ended_s = max(state["timing"]["ended_s"] for state in states)
        before = [
            query for query in mine if state_of(ann, query, wait=60)["timing"]["ended_s"] < ended_s
        ]
        assert len(before) <= 4, "with equal weights it would be about ten"


def test_what_is_wrong_changes_nothing(server: Server, root: httpx.Client):
    for body, said in (
        ({"change": "explode"}, "change"),
        ({"change": "profile", "profile": "fairr"}, "did you mean 'fair'"),
        ({"change": "profile"}, "must be the name of a policy or a document"),
        ({"change": "profile", "profile": {"order": "nosuch"}}, "nosuch"),
        ({"change": "tenant", "weight": 2}, "name one"),
        ({"change": "tenant", "tenant": "web"}, "nothing is to be changed"),
        ({"change": "tenant", "tenant": "web", "weight": -1}, "must be above 0"),
        ({"change": "tenant", "tenant": "web", "guarantee": 0.9, "cap": 0.1}, "cap"),
        ({"change": "tenant", "tenant": "a//b", "weight": 1}, "a//b"),
        ({"change": "tenant", "tenant": "web", "limits": {"waiting": -1}}, "at least 0"),
        ({"change": "tenant", "tenant": "web", "limits": {"wait": "soon"}}, "soon"),
        ({"change": "pause", "weight": 2}, "weight"),
        ({"change": "resume"}, "it is not paused"),
        ({"change": "open"}, "it is not draining"),
        ({"change": "cancel-tenant", "tenant": "nobody"}, "unknown tenant 'nobody'"),
        ({"change": "reset-models", "models": []}, "must be a list"),
    ):
        reply = root.post("/v1/controls", json=body)
        assert reply.status_code in (404, 409, 422), reply.text
        assert said in reply.json()["detail"], reply.json()
    assert root.post("/v1/controls/77/undo").status_code == 404
    do(root, "tenant", tenant="sales", guarantee=0.8)
    reply = root.post("/v1/controls", json={"change": "tenant", "tenant": "web", "guarantee": 0.8})
    assert "the guarantees add up to 1.6" in reply.json()["detail"]
    found = shown(root)
    assert len(found["changes"]) == 1
    assert tenant(root, "web")["guarantee"] == 0.0


def test_in_a_pause_nothing_starts_and_what_runs_goes_on(server: Server, root: httpx.Client):
    with server.client("ann") as ann:
        running = submit(ann, "SELECT count(*) FROM range(60000000) WHERE range % 3 = 1")
        wait_until(lambda: state_of(ann, running)["state"] != "waiting")
        do(root, "pause", reason="maintenance")
        assert shown(root)["paused"]["by"] == "root"
        waiting = [submit(ann, f"SELECT {n}") for n in range(5)]
        assert state_of(ann, running, wait=60)["state"] == "finished"
        found = state_of(ann, waiting[0], wait=0.2)
        assert found["state"] == "waiting"
        assert found["why"]["reasons"] == ["no query starts: paused by root (maintenance)"]
        reply = root.post("/v1/controls", json={"change": "pause"})
        assert reply.status_code == 409
        assert "paused already, by root (maintenance)" in reply.json()["detail"]
        do(root, "resume")
        assert all(state_of(ann, query, wait=30)["state"] == "finished" for query in waiting)
        undo(root, 2)
        assert shown(root)["state"] == "paused"
        undo(root, 1)
        assert shown(root)["state"] == "open"


def test_draining_takes_no_queries_and_lets_those_there_end(server: Server, root: httpx.Client):
    with server.client("ann") as ann:
        running = submit(ann, "SELECT count(*) FROM range(60000000) WHERE range % 3 = 1")
        made = do(root, "drain", reason="moving")
        reply = ann.post("/v1/queries", json={"sql": "SELECT 1"})
        assert reply.status_code == 503
        assert "set to drain by root (moving)" in reply.json()["detail"]
        ready = root.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (503, "draining")
        assert state_of(ann, running, wait=60)["state"] == "finished"
        assert shown(root)["state"] == "draining"
        do(root, "open")
        assert ann.post("/v1/queries?wait=20", json={"sql": "SELECT 1"}).status_code == 200
        undo(root, made["id"] + 1)
        assert shown(root)["state"] == "draining"
        undo(root, made["id"])
        assert shown(root)["state"] == "open"


def test_all_queries_of_a_tenant_are_cancelled_and_no_others(server: Server, root: httpx.Client):
    with server.client("ann") as ann, server.client("eve") as eve:
        mine = [submit(ann, SLOW), submit(ann, f"{SLOW} AND i % 2 = 0", tenant="sales/emea")]
        other = submit(eve, f"{SLOW} AND i % 5 = 0")
        made = do(root, "cancel-tenant", tenant="sales")
        assert made["text"] == "cancelled 2 queries of tenant 'sales'"
        assert (made["after"], made["undoable"]) == ({"cancelled": 2}, False)
        for query in mine:
            found = state_of(ann, query, wait=30)
            assert found["state"] == "cancelled"
            assert "of tenant 'sales' were cancelled by root" in found["error"]["detail"]
        assert state_of(eve, other)["state"] in ("waiting", "running")
        reply = root.post(f"/v1/controls/{made['id']}/undo")
        assert reply.status_code == 409
        assert "cannot be undone" in reply.json()["detail"]
        eve.delete(f"/v1/queries/{other}")


def test_two_admins_do_not_overwrite_each_other(server: Server, root: httpx.Client):
    """Changes come one after another, each with a number; `seen` refuses on top of a later one."""
    ready = threading.Barrier(8)

    def change(number: int) -> int:
        with server.client("root") as client:
            ready.wait()
            body = {"change": "tenant", "tenant": "web", "weight": number + 1, "seen": 0}
            return client.post("/v1/controls", json=body).status_code

    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(change, range(8)))
    assert sorted(replies) == [200] + [409] * 7
    found = shown(root)
    assert [change["id"] for change in found["changes"]] == [1]
    assert tenant(root, "web")["weight"] == found["changes"][0]["after"]["weight"]

    def weigh(number: int) -> dict[str, Any]:
        with server.client("root") as client:
            return do(client, "tenant", tenant="web", weight=number + 10)

    with ThreadPoolExecutor(8) as threads:
        made = sorted(threads.map(weigh, range(8)), key=lambda change: change["id"])
    assert [change["id"] for change in made] == list(range(2, 10))
    for before, after in pairwise(made):
        assert after["before"]["weight"] == before["after"]["weight"], "none was lost in between"
    assert tenant(root, "web")["weight"] == made[-1]["after"]["weight"]


def test_the_record_is_its_owners_alone(server: Server, root: httpx.Client, tmp_path: Path):
    do(root, "tenant", tenant="web", weight=3)
    file = tmp_path / "controls.jsonl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(file.read_text().splitlines()) == 1

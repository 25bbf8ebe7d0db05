"""The present: what runs and waits, why, and what a token may see of it."""

from __future__ import annotations

import contextlib
import json
import time

from waiting import wait_until

from queryard.service.http import models_observing as models
from queryard.service.observing.observer import Observer
from service.http.test_queries import LONG, submitted


def long_query(number: int) -> str:
    """Of different texts, as identical queries are one execution."""
    return f"SELECT count(*) FROM range(100000000000) r WHERE r.range % 7 = {number}"


def finish_all(server) -> None:
    for query in server.yard.active():
        server.yard.session.cancel(query.id)
    wait_until(lambda: not server.yard.active(), 30)


def test_running_and_waiting_queries_are_listed_with_why(server, ann):
    names = [submitted(ann, long_query(number)) for number in range(4)]
    try:
        wait_until(lambda: ann.get("/v1/now").json()["running"], 20)
        found = ann.get("/v1/now").json()
        models.Now.model_validate(found)
        assert {each["id"] for each in found["running"] + found["waiting"]} == set(names)
        assert all(each["why"] for each in found["running"] + found["waiting"])
        assert found["slots"]["total"] == 2
        assert found["slots"]["busy"] > 0
        assert found["state"] == "open"
        assert found["policy"]["name"]
        assert abs(found["at"] - time.time()) < 5
        first = found["running"][0]
        assert found["at"] >= first["started_at"] >= first["submitted_at"]
        (tenant,) = (each for each in found["tenants"] if each["name"] == "sales")
        assert tenant["waiting"] + tenant["running"] == 4
    finally:
        finish_all(server)


def test_a_token_sees_nothing_of_other_tenants(server, ann, eve, root):
    mine = submitted(ann, "SELECT count(*) AS of_sales FROM range(100000000000)")
    try:
        wait_until(lambda: root.get("/v1/now").json()["running"], 20)
        seen = eve.get("/v1/now")
        assert mine not in seen.text
        assert "sales" not in seen.text
        assert "of_sales" in root.get("/v1/now").text
    finally:
        finish_all(server)
    assert mine not in eve.get("/v1/now").text
    ended = ann.get("/v1/now").json()["ended"]
    assert (ended[0]["id"], ended[0]["status"]) == (mine, "cancelled")


def test_waiting_queries_beyond_the_limit_are_counted(server, ann):
    for number in range(6):
        submitted(ann, long_query(number))
    try:
        wait_until(lambda: ann.get("/v1/now").json()["running"], 20)
        found = ann.get("/v1/now", params={"limit": 1}).json()
        assert len(found["waiting"]) == 1
        assert len(found["running"]) + 1 + found["more_waiting"] == 6
    finally:
        finish_all(server)


def test_all_that_run_and_wait_tell_at_once_when_they_will_start_and_end(server, ann):
    names = {submitted(ann, long_query(number)) for number in range(12)}
    try:
        wait_until(lambda: ann.get("/v1/now").json()["running"], 20)
        for _ in range(10):
            found = ann.get("/v1/now").json()
            listed = found["running"] + found["waiting"]
            assert {each["id"] for each in listed} == names
            assert all(each["eta_s"] is not None for each in listed), listed
            assert all(each["starts_in_s"] is None for each in found["running"])
            for each in found["waiting"]:
                assert 0 <= each["starts_in_s"] <= each["eta_s"]
            time.sleep(0.11)
    finally:
        finish_all(server)
    last = ann.get("/v1/now").json()["ended"][0]
    assert (last["starts_in_s"], last["eta_s"]) == (None, None)


def test_in_a_pause_no_waiting_query_tells_a_start(server, ann, root):
    root.post("/v1/controls", json={"change": "pause"}).raise_for_status()
    try:
        submitted(ann, long_query(1))
        wait_until(lambda: ann.get("/v1/now").json()["waiting"], 20)
        (waiting,) = ann.get("/v1/now").json()["waiting"]
        assert (waiting["starts_in_s"], waiting["eta_s"]) == (None, None)
    finally:
        finish_all(server)
        root.post("/v1/controls", json={"change": "resume"}).raise_for_status()


def test_a_failed_query_is_among_the_last_with_its_reason(server, ann):
    submitted(ann, "SELECT nothing_there FROM small")
    wait_until(lambda: ann.get("/v1/now").json()["ended"][0]["status"] == "failed", 20)
    assert "nothing_there" in ann.get("/v1/now").json()["ended"][0]["why"]


def events(lines, most: int):
    """The next documents of a stream."""
    found = []
    for line in lines:
        if line.startswith("data: "):
            found.append(json.loads(line.removeprefix("data: ")))
            if len(found) == most:
                return found
    return found


def test_a_stream_tells_changes_and_rests_otherwise(server, ann):
    with ann.stream("GET", "/v1/now/stream") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        (first,) = events(lines, 1)
        models.Now.model_validate(first)
        assert first["running"] == []
        query = submitted(server.client("ben"), LONG)
        try:
            for _ in range(20):
                (found,) = events(lines, 1)
                if [each["id"] for each in found["running"]] == [query]:
                    break
            else:
                raise AssertionError("the query was never told of")
        finally:
            finish_all(server)


def test_pages_with_the_same_view_get_the_same_bytes_made_once(server, ann, monkeypatch):
    made = []
    real = Observer.now

    def counted(observer, views):
        made.extend(views)
        return real(observer, views)

    monkeypatch.setattr(Observer, "now", counted)
    with (
        ann.stream("GET", "/v1/now/stream") as one,
        server.client("ben").stream("GET", "/v1/now/stream") as other,
    ):
        ones, others = one.iter_lines(), other.iter_lines()
        query = submitted(ann, LONG)
        told = events(ones, 3), events(others, 3)
        server.yard.session.cancel(query)
    seen = [{json.dumps(each) for each in each_told} for each_told in told]
    assert seen[0] & seen[1]
    assert len(made) <= 6  # not one per page and document


def test_a_token_cannot_have_documents_of_its_own_by_asking_for_other_numbers(
    server, ann, monkeypatch
):
    made = set()
    real = Observer.now

    def counted(observer, views):
        made.update(views)
        return real(observer, views)

    monkeypatch.setattr(Observer, "now", counted)
    with contextlib.ExitStack() as open_pages:
        for limit in (1, 2, 49, 50, 51, 199, 200, 201, 1999, 2000):
            page = ann.stream("GET", "/v1/now/stream", params={"limit": limit})
            assert events(open_pages.enter_context(page).iter_lines(), 1)
    assert {view.limit for view in made} == {50, 200, 2000}


def test_a_page_may_look_at_one_tenant_that_its_token_sees(server, ann, eve):
    query = submitted(ann, LONG)
    try:
        wait_until(lambda: ann.get("/v1/now").json()["running"], 20)
        for client, tenant, seen in (
            (ann, "sales", [query]),
            (ann, "web", []),
            (eve, "sales", []),
            (eve, "web", []),
        ):
            path = "/v1/now/stream"
            with client.stream("GET", path, params={"tenant": tenant}) as answer:
                (found,) = events(answer.iter_lines(), 1)
            assert [each["id"] for each in found["running"]] == seen, tenant
            assert found == found | {"waiting": [], "more_waiting": 0}
    finally:
        finish_all(server)


def test_a_stream_ends_with_its_token(tmp_path):
    from service.http.serving import a_server

    with a_server(tmp_path) as server, server.client("ann") as ann:
        with ann.stream("GET", "/v1/now/stream") as answer:
            lines = answer.iter_lines()
            assert events(lines, 1)
            server.yard.tokens.revoke("ann")
            submitted(server.client("ben"), "SELECT 1")  # something to tell
            told = list(lines)
        assert any("revoked" in line for line in told)

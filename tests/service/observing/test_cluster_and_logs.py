"""Nodes, the policy in force and the log: what each token may see of them."""

from __future__ import annotations

import logging

import pytest
from waiting import wait_until

from queryard.backends.protocol import NodeNote
from queryard.live.overview import ClusterView, NodeGlance
from queryard.service.http import models_observing_past as models
from queryard.service.logs import log
from queryard.service.observing.cluster import cluster_document
from queryard.service.observing.log_ring import KEPT, LogRing, log_document
from service.http.test_queries import submitted
from service.observing.test_now import finish_all


def test_nodes_tell_their_slots_and_the_queries_that_are_seen(server, ann, eve, root):
    query = submitted(ann, "SELECT count(*) FROM range(100000000000) r WHERE r.range % 3 = 1")
    try:
        wait_until(lambda: ann.get("/v1/now").json()["running"], 20)
        own = ann.get("/v1/cluster").json()
        models.Cluster.model_validate(own)
        assert own["backend"] == "local"
        assert sum(node["slots"] for node in own["nodes"]) == 2
        assert any(node["busy"] for node in own["nodes"])
        assert all(0 <= node["free_bytes"] <= node["memory_bytes"] for node in own["nodes"])
        assert any(query in node["running"] for node in own["nodes"])
        other = eve.get("/v1/cluster")
        assert query not in other.text
        assert any(node["running_others"] for node in other.json()["nodes"])
        assert query in root.get("/v1/cluster").text
    finally:
        finish_all(server)


NOTES = {"a": NodeNote("10.0.0.5", 0.1, 14), "b": NodeNote("10.0.0.6", 12.0)}
REFUSED = ("node 5be1a077 at 10.0.0.7: it has duckdb 2.0.1 in place of 2.0.0",)


def test_nodes_that_do_not_answer_are_suspect_and_drained_ones_told():
    cached = {"orders": (6, 8)}
    nodes = [
        NodeGlance(name, name, name == "c", 2, 1, 1.0, 9e8, 1e8, 0.0, (), cached, name == "b")
        for name in "abc"
    ]
    view = ClusterView(50.0, tuple(nodes), {})
    found = cluster_document(view, "ray", lambda query: True, True, NOTES, REFUSED)
    models.Cluster.model_validate(found)
    assert [node["state"] for node in found["nodes"]] == ["up", "suspect", "draining"]
    assert found["nodes"][0]["free_bytes"] == 800_000_000
    assert found["nodes"][0]["caches"] == {"task_outputs": 14, "splits_read": "orders 6 of 8"}
    assert [node["where"] for node in found["nodes"]] == ["10.0.0.5", "10.0.0.6", None]
    assert found["refused"] == list(REFUSED)


def test_a_node_that_rests_says_why_to_admins():
    node = NodeGlance("a", "a", False, 2, 1, 1.0, 9e8, 1e8, 0.0, (), resting="for 40 s: disk full")
    view = ClusterView(50.0, (node,), {})
    for is_admin, why in ((True, "for 40 s: disk full"), (False, None)):
        (found,) = cluster_document(view, "ray", lambda query: True, is_admin)["nodes"]
        assert (found["state"], found["resting"]) == ("resting", why)


def test_where_nodes_are_and_why_some_take_no_part_is_for_admins():
    node = NodeGlance("a", "a", False, 2, 1, 1.0, 9e8, 1e8, 0.0, ())
    view = ClusterView(50.0, (node,), {})
    found = cluster_document(view, "ray", lambda query: False, False, NOTES, REFUSED)
    models.Cluster.model_validate(found)
    assert "10.0.0" not in str(found)


def test_the_policy_and_its_changes_are_told(server, ann, root):
    before = root.get("/v1/scheduler").json()["policy"]["name"]
    server.yard.session.use_profile("fair", by="root", reason="web floods the queue")
    wait_until(lambda: root.get("/v1/scheduler").json()["policy"]["name"] == "fair", 20)
    found = root.get("/v1/scheduler").json()
    models.SchedulerState.model_validate(found)
    assert found["policy"]["by"] == "root"
    assert found["changes"][0]["from"] == before
    assert found["changes"][0]["to"] == "fair"
    assert found["changes"][0]["reason"] == "web floods the queue"
    assert found["profile"]["name"] == "fair"
    told = ann.get("/v1/scheduler")
    models.SchedulerState.model_validate(told.json())
    assert told.json()["policy"]["name"] == "fair"
    assert "web" not in told.text
    assert "web" not in ann.get("/v1/now").text
    assert root.get("/v1/now").json()["policy"]["reason"] == "web floods the queue"


def test_the_log_is_for_admins(server, ann, root):
    log("something happened", query="q-1", tenant="sales", secret_field="Bearer qy_0123456789")
    assert ann.get("/v1/logs").status_code == 403
    found = root.get("/v1/logs").json()
    models.Logs.model_validate(found)
    line = found["lines"][-1]
    assert (line["event"], line["query"], line["tenant"]) == ("something happened", "q-1", "sales")
    assert "0123456789" not in root.get("/v1/logs").text
    assert root.get("/v1/logs", params={"after": found["last"]}).json()["lines"] == []
    log("another thing")
    (next_line,) = root.get("/v1/logs", params={"after": found["last"]}).json()["lines"]
    assert next_line["seq"] == found["last"] + 1


@pytest.fixture
def ring():
    made = LogRing(redacts=False)
    made.attach()
    yield made
    made.detach()


def test_the_log_keeps_the_last_lines_and_reads_on_where_it_was(ring):
    for number in range(KEPT + 50):
        log(f"event {number}", logging.WARNING if number % 10 == 0 else logging.INFO, n=number)
    lines, last = ring.lines(None, "info", 10**6)
    assert len(lines) == KEPT
    assert [line.seq for line in lines] == list(range(last - KEPT + 1, last + 1))
    seen, after = [], 0
    while True:
        found = log_document(*ring.lines(after, "info", 700))
        if not found["lines"]:
            break
        seen += [line["seq"] for line in found["lines"]]
        after = found["last"]
    assert seen == [line.seq for line in lines]
    warnings, _ = ring.lines(None, "warning", 10**6)
    assert {line.level for line in warnings} == {"warning"}


def test_a_reader_misses_no_line_of_a_server_that_was_started_again(ring):
    for number in range(20):
        log(f"before {number}")
    _, last = ring.lines(None, "info", 10)
    after = LogRing(redacts=False)
    after.attach()
    try:
        log("the first line after it")
        for seen in (last, last + 10**12):  # or the clock was set back meanwhile
            (line,) = after.lines(seen, "info", 10)[0]
            assert line.event == "the first line after it"
    finally:
        after.detach()


def test_levels_that_are_not_kept_are_refused(root):
    assert root.get("/v1/logs", params={"level": "debug"}).status_code == 422


def test_errors_are_told_without_values_where_the_server_redacts():
    for redacts in (True, False):
        ring = LogRing(redacts)
        ring.attach()
        try:
            raise ValueError("Ann's number is 42")
        except ValueError:
            logging.getLogger("queryard.service.http").exception("GET / failed")
        finally:
            ring.detach()
        (line,) = ring.lines(None, "info", 10)[0]
        assert ("42" in line.text) != redacts
        assert "ValueError" in line.text

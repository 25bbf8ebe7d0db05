"""Statements that are run to explain others are queries as any: listed, counted, and stopped."""

from __future__ import annotations

import socket

from waiting import wait_until

from queryard.service.config import ServiceLimits
from service.http.serving import a_server
from service.http.test_queries import LONG, submitted


def asked(server, path: str, body: str) -> socket.socket:
    """A connection that has sent a request, and does not read."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    connection = socket.create_connection((host, int(port)))
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.secrets['ann']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    connection.sendall((head + body).encode())
    return connection


def test_an_analysis_is_listed_counted_and_stopped_with_its_client(tmp_path):
    limits = ServiceLimits(open_results=20)
    body = f'{{"sql": "{LONG}", "analyze": true}}'
    with a_server(tmp_path, limits=limits) as server, server.client("ann") as ann:
        # More than there are threads for short requests.
        asking = [asked(server, "/v1/explain", body) for _ in range(18)]
        wait_until(lambda: len(server.yard.active()) == 18, 40)
        assert server.yard.usage.open_results == 18
        listed = ann.get("/v1/queries").json()["queries"]
        assert len(listed) == 18
        assert all("EXPLAIN (ANALYZE" in each["sql"] for each in listed)
        with server.client("eve") as eve:
            assert eve.get("/v1/queries").json()["queries"] == []
            answer = eve.post("/v1/queries", params={"wait": 20}, json={"sql": "SELECT 42"})
            assert answer.json()["first_rows"] == [[42]]
        stopped = ann.delete(f"/v1/queries/{listed[0]['id']}")
        assert stopped.status_code == 200
        for connection in asking:
            connection.close()
        wait_until(lambda: not server.yard.active(), 40)
        usage = server.yard.usage
        wait_until(lambda: usage.connections == usage.open_results == 0, 40)


def test_a_client_that_leaves_is_no_error_of_the_server(tmp_path):
    with a_server(tmp_path) as server, server.client("root") as root:
        analysis = asked(server, "/v1/explain", f'{{"sql": "{LONG}", "analyze": true}}')
        query = asked(server, "/v1/queries?wait=20", f'{{"sql": "{LONG}"}}')
        wait_until(lambda: len(server.yard.active()) == 2)
        analysis.close()
        query.close()
        counted = 'queryard_http_responses_total{method="POST",status="499"} 2.0'
        wait_until(lambda: counted in root.get("/metrics").text)
        assert 'status="500"' not in root.get("/metrics").text


def test_an_analysis_is_refused_beyond_the_open_results(tmp_path):
    limits = ServiceLimits(open_results=1)
    with a_server(tmp_path, limits=limits) as server, server.client("ann") as ann:
        query = submitted(ann, LONG)
        refused = ann.post("/v1/explain", json={"sql": "SELECT 1", "analyze": True})
        assert refused.status_code == 429
        assert "open_results" in refused.json()["detail"]
        described = ann.post("/v1/describe", json={"sql": "SELECT 1 AS a"})
        assert described.json()["columns"] == [{"name": "a", "type": "INTEGER"}]
        ann.delete(f"/v1/queries/{query}")
        wait_until(lambda: server.yard.usage.open_results == 0)
        assert ann.post("/v1/estimate", json={"sql": "SELECT 1"}).status_code == 200
        assert server.yard.usage.open_results == 0

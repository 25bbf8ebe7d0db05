"""Events of queries, provisional answers, and figures for Prometheus."""

from __future__ import annotations

import json
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from service.http.serving import a_server
from service.http.test_queries import LONG, submitted
from service.yard_ground import write_data


def events(lines):
    """Names and contents of server-sent events, as they come."""
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def test_a_query_tells_its_states_until_its_end(ann):
    query = submitted(ann, LONG)
    heard = []
    with ann.stream("GET", f"/v1/queries/{query}/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for told in events(answer.iter_lines()):
            heard.append(told)
            if len(heard) == 1:
                ann.delete(f"/v1/queries/{query}")
    assert heard[0][0] == "state"
    name, state = heard[-1]
    assert (name, state["id"], state["state"]) == ("end", query, "cancelled")


def test_the_server_tells_of_queries_that_a_token_may_see(server, ann):
    heard: dict[str, list[tuple[str, str]]] = {"ann": [], "eve": [], "root": []}
    ready = threading.Barrier(4)

    def listen(name: str) -> None:
        with server.client(name) as client, client.stream("GET", "/v1/events") as answer:
            for kind, state in events(answer.iter_lines()):
                if kind == "queries":
                    ready.wait(20)
                else:
                    heard[name].append((kind, state["sql"]))
                if kind == "ended" and state["sql"] == "SELECT 'the last'":
                    return

    threads = [threading.Thread(target=listen, args=(name,)) for name in heard]
    for thread in threads:
        thread.start()
    ready.wait(20)
    ann.post("/v1/queries", params={"wait": 20}, json={"sql": "SELECT 'of ann'"})
    with server.client("eve") as eve:
        last = {"sql": "SELECT 'the last'"}
        eve.post("/v1/queries", params={"wait": 20}, json=last)
        ann.post("/v1/queries", params={"wait": 20}, json=last)
    for thread in threads:
        thread.join(20)
    assert ("ended", "SELECT 'of ann'") in heard["ann"]
    assert ("submitted", "SELECT 'of ann'") in heard["root"]
    assert not [sql for _, sql in heard["eve"] if sql == "SELECT 'of ann'"]


def test_streams_of_events_end_with_their_token(tmp_path):
    with a_server(tmp_path) as server, server.client("ann") as ann, server.client("ben") as ben:
        query = submitted(ben, LONG)
        ahead = {"Accept": "text/event-stream"}
        online = submitted(ben, "SELECT count(*) FROM numbers a, numbers b", online=True)
        with (
            ann.stream("GET", "/v1/events") as every,
            ann.stream("GET", f"/v1/queries/{query}/events") as one,
            ann.stream("GET", f"/v1/queries/{online}/answers", headers=ahead) as answers,
        ):
            lines = every.iter_lines()
            assert next(events(lines))[0] == "queries"
            server.yard.tokens.revoke("ann")
            server.yard.tokens.add("ann", "sales")  # another one of the same name
            submitted(ben, "SELECT 'for others'")  # something to tell
            ben.delete(f"/v1/queries/{query}")
            ben.delete(f"/v1/queries/{online}")
            told = []
            for each in events(lines):
                told.append(each)
                assert "for others" not in str(each)
            for last in (told[-1], list(events(one.iter_lines()))[-1]):
                assert last == ("end", {"reason": "the token was revoked or changed"})
            last = list(events(answers.iter_lines()))[-1]
            assert last == ("end", {"reason": "the token was revoked or changed"})


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A server with a table of enough blocks to estimate from."""
    folder = tmp_path_factory.mktemp("large")
    (folder / "data").mkdir()
    write_data(folder / "data")
    rows = 400_000
    values = {"g": [n % 3 for n in range(rows)], "x": [float(n % 101) for n in range(rows)]}
    pq.write_table(pa.table(values), folder / "data" / "large.parquet", row_group_size=2_000)
    with a_server(folder) as made:
        yield made


SUMS = "SELECT g, avg(x) AS a FROM large GROUP BY g ORDER BY g"


def test_provisional_answers_come_one_after_another(large):
    with large.client("ann") as ann:
        query = submitted(ann, SUMS, online={"every": 0})
        path = f"/v1/queries/{query}/answers"
        found = ann.get(path, params={"wait": 20}).json()
        assert found["reason"] == ""
        answer = found["answer"]
        assert [column["name"] for column in answer["columns"]] == ["g", "a"]
        assert 0 < answer["fraction"] <= 1
        assert len(answer["rows"]) == 3
        if not answer["exact"]:
            assert len(answer["low"]["a"]) == 3
        with ann.stream("GET", path, headers={"Accept": "text/event-stream"}) as stream:
            heard = list(events(stream.iter_lines()))
        assert heard[-1][0] == "end"
        assert heard[-1][1]["ended"]
        number = heard[-1][1]["number"]
        arrow = ann.get(path, params={"format": "arrow"})
        table = pa.ipc.open_stream(arrow.content).read_all()
        told = json.loads(table.schema.metadata[b"queryard:answer"])
        assert told["number"] == number
        assert table.num_rows == 3
        assert ann.get(path, params={"after": number}).json()["answer"] is None
        rows = ann.get(f"/v1/queries/{query}/rows").json()["rows"]
        assert [row[0] for row in rows] == [0, 1, 2]
        assert rows[0][1] == pytest.approx(50, abs=0.5)


def test_what_cannot_be_estimated_has_its_answer_in_its_rows(large):
    with large.client("ann") as ann:
        query = submitted(ann, "SELECT count(*) AS c FROM small", online=True)
        ann.get(f"/v1/queries/{query}", params={"wait": 20})
        found = ann.get(f"/v1/queries/{query}/answers", params={"wait": 20}).json()
        assert found["ended"]
        assert found["in_rows"]
        assert found["reason"]
        assert ann.get(f"/v1/queries/{query}/rows").json()["rows"] == [[3]]
        plain = submitted(ann, "SELECT 1")
        assert ann.get(f"/v1/queries/{plain}/answers").status_code == 422
        csv = {"format": "csv"}
        assert ann.get(f"/v1/queries/{query}/answers", params=csv).status_code == 406


def test_figures_are_for_admins_and_name_tenants(server, ann):
    ann.post("/v1/queries", params={"wait": 20}, json={"sql": "SELECT sum(n) FROM numbers"})
    ann.post("/v1/queries", params={"wait": 20}, json={"sql": "SELECT 1", "tenant": "sales/a/b/c"})
    running = submitted(ann, LONG)
    assert ann.get("/metrics").status_code == 403
    with server.client("root") as root:
        answer = root.get("/metrics")
    ann.delete(f"/v1/queries/{running}")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    figures = dict(line.rsplit(" ", 1) for line in lines)
    assert float(figures['queryard_queries_ended_total{outcome="finished",tenant="sales"}']) >= 2
    assert float(figures['queryard_query_response_seconds_count{tenant="sales"}']) >= 2
    assert float(figures['queryard_queries{state="waiting",tenant="web"}']) == 0
    states = ("waiting", "running")
    ours = [figures[f'queryard_queries{{state="{state}",tenant="sales"}}'] for state in states]
    assert sum(map(float, ours)) >= 1
    assert float(figures["queryard_slots"]) == 2
    assert 'tenant="sales/a' not in answer.text
    assert float(figures["queryard_memory_budget_bytes"]) > 1e8
    assert "process_resident_memory_bytes" in answer.text

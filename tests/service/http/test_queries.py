"""Queries over HTTP: what comes back, in which format, and what is said when it does not."""

from __future__ import annotations

import datetime as dt
import io
import json
import time
from dataclasses import replace

import duckdb
import pyarrow as pa
import pyarrow.csv
import pytest
from waiting import wait_until

from queryard.engine.sealing.access import Access
from queryard.service.config import ServiceLimits
from queryard.service.http import context
from service.http.serving import a_server
from service.yard_ground import ROWS

ARROW = {"Accept": "application/vnd.apache.arrow.stream"}
LONG = "SELECT count(*) FROM range(100000000) a, range(1000) b"


def submitted(client, sql: str, **more) -> str:
    answer = client.post("/v1/queries", json={"sql": sql, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def read_arrow(content: bytes) -> pa.Table:
    return pa.ipc.open_stream(content).read_all()


def test_a_query_is_answered_with_its_id_at_once_and_with_its_state_later(ann):
    answer = ann.post("/v1/queries", json={"sql": "SELECT sum(n) AS s FROM numbers"})
    query = answer.json()["id"]
    assert answer.headers["location"] == f"/v1/queries/{query}"
    state = ann.get(f"/v1/queries/{query}", params={"wait": 20}).json()
    assert (state["state"], state["progress"], state["rows"]) == ("finished", 1.0, 1)
    assert state["columns"] == [{"name": "s", "type": "HUGEINT"}]
    assert state["timing"]["ended_s"] >= state["timing"]["submitted_s"]
    assert state["why"]["text"].startswith(f"{query} finished after")
    rows = ann.get(f"/v1/queries/{query}/rows").json()
    assert rows["rows"] == [[sum(range(ROWS))]]
    assert rows["next"] is None


def test_waiting_brings_the_first_rows(ann):
    found = ann.post(
        "/v1/queries", params={"wait": 20}, json={"sql": "SELECT * FROM small ORDER BY a"}
    ).json()
    assert found["first_rows"] == [[1, "x"], [2, None], [3, "z"]]
    assert found["next"] is None
    assert found["state"] == "finished"


def test_the_quick_way_answers_as_the_usual_one_does(ann):
    """A plain submission does not pass FastAPI's routing; another type of the same body does."""

    def post(kind: str, body: str, wait: str):
        return ann.post("/v1/queries", params={"wait": wait}, content=body, headers=kind_of(kind))

    def kind_of(kind: str) -> dict[str, str]:
        return {"Content-Type": kind}

    for body in (
        '{"sql": "SELECT a FROM small ORDER BY a"}',
        '{"sql": "SELECT ? + 1 AS n", "parameters": [41]}',
        '{"sql": "SELECT no_column FROM small"}',
        '{"sql": 1}',
        '{"sql": "SELECT 1", "other": 2}',
        '{"sql": "SELECT 1"',
        "[]",
        "",
    ):
        quick, usual = (
            post(kind, body, "20") for kind in ("application/json", "application/json; a=b")
        )
        assert quick.status_code == usual.status_code
        told = [each.json() for each in (quick, usual)]
        assert told[0].get("detail") == told[1].get("detail")
        assert told[0].get("first_rows") == told[1].get("first_rows")
        assert told[0].keys() == told[1].keys()
    assert post("application/json", '{"sql": "SELECT 1"}', "1e9").status_code == 422


@pytest.mark.parametrize(
    ("status", "sql", "headers", "limits"),
    [
        (401, "SELECT 1", {"Authorization": ""}, {}),
        (401, "SELECT 1", {"Authorization": "Bearer qy_nothing"}, {}),
        (403, "ATTACH 'other.duckdb'", {}, {}),
        (406, "SELECT 1", {"Accept": "image/png"}, {}),
        (413, f"SELECT '{'x' * 2000}'", {}, {"request_bytes": 1000}),
        (429, "SELECT 1", {}, {"open_results": 0}),
        (429, "SELECT 1", {}, {"connections_per_token": 0}),
        (200, "SELECT 7 AS a", {"Accept": "application/json"}, {}),
        (200, "SELECT 7 AS a", {"Accept": "text/csv"}, {}),
        (200, "SELECT 7 AS a", ARROW, {}),
    ],
)
def test_the_quick_way_refuses_and_formats_as_the_usual_one_does(
    ann, server, monkeypatch, status, sql, headers, limits
):
    monkeypatch.setattr(server.yard.usage, "limits", ServiceLimits(**limits))
    kinds = ("application/json", "application/json; a=b")
    quick, usual = (
        ann.post(
            "/v1/queries",
            params={"wait": 20},
            content=json.dumps({"sql": sql}),
            headers={**headers, "Content-Type": kind},
        )
        for kind in kinds
    )
    assert (quick.status_code, usual.status_code) == (status, status)
    # Rows that take longer than a moment come in pieces.
    of_its_own = {"location", "queryard-query", "date", "content-length", "transfer-encoding"}
    told = [
        {name: value for name, value in each.headers.items() if name not in of_its_own}
        for each in (quick, usual)
    ]
    assert told[0] == told[1]
    if status == 200 and "json" in quick.headers["content-type"]:
        assert quick.json()["first_rows"] == usual.json()["first_rows"] == [[7]]
    elif status == 200:
        assert quick.content == usual.content
    else:
        assert quick.json() == usual.json()


def test_a_client_that_asks_again_and_again_leaves_nothing_behind(ann, server):
    query = submitted(ann, LONG)
    ticket = server.yard.session.host.query(query)
    calls = len(ticket._told)
    for _ in range(3):
        ann.get(f"/v1/queries/{query}", params={"wait": 0.01})
    assert len(ticket._told) == calls
    assert ann.delete(f"/v1/queries/{query}").status_code == 200


def test_of_many_rows_only_the_first_come_along(ann):
    sql = "SELECT n FROM numbers ORDER BY n"
    found = ann.post("/v1/queries", params={"wait": 20}, json={"sql": sql}).json()
    first = found["first_rows"]
    assert first == [[n] for n in range(len(first))]
    assert found["next"] == len(first) < ROWS
    rest = ann.get(f"/v1/queries/{found['id']}/rows", params={"start": found["next"]}).json()
    assert [*first, *rest["rows"]] == [[n] for n in range(ROWS)]


def test_waiting_for_arrow_brings_all_rows(ann):
    sql = "SELECT n, t FROM numbers ORDER BY n"
    for wanted in (sql, "SELECT 42 AS n", "SELECT n FROM numbers WHERE n < 0"):
        answer = ann.post("/v1/queries", params={"wait": 20}, json={"sql": wanted}, headers=ARROW)
        table = read_arrow(answer.content)
        rows = {sql: ROWS, "SELECT 42 AS n": 1}.get(wanted, 0)
        assert table.num_rows == rows
        assert answer.headers["queryard-query"]
    assert json.loads(table.schema.metadata[b"queryard:types"]) == ["BIGINT"]


def test_too_short_a_wait_brings_the_state(ann):
    answer = ann.post("/v1/queries", params={"wait": 0.05}, json={"sql": LONG})
    assert answer.status_code == 201
    query = answer.json()["id"]
    assert ann.get(f"/v1/queries/{query}").json()["state"] in ("waiting", "running")
    assert ann.get(f"/v1/queries/{query}/rows", params={"wait": 0}).status_code == 202
    assert ann.delete(f"/v1/queries/{query}").status_code == 200
    state = ann.get(f"/v1/queries/{query}", params={"wait": 10}).json()
    assert state["state"] == "cancelled"
    assert state["error"]["type"] == "urn:queryard:problem:cancelled"
    assert ann.get(f"/v1/queries/{query}/rows").status_code == 409


TYPES = """
SELECT 1::UTINYINT AS tiny, -5::BIGINT AS big, 170141183460469231731687303715884105727 AS huge,
    1.50::DECIMAL(9, 2) AS dec, 0.1::FLOAT AS f, 1e300::DOUBLE AS d, true AS b, 'é "q", \n' AS t,
    DATE '2026-11-18' AS day, TIMESTAMP '2026-11-18 01:02:03.5' AS at, INTERVAL '1' MONTH AS i,
    [1, NULL] AS l, {'a': 1, 'b': 'x'} AS s, 'x'::ENUM ('x', 'y') AS e, '\\xAA'::BLOB AS bl,
    NULL AS n
UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL
"""


def test_all_formats_have_the_values_of_duckdb(ann):
    query = submitted(ann, TYPES)
    expected = duckdb.sql(TYPES).fetchall()
    table = read_arrow(ann.get(f"/v1/queries/{query}/rows", headers=ARROW).content)
    assert table.num_rows == 2
    assert table.column("t").to_pylist() == [expected[0][7], None]
    assert table.column("e").to_pylist() == ["x", None]
    assert table.column("l").to_pylist() == [[1, None], None]
    found = ann.get(f"/v1/queries/{query}/rows", params={"format": "json"}).json()
    assert [column["type"] for column in found["columns"]] == [
        str(kind).strip('"') for kind in duckdb.sql(TYPES).types
    ]
    first, second = found["rows"]
    assert first[:2] == [1, -5]
    assert first[2] == 2**127 - 1
    assert first[3:7] == [1.5, 0.1, 1e300, True]
    assert first[7] == 'é "q", \n'
    assert first[8:11] == ["2026-11-18", "2026-11-18 01:02:03.500000", "1 month"]
    assert first[11:14] == [[1, None], {"a": 1, "b": "x"}, "x"]
    assert second == [None] * 16
    csv = ann.get(f"/v1/queries/{query}/rows", headers={"Accept": "text/csv"})
    assert csv.headers["content-type"].startswith("text/csv")
    read = pyarrow.csv.read_csv(
        io.BytesIO(csv.content), parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True)
    )
    assert read.column("t").to_pylist()[0] == 'é "q", \n'


def test_parts_of_rows_in_each_format(ann):
    query = submitted(ann, "SELECT n FROM numbers ORDER BY n")
    part = {"start": 10, "limit": 3}
    path = f"/v1/queries/{query}/rows"
    found = ann.get(path, params=part).json()
    assert (found["rows"], found["start"], found["next"]) == ([[10], [11], [12]], 10, 13)
    assert ann.get(path, params={**part, "format": "csv"}).text == "10\n11\n12\n"
    with_names = ann.get(path, params={**part, "format": "csv", "header": True}).text
    assert with_names == "n\n10\n11\n12\n"
    table = read_arrow(ann.get(path, params={**part, "format": "arrow"}).content)
    assert table.column("n").to_pylist() == [10, 11, 12]
    beyond = ann.get(path, params={"start": ROWS + 5}).json()
    assert (beyond["rows"], beyond["next"]) == ([], None)


def test_parameters_have_the_types_that_json_lacks(ann):
    sql = "SELECT $1 AS a, $2 + INTERVAL 1 DAY AS d, $3 AS x, $4 AS m, $5 AS l, $6 AS n"
    given = [
        5,
        {"@type": "DATE", "value": "2026-11-18"},
        {"@type": "BLOB", "value": "qg=="},
        {"@type": "DECIMAL", "value": "1.50"},
        [1, 2],
        None,
    ]
    query = submitted(ann, sql, parameters=given)
    table = read_arrow(ann.get(f"/v1/queries/{query}/rows", headers=ARROW).content)
    row = table.to_pylist()[0]
    assert row["a"] == 5
    assert row["d"] == dt.datetime(2026, 11, 19)
    assert row["x"] == b"\xaa"
    assert str(row["m"]) == "1.50"
    assert row["l"] == [1, 2]
    named = ann.post(
        "/v1/queries", params={"wait": 20}, json={"sql": "SELECT $a + 1", "parameters": {"a": 41}}
    )
    assert named.json()["first_rows"] == [[42]]


@pytest.mark.parametrize(
    ("body", "status", "kind", "part"),
    [
        ({"sql": "SELECT * FROM nowhere"}, 422, "unknown-name", "There are: numbers, small"),
        ({"sql": "SELEC 1"}, 422, "syntax", "syntax error"),
        ({"sql": "SELECT 'a'::INTEGER"}, 422, "conversion", "Could not convert"),
        ({"sql": "SELECT ?"}, 422, "wrong-parameters", "1 parameter"),
        ({"sql": "SELECT $1", "parameters": [{"x": 1}]}, 422, "invalid-request", "@type"),
        ({"sql": "SELECT 1", "parameters": 5}, 422, "invalid-request", "parameters"),
        ({"sql": "SELECT 1", "parameter": []}, 422, "invalid-request", "parameter"),
        ({}, 422, "invalid-request", "sql: field required"),
        ({"sql": ""}, 403, "not-allowed", "no statement"),
        ({"sql": "BEGIN"}, 403, "needs-session", "state of a session"),
        ({"sql": "COPY small TO 'x.csv'"}, 403, "not-allowed", "COPY"),
        ({"sql": "SELECT 1", "tenant": "web"}, 403, "not-allowed", "not below"),
        ({"sql": "SELECT 1", "tenant": "sales/\ud800"}, 422, "invalid-request", "tenant: input"),
        ({"sql": "SELECT 1", "tenant": "sales/" + "x" * 999}, 422, "invalid-request", "tenant"),
        ({"sql": "SELECT 1", "idempotency_key": "\ud800"}, 422, "invalid-request", "unicode"),
        ({"sql": "\ud800"}, 422, "failed", "no valid text"),
        ({"sql": "SELECT 1\0 WHERE false"}, 422, "syntax", "the character 0 at position 8"),
        ({"sql": "SELECT 1", "deadline": "soon"}, 422, "invalid", "deadline"),
        ({"sql": "SELECT 1", "time_limit": -1}, 422, "invalid", "time_limit"),
        ({"sql": "SELECT 1", "memory": "9 PB"}, 422, "invalid", "memory"),
        ({"sql": "SELECT 1", "online": {"stop_at": 5}}, 422, "invalid", "stop_at"),
        ({"sql": "SELECT 1", "online": {"groups": [{"a": 1}]}}, 422, "invalid", "groups: must be"),
        ({"sql": "SELECT 1", "online": {"groups": "a"}}, 422, "invalid-request", "groups"),
        ({"sql": "SELECT 1", "online": {"measure": "f"}}, 422, "invalid-request", "measure"),
        ({"sql": "SELECT 1", "session": "no"}, 404, "not-found", "POST /v1/sessions"),
        ({"sql": LONG, "time_limit": 0.1}, 422, "timed-out", "time limit"),
    ],
)
def test_problems_say_what_is_wrong(ann, body, status, kind, part):
    content = json.dumps(body)  # httpx refuses to write what is no valid text
    sent = {"content": content, "headers": {"Content-Type": "application/json"}}
    answer = ann.post("/v1/queries", params={"wait": 20}, **sent)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["type"] == f"urn:queryard:problem:{kind}"
    assert problem["status"] == status
    assert part in problem["detail"]
    assert "Traceback" not in answer.text


def test_unknown_formats_paths_methods_and_bodies(ann):
    query = submitted(ann, "SELECT 1")
    path = f"/v1/queries/{query}/rows"
    assert ann.get(path, params={"format": "xml"}).status_code == 406
    assert ann.get(path, headers={"Accept": "image/png"}).status_code == 406
    assert ann.get(path, params={"start": -1}).status_code == 422
    for answer in (
        ann.get("/v1/nothing"),
        ann.put("/v1/queries", json={}),
        ann.post("/v1/queries", content=b"{"),
        ann.post("/v1/queries", content=b"\xff\xfe"),
    ):
        assert 400 <= answer.status_code < 500
        assert answer.headers["content-type"] == "application/problem+json"
    sent = {"content": b'{"sql": "\xe9"}', "headers": {"Content-Type": "application/json"}}
    assert "no JSON in UTF-8" in ann.post("/v1/queries", **sent).json()["detail"]
    sent["headers"]["Content-Encoding"] = "gzip"
    assert "has the encoding 'gzip'" in ann.post("/v1/queries", **sent).json()["detail"]


def test_a_token_is_needed(server):
    with server.client(None) as stranger:
        for path in ("/v1/queries", "/v1/tables", "/metrics", "/nothing"):
            answer = stranger.get(path)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
        wrong = {"Authorization": "Bearer qy_wrong"}
        assert stranger.get("/v1/queries", headers=wrong).status_code == 401
        assert stranger.get("/v1/queries", headers={"Authorization": "Basic x"}).status_code == 401
        assert stranger.get("/healthz").json()["status"] == "ok"
        assert stranger.get("/readyz").json()["status"] == "ok"
        assert stranger.get("/openapi.json").status_code == 200


def test_the_same_key_is_the_same_query(ann):
    first = submitted(ann, "SELECT 17", idempotency_key="key")
    assert submitted(ann, "SELECT 17", idempotency_key="key") == first
    other = ann.post("/v1/queries", json={"sql": "SELECT 18", "idempotency_key": "key"})
    assert other.status_code == 422
    found = ann.post(
        "/v1/queries", params={"wait": 9}, json={"sql": "SELECT 17", "idempotency_key": "key"}
    )
    assert found.json()["first_rows"] == [[17]]


def test_other_tenants_see_nothing(server, ann):
    query = submitted(ann, "SELECT 1")
    ann.get(f"/v1/queries/{query}", params={"wait": 10})
    with server.client("eve") as eve, server.client("root") as root, server.client("ben") as ben:
        for path in ("", "/rows", "/events", "/answers", "/plan"):
            others = eve.get(f"/v1/queries/{query}{path}")
            unknown = eve.get(f"/v1/queries/abc-1{path}")
            assert others.status_code == unknown.status_code == 404
            assert others.text.replace(query, "abc-1") == unknown.text
        assert eve.delete(f"/v1/queries/{query}").status_code == 404
        assert query not in eve.get("/v1/queries").text
        for seer in (root, ben):
            assert seer.get(f"/v1/queries/{query}").status_code == 200
            assert query in seer.get("/v1/queries").text
        time.sleep(0.5)  # the history is written in the background
        assert query in ann.get("/v1/history").text
        assert ann.get(f"/v1/history/{query}").json()["outcome"] == "finished"
        assert query not in eve.get("/v1/history").text
        assert eve.get("/v1/history", params={"tenant": "sales"}).json()["queries"] == []
        assert eve.get(f"/v1/history/{query}").status_code == 404
        assert query in root.get("/v1/history").text


def test_reasons_do_not_name_other_tenants(server, ann):
    with server.client("eve") as eve:
        running = [submitted(ann, f"{LONG} WHERE b.range > {place}") for place in range(3)]
        waiting = submitted(eve, LONG)
        time.sleep(0.2)
        state = eve.get(f"/v1/queries/{waiting}").text
        for query in running:
            assert query not in state
            ann.delete(f"/v1/queries/{query}")
        assert "sales" not in state
        eve.delete(f"/v1/queries/{waiting}")


def test_a_session_whose_grants_change_is_closed(tmp_path):
    with a_server(tmp_path) as server, server.client("ann") as ann:
        session = ann.post("/v1/sessions", json={}).json()["id"]
        yard = server.yard
        grants = {"sales": Access(frozenset({"small"}), sealed=True)}
        yard.reload(replace(yard.config, grants=grants))
        answer = ann.post("/v1/queries", json={"sql": "SELECT 1", "session": session})
        assert answer.status_code == 404
        assert "grants changed" in answer.json()["detail"]
        assert "POST /v1/sessions" in answer.json()["detail"]
        refused = ann.post("/v1/queries?wait=20", json={"sql": "SELECT * FROM numbers"})
        assert "numbers" in refused.json()["detail"]


def test_sessions_have_a_state_of_their_own(server, ann):
    session = ann.post("/v1/sessions", json={"label": "work"}).json()["id"]

    def run(sql: str, client=ann):
        body = {"sql": sql, "session": session}
        return client.post("/v1/queries", params={"wait": 20}, json=body)

    assert run("CREATE TEMP TABLE mine AS SELECT 5 AS five").status_code == 200
    assert run("SELECT five FROM mine").json()["first_rows"] == [[5]]
    nothing = ann.post("/v1/queries", params={"wait": 20}, json={"sql": "SELECT five FROM mine"})
    assert nothing.status_code == 422
    with server.client("ben") as ben:
        assert run("SELECT five FROM mine", ben).status_code == 404
        assert ben.get("/v1/sessions").json()["sessions"] == []
    assert [each["label"] for each in ann.get("/v1/sessions").json()["sessions"]] == ["work"]
    assert ann.delete(f"/v1/sessions/{session}").status_code == 204
    assert run("SELECT 1").status_code == 404
    assert ann.post("/v1/sessions", json={"tenant": "web"}).status_code == 403
    assert server.yard.usage.connections == 0


def test_statements_can_be_described_explained_and_estimated(ann):
    body = {"sql": "SELECT n, t FROM numbers WHERE n > $1", "parameters": [5]}
    described = ann.post("/v1/describe", json=body).json()
    assert [column["name"] for column in described["columns"]] == ["n", "t"]
    assert len(described["parameters"]) == 1
    explained = ann.post("/v1/explain", json={**body, "analyze": True}).json()
    assert explained["plan"] == "native"
    assert explained["jobs"]
    assert ann.post("/v1/estimate", json=body).json()["work_s"]["value"] > 0
    assert ann.post("/v1/describe", json={"sql": "SELECT x FROM numbers"}).status_code == 422


def test_tables_tenants_profiles_and_the_token_itself(server, ann):
    tables = ann.get("/v1/tables").json()["tables"]
    assert [table["name"] for table in tables] == ["numbers", "small"]
    assert ann.get("/v1/tables/small").json()["rows"] == 3
    assert ann.get("/v1/tables/smal").json()["detail"].startswith("unknown table 'smal'; did you")
    new = server.yard.session.catalog.place / "zebras.csv"
    new.write_text("a\n1\n")
    assert ann.get("/v1/tables/zebras").json()["name"] == "zebras"
    new.unlink()
    assert ann.get("/v1/tables/zebras").status_code == 404
    assert [tenant["name"] for tenant in ann.get("/v1/tenants").json()["tenants"]] == ["sales"]
    assert ann.get("/v1/profiles").json()["current"] == {"name": "marshal"}
    assert ann.put("/v1/profiles/current", json={"profile": "fair"}).status_code == 403
    assert ann.get("/v1/whoami").json()["tenant"] == "sales"
    with server.client("root") as root:
        names = [tenant["name"] for tenant in root.get("/v1/tenants").json()["tenants"]]
        assert {"ops", "sales", "web"} <= set(names)
        assert root.put("/v1/profiles/current", json={"profile": "fair"}).status_code == 200
        assert root.get("/v1/profiles").json()["current"]["name"] == "fair"
        assert root.put("/v1/profiles/current", json={"profile": "fiar"}).status_code == 422
        root.put("/v1/profiles/current", json={"profile": "marshal"})


def test_granted_tables_only(tmp_path):
    grants = {"sales": Access(frozenset({"small"}), sealed=True)}
    with (
        a_server(tmp_path, grants=grants) as server,
        server.client("ann") as ann,
        server.client("eve") as eve,
    ):
        assert [table["name"] for table in ann.get("/v1/tables").json()["tables"]] == ["small"]
        assert ann.get("/v1/tables/numbers").status_code == 404
        assert len(eve.get("/v1/tables").json()["tables"]) == 2
        body = {"sql": "SELECT count(*) FROM numbers"}
        refused = ann.post("/v1/queries", params={"wait": 20}, json=body)
        assert refused.status_code in (403, 422)
        assert eve.post("/v1/queries", params={"wait": 20}, json=body).status_code == 200


def test_limits_are_told(tmp_path):
    limits = ServiceLimits(request_bytes=2000, statements_per_s=8, open_results=3)
    with a_server(tmp_path, limits=limits) as server, server.client("ann") as ann:
        large = ann.post("/v1/queries", json={"sql": f"SELECT '{'x' * 2000}'"})
        assert large.status_code == 413

        def pieces():
            for _ in range(30):
                yield b" " * 100

        assert ann.post("/v1/queries", content=pieces()).status_code == 413
        queries = [submitted(ann, LONG) for _ in range(3)]
        many = ann.post("/v1/queries", json={"sql": "SELECT 1"})
        assert many.status_code == 429
        assert "3 queries that run" in many.json()["detail"]
        for query in queries:
            ann.delete(f"/v1/queries/{query}")
        answers = [ann.post("/v1/queries", json={"sql": ""}) for _ in range(20)]
        assert all(answer.status_code == 403 for answer in answers), "not admitted, not counted"
        with server.client("eve") as eve:
            answers = [
                eve.post("/v1/queries", params={"wait": 9}, json={"sql": "SELECT 1"})
                for _ in range(20)
            ]
            refused = [answer for answer in answers if answer.status_code == 429]
            assert refused
            assert "8 statements per second" in refused[0].json()["detail"]
            assert int(refused[0].headers["retry-after"]) >= 1


def test_forecasts_are_those_of_queries_that_the_token_may_see(tmp_path):
    with (
        a_server(tmp_path) as server,
        server.client("ann") as ann,
        server.client("eve") as eve,
        server.client("root") as root,
    ):
        query = submitted(ann, LONG)

        def forecast_of(client) -> set[str]:
            told = client.get("/v1/forecasts").json()
            assert told["now_s"] > 0
            return {each["query"] for each in told["forecasts"]}

        wait_until(lambda: forecast_of(ann) == {query})
        assert forecast_of(root) == {query}
        assert forecast_of(eve) == set()
        ann.delete(f"/v1/queries/{query}")


def test_a_draining_server_is_not_ready_and_takes_no_queries(tmp_path):
    with a_server(tmp_path) as server, server.client("ann") as ann:
        query = submitted(ann, "SELECT n FROM numbers")
        server.yard.stop_admission("the server is about to stop")
        assert ann.get("/readyz").status_code == 503
        assert ann.get("/healthz").status_code == 200
        refused = ann.post("/v1/queries", json={"sql": "SELECT 1"})
        assert refused.status_code == 503
        assert "about to stop" in refused.json()["detail"]
        assert len(ann.get(f"/v1/queries/{query}/rows").json()["rows"]) == ROWS


def test_a_granted_database_is_written_and_no_other(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for name in ("shop", "other"):
        with duckdb.connect(str(data / f"{name}.duckdb")) as made:
            made.execute("CREATE TABLE things AS SELECT 1 AS n")
    grants = {"sales": Access(sealed=True, writes=frozenset({"shop"}))}
    with a_server(tmp_path, grants=grants) as server, server.client("ann") as ann:

        def run(sql: str, client=ann):
            return client.post("/v1/queries", params={"wait": 20}, json={"sql": sql})

        wrote = run("INSERT INTO shop.things SELECT 2 UNION ALL SELECT 3")
        assert wrote.status_code == 200, wrote.text
        assert (wrote.json()["returns"], wrote.json()["first_rows"]) == ("changes", [[2]])
        found = run("SELECT n FROM shop.things ORDER BY n").json()
        assert found["first_rows"] == [[1], [2], [3]]
        assert run("INSERT INTO other.things SELECT 2").status_code in (403, 422)
        with server.client("eve") as eve:
            assert run("INSERT INTO shop.things SELECT 9", eve).status_code in (403, 422)
        assert server.yard.usage.open_results == 0


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        (b'{"sql": ', "application/json", "the body is no valid JSON"),
        (b"SELECT 1", "text/plain", "has the type 'text/plain'"),
        (b'{"sql": "SELECT 1"}', "", "has no type"),
        (b"sql=SELECT+1", "application/x-www-form-urlencoded", "Content-Type: application/json"),
        (b"[1]", "application/json", "must be a JSON object"),
        (b"", "application/json", "has no body"),
    ],
)
def test_bodies_that_are_no_json_are_told(ann, content, kind, words):
    headers = {"Content-Type": kind} if kind else {}
    answer = ann.post("/v1/queries", content=content, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["type"] == "urn:queryard:problem:invalid-request"
    assert words in answer.json()["detail"]


def test_a_token_for_figures_reads_figures_only(server):
    server.secrets["prometheus"] = server.yard.tokens.add("prometheus", role="metrics")
    with server.client("prometheus") as scraper:
        assert scraper.get("/healthz").status_code == 200
        assert "queryard_slots" in scraper.get("/metrics").text
        for path in ("/v1/tables", "/v1/whoami", "/v1/queries"):
            answer = scraper.get(path)
            assert (answer.status_code, "role metrics" in answer.json()["detail"]) == (403, True)
    with server.client("ann") as user:
        answer = user.get("/metrics")
        assert (answer.status_code, "--role metrics" in answer.json()["detail"]) == (403, True)


def test_a_session_that_was_left_alone_makes_way(tmp_path, monkeypatch):
    # A request counts as a connection as well.
    limits = ServiceLimits(connections=4, connections_per_token=3, statements_per_s=1e6)
    with (
        a_server(tmp_path, limits=limits) as server,
        server.client("ann") as ann,
        server.client("eve") as eve,
    ):

        def opened(client) -> str:
            answer = client.post("/v1/sessions", json={})
            assert answer.status_code == 201, answer.text
            return answer.json()["id"]

        def run(client, session: str | None, sql: str) -> int:
            body = {"sql": sql, "session": session}
            return client.post("/v1/queries", params={"wait": 20}, json=body).status_code

        holds, free = opened(ann), opened(ann)
        assert run(ann, holds, "CREATE TEMP TABLE mine (n INTEGER)") == 200
        refused = ann.post("/v1/sessions", json={})
        assert (refused.status_code, refused.json()["title"]) == (429, "Too many connections")
        monkeypatch.setattr(context, "MAKES_WAY_S", 0.0)
        third = opened(ann)  # the one that holds nothing has made way
        assert [run(ann, name, "SELECT 1") for name in (holds, free, third)] == [200, 404, 200]
        # The server is full: those of others make way if they hold nothing.
        first = opened(eve)
        assert run(eve, first, "CREATE TEMP TABLE hers (n INTEGER)") == 200
        second = opened(eve)
        assert run(ann, third, "SELECT 1") == 404
        assert run(eve, second, "CREATE TEMP TABLE hers (n INTEGER)") == 200
        with server.client("ben") as ben:
            assert run(ben, None, "SELECT 1") == 200
        assert [run(ann, holds, "FROM mine"), run(eve, first, "FROM hers")] == [200, 200]


def test_sessions_that_were_left_alone_do_not_lock_a_token_out(tmp_path, monkeypatch):
    limits = ServiceLimits(connections=20, connections_per_token=3, statements_per_s=1e6)
    with a_server(tmp_path, limits=limits) as server, server.client("ann") as ann:
        principal = server.principal("ann")
        sessions = server.yard.making_way[0].__self__
        names = [sessions.open(principal, "")[0] for _ in range(3)]
        assert ann.get("/v1/whoami").status_code == 429
        monkeypatch.setattr(context, "MAKES_WAY_S", 0.0)
        assert ann.get("/v1/whoami").status_code == 200
        assert len(sessions.all(principal)) == 2
        assert names[0] not in dict(sessions.all(principal))
        client = server.yard.open(principal)  # of any protocol
        client.close()
        assert server.yard.usage.connections == 2

"""Rows are read from any position, in any pieces, though connections break; and freed in time."""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from contextlib import suppress
from itertools import islice

import duckdb
import httpx
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from waiting import wait_until

from queryard.service.config import ServiceLimits
from queryard.service.kept_rows import KeptRows
from service.http.serving import a_server
from service.http.test_queries import LONG, submitted

SQL = "SELECT n, t FROM numbers ORDER BY n"
# Hundreds of MB, of which only some can be on their way.
FLOOD = "SELECT a.n, repeat('x', 1000) AS t FROM numbers a, range(100) b"


def whole_batches(content: bytes) -> list[pa.RecordBatch]:
    """What can be read of a stream that was cut off."""
    found = []
    try:
        reader = pa.ipc.open_stream(content)
        while True:
            found.append(reader.read_next_batch())
    except (pa.ArrowInvalid, StopIteration, OSError):
        return found


def cut_off(server, path: str, after_bytes: int) -> bytes:
    """The beginning of an answer, of which a client takes so many bytes and then vanishes."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    secret = server.secrets["ann"]
    with socket.create_connection((host, int(port))) as connection:
        asked = (
            f"GET {path} HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n"
            "Accept: application/vnd.apache.arrow.stream\r\n\r\n"
        )
        connection.sendall(asked.encode())
        connection.settimeout(20)
        taken = b""
        while len(taken) < after_bytes and (part := connection.recv(65536)):
            taken += part
    return taken.partition(b"\r\n\r\n")[2]


@pytest.fixture(scope="module", params=["in memory", "in files"])
def rows_server(request, tmp_path_factory):
    """A server that keeps rows in memory, or all of them in files."""
    folder = tmp_path_factory.mktemp("rows")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "in files":
            patch.setattr("queryard.service.results.MOST_MEMORY_BYTES", 0)
        with a_server(folder, limits=ServiceLimits(statements_per_s=1e6)) as made:
            yield made


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, 400_000), max_size=4), limits=st.lists(st.integers(1, 9000)))
def test_a_cut_connection_loses_nothing(rows_server, cuts, limits):
    with rows_server.client("ann") as ann:
        query = submitted(ann, SQL)
        position, found = 0, []
        for after_bytes in cuts:
            taken = cut_off(rows_server, f"/v1/queries/{query}/rows?start={position}", after_bytes)
            batches = whole_batches(taken)
            found += batches
            position += sum(batch.num_rows for batch in batches)
        path = f"/v1/queries/{query}/rows"
        for limit in limits[:4]:
            part = ann.get(path, params={"start": position, "limit": limit, "format": "arrow"})
            batches = whole_batches(part.content)
            found += batches
            position += sum(batch.num_rows for batch in batches)
        rest = ann.get(path, params={"start": position, "format": "arrow"})
        table = pa.ipc.open_stream(rest.content).read_all()
        plain = [batch.replace_schema_metadata(None) for batch in (*found, *table.to_batches())]
        whole = pa.Table.from_batches(plain, table.schema.remove_metadata())
        data = rows_server.yard.session.catalog.place
        assert whole.num_rows == position + table.num_rows
        expected = duckdb.sql(
            f"SELECT n, t FROM '{data}/numbers.parquet' ORDER BY n"
        ).to_arrow_table()
        assert whole.to_pydict() == expected.to_pydict()
        ann.delete(path.removesuffix("/rows"))
    wait_until(lambda: rows_server.yard.usage.held_bytes == 0)
    wait_until(lambda: rows_server.yard.usage.connections == 0)


def test_rows_beyond_the_limit_are_dropped_from_the_front(tmp_path):
    limits = ServiceLimits(result_bytes=20_000_000)
    with a_server(tmp_path, limits=limits) as server, server.client("ann") as ann:
        query = submitted(ann, FLOOD)
        path, size = f"/v1/queries/{query}/rows", 0
        with ann.stream("GET", path, params={"format": "arrow"}) as answer:
            for part in answer.iter_raw():
                size += len(part)
                if size > 150_000_000:
                    break
        assert server.yard.usage.held_bytes < 60_000_000
        gone = ann.get(path, params={"start": 0})
        assert gone.status_code == 410
        first = int(gone.json()["detail"].partition("rows before ")[2].split()[0].replace(",", ""))
        part = ann.get(path, params={"start": first, "limit": 5}).json()
        assert len(part["rows"]) == 5
        state = ann.get(f"/v1/queries/{query}").json()
        assert state["state"] == "running", "its reader has left, so it waits"
        ann.delete(f"/v1/queries/{query}")
        wait_until(lambda: server.yard.usage.held_bytes == 0)


def test_a_query_pauses_while_its_rows_are_not_read(tmp_path):
    with a_server(tmp_path) as server, server.client("ann") as ann:
        query = submitted(ann, FLOOD)
        views = server.yard.session.queries

        def rows() -> int:
            return ann.get(f"/v1/queries/{query}").json()["rows"]

        wait_until(lambda: [view.slots for view in views()] == [0] and rows() > 0)
        with server.client("root") as root:
            lines = root.get("/metrics").text.splitlines()
        figures = dict(line.split(" ") for line in lines if line.startswith("queryard_result_"))
        waiting = float(figures["queryard_result_waiting_bytes"])
        assert 0 < waiting <= float(figures["queryard_result_memory_bytes"])
        seen = rows()
        time.sleep(0.3)
        assert rows() == seen
        ann.delete(f"/v1/queries/{query}")


def test_rows_that_are_not_read_expire(tmp_path):
    limits = ServiceLimits(result_ttl_s=1)
    with a_server(tmp_path, limits=limits) as server, server.client("ann") as ann:
        ended, paused = submitted(ann, SQL), submitted(ann, FLOOD)
        kept = server.yard
        for query in (ended, paused):
            path = f"/v1/queries/{query}"
            wait_until(lambda path=path: ann.get(path).status_code == 404)
        wait_until(lambda: not kept.active())
        assert kept.usage.open_results == kept.usage.held_bytes == 0


def test_a_query_runs_on_without_a_reader_but_not_for_one_that_has_left(tmp_path):
    limits = ServiceLimits(result_ttl_s=0.2)
    long = "SELECT count(*) AS c FROM numbers a, numbers b WHERE hash(a.n, b.n) = 3"
    with a_server(tmp_path, limits=limits) as server, server.client("ann") as ann:
        left, never_read = submitted(ann, long), submitted(ann, f"{long} AND a.n >= 0")
        with pytest.raises(httpx.ReadTimeout):
            ann.get(f"/v1/queries/{left}/rows", timeout=0.3)
        wait_until(lambda: left not in [one.id for one in server.yard.active()])
        assert [one.id for one in server.yard.active()] == [never_read]
        assert ann.get(f"/v1/queries/{left}").status_code == 404
        ann.delete(f"/v1/queries/{never_read}")


def test_a_reader_that_stalls_is_cut_off(tmp_path):
    limits = ServiceLimits(stall_s=0.5)
    with a_server(tmp_path, limits=limits) as server, server.client("ann") as ann:
        query = submitted(ann, FLOOD)
        host, _, port = server.url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))) as connection:
            secret = server.secrets["ann"]
            asked = (
                f"GET /v1/queries/{query}/rows?format=arrow HTTP/1.1\r\nHost: x\r\n"
                f"Authorization: Bearer {secret}\r\n\r\n"
            )
            connection.sendall(asked.encode())
            wait_until(lambda: server.yard.usage.connections == 1)
            wait_until(lambda: server.yard.usage.connections == 0)
        assert ann.get(f"/v1/queries/{query}").json()["state"] == "running"
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(
                b"POST /v1/queries HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
                + f"Authorization: Bearer {secret}\r\n\r\n{{".encode()
            )
            connection.settimeout(20)
            assert b"nothing of the request's body came" in connection.recv(65536)
        assert server.yard.usage.connections == 0


def test_clients_that_are_killed_leave_nothing(tmp_path):
    with a_server(tmp_path) as server:
        host, _, port = server.url.removeprefix("http://").partition(":")
        secret = server.secrets["ann"]
        body = f'{{"sql": "{LONG}"}}'
        asked = (
            f"POST /v1/queries?wait=60 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        )
        killed = []
        for _ in range(6):
            connection = socket.create_connection((host, int(port)))
            connection.sendall(asked.encode())
            killed.append(connection)
        wait_until(lambda: len(server.yard.active()) == 6)
        for connection in killed:
            connection.close()
        wait_until(lambda: not server.yard.active())
        usage = server.yard.usage
        wait_until(lambda: usage.connections == usage.open_results == usage.held_bytes == 0)
        assert not server.yard.session.queries()


def test_results_that_were_read_make_way(tmp_path):
    limits = ServiceLimits(open_results=5)
    with a_server(tmp_path, limits=limits) as server, server.client("ann") as ann:
        for n in range(20):
            answer = ann.post("/v1/queries", params={"wait": 20}, json={"sql": f"SELECT {n}"})
            assert answer.json()["first_rows"] == [[n]]
        assert server.yard.usage.open_results == 0
        wait_until(lambda: len(ann.get("/v1/queries").json()["queries"]) <= 6)
        last = answer.json()["id"]
        assert ann.get(f"/v1/queries/{last}/rows").json()["rows"] == [[19]]


def test_an_answer_that_fails_on_its_way_has_no_end(ann):
    # The error is in a late row: by then the answer has begun.
    sql = "SELECT CASE WHEN n = 2900000 THEN error('late') ELSE repeat('x', 100) END FROM "
    query = submitted(ann, sql + "(SELECT range AS n FROM range(3000000))")
    with pytest.raises(httpx.RemoteProtocolError):
        ann.get(f"/v1/queries/{query}/rows", params={"format": "arrow"})
    state = ann.get(f"/v1/queries/{query}", params={"wait": 10}).json()
    assert state["state"] == "failed"
    assert "late" in state["error"]["detail"]


def test_results_are_dropped_with_their_server(tmp_path):
    with a_server(tmp_path) as server, server.client("ann") as ann:
        submitted(ann, FLOOD)
        assert len(server.yard.active()) == 1
    assert server.yard.active() == []


def test_open_results_hold_no_more_than_their_token_may(tmp_path):
    most = 30_000_000
    limits = ServiceLimits(result_bytes=most)
    with (
        a_server(tmp_path, limits=limits) as server,
        server.client("ann") as ann,
        server.client("ben") as ben,
    ):
        sql = "SELECT a.n + {} AS n, repeat('x', 1000) AS t FROM numbers a, range(100) b"
        queries = [submitted(ann, sql.format(n)) for n in range(12)]
        session = server.yard.session

        seen = []

        def paused() -> bool:
            seen.append(server.yard.usage.held_bytes)
            views = session.queries()
            return all(view.slots == 0 and view.started_s is not None for view in views)

        wait_until(lambda: paused() and seen[-1] > 0, 40)
        assert max(seen) < 2 * most
        answer = ben.post("/v1/queries", params={"wait": 20}, json={"sql": "SELECT 1"})
        assert answer.json()["first_rows"] == [[1]]
        states = [ann.get(f"/v1/queries/{query}").json() for query in queries]
        running = [state["id"] for state in states if state["state"] == "running"]
        # Those whose memory others waited for could not pause.
        errors = [state["error"]["detail"] for state in states if state["error"]]
        assert all("`result`" in error for error in errors)
        assert len(running) + len(errors) == len(queries)
        # The others go on for their readers.
        part = ann.get(f"/v1/queries/{running[-1]}/rows", params={"limit": 100_000}).json()
        assert len(part["rows"]) == 100_000
        for query in queries:
            ann.delete(f"/v1/queries/{query}")
        wait_until(lambda: server.yard.usage.waiting_bytes == 0)
        assert server.yard.usage.held_bytes < 1000


def test_a_revoked_token_gets_no_more_rows(tmp_path):
    with a_server(tmp_path) as server, server.client("ann") as ann, server.client("ben") as ben:
        query = submitted(ben, FLOOD)  # it is not cancelled with the token of its reader
        path = f"/v1/queries/{query}/rows"
        with ann.stream("GET", path, params={"format": "arrow"}) as answer:
            parts = answer.iter_raw(65536)
            assert next(parts)
            server.yard.tokens.revoke("ann")
            with pytest.raises(httpx.TransportError):
                deque(islice(parts, 2000), maxlen=0)
        assert ann.get(path).status_code == 401
        assert ben.get(f"/v1/queries/{query}").json()["state"] == "running"
        ben.delete(f"/v1/queries/{query}")


@pytest.mark.parametrize("route", ["?wait=60", "/events", "/answers?wait=60", "/rows"])
def test_a_client_that_leaves_any_route_of_its_query_is_missed(tmp_path, route):
    limits = ServiceLimits(result_ttl_s=0.2)
    long = "SELECT count(*) AS c FROM numbers a, numbers b WHERE hash(a.n, b.n) = 3"
    with (
        a_server(tmp_path, limits=limits) as server,
        server.client("ann") as ann,
        server.client("ben") as ben,
    ):
        online = "answers" in route
        left, watched = (submitted(ann, f"{long} AND a.n >= {n}", online=online) for n in (0, -1))
        for client, query in ((ben, watched), (ann, left)):
            # Most routes answer only when there is something, `/events` at once.
            left_early = client.stream("GET", f"/v1/queries/{query}{route}", timeout=0.5)
            with suppress(httpx.ReadTimeout), left_early:
                pass

        def is_gone() -> bool:
            # A client of another token that looks on saves no query.
            return ben.get(f"/v1/queries/{left}").status_code == 404

        wait_until(is_gone)
        # Nor does it end one by leaving.
        assert [one.id for one in server.yard.active()] == [watched]
        ann.delete(f"/v1/queries/{watched}")


def test_rows_are_never_taken_on_the_event_loop(tmp_path, monkeypatch):
    names = set()
    read = KeptRows.read

    def watched(*arguments):
        names.add(threading.current_thread().name.rpartition("_")[0])
        return read(*arguments)

    monkeypatch.setattr(KeptRows, "read", watched)
    with a_server(tmp_path) as server, server.client("ann") as ann:
        for sql in ("SELECT 1", "SELECT count(*) FROM range(300000000) WHERE range % 3 = 0"):
            answer = ann.post("/v1/queries", params={"wait": 60}, json={"sql": sql})
            assert answer.json()["first_rows"]
    assert names == {"queryard-http"}

"""The process of a server: how it starts, reloads, stops, and what a crash leaves."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pytest

import queryard
from queryard.core.errors import QueryardError
from queryard.history import HistoryReader
from queryard.live.admission.limits import AlreadyRan
from service.processes import a_process

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
if sys.platform == "win32":
    pytest.skip("signals are those of POSIX", allow_module_level=True)

from waiting import wait_until

from queryard.remote import ServerError, TokenRefused
from queryard.service.tokens import TokenStore

ENDLESS = "SELECT sum(a.range * b.range) FROM range(1000000000) a, range(1000000) b"
WHILE = "SELECT count(*) FROM range(400000000) WHERE range % 3 = 0"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "t.csv").write_text("n\n1\n2\n")
    return folder


def _config(file: Path, more: str = "") -> Path:
    file.write_text(f"[service]\npostgres = false\n{more}")
    return file


def _wait_running(qy: queryard.remote.RemoteSession) -> None:  # type: ignore[name-defined]
    wait_until(lambda: any(view.status == "running" for view in qy.queries()))


def test_from_the_start_over_reloads_to_the_end(data: Path, tmp_path: Path):
    config = _config(tmp_path / "yard.toml")
    with a_process(tmp_path, data, "--config", config) as server:
        assert "1 table, 2 slots" in server.told
        assert "127.0.0.1" in server.url
        for tried in ("curl", "queryard --server", "queryard.connect("):
            assert tried in server.told
        tokens = data / ".queryard" / "tokens.json"
        assert tokens.stat().st_mode & 0o777 == 0o600
        assert server.token not in tokens.read_text()
        store = TokenStore(tokens)
        web = store.add("web", "web")
        with (
            queryard.connect(server.url, token=server.token) as admin,
            queryard.connect(server.url, token=web) as other,
        ):
            answered = admin.submit("SELECT sum(n) FROM t")
            assert answered.result().fetchall() == [(3,)]
            assert other.sql("SELECT sum(n) FROM t").fetchall() == [(3,)]
            ended = server.wait_for("query finished", 2)
            assert {ended["tenant"], ended["protocol"]} == {"web", "http"}

            # New tables, tenants, limits.
            (data / "later.csv").write_text("k\n7\n")
            _config(config, "[tenants.web.limits]\nwaiting = 0\n")
            server.send(signal.SIGHUP)
            assert server.wait_for("reloaded")["tables"] == 2
            assert admin.sql("FROM later").fetchall() == [(7,)]
            with pytest.raises(queryard.Refused, match="tenant 'web'"):
                other.sql("FROM later")

            # A grant of what is not there.
            grants = 'tables = ["t", "laterr"]\noutput = "nowhere"\n'
            _config(config, f"[tenants.web]\n{grants}[tenants.web.limits]\nwaiting = 0\n")
            server.send(signal.SIGHUP)
            server.wait_for("a grant names what is not there", 2)
            doubts = [event["grant"] for event in server.events() if "grant" in event]
            assert f"{config}, line 4: tenants.web.tables" in doubts[0]
            assert "no table 'laterr' now; did you mean 'later'?" in doubts[0]
            assert f"no folder {tmp_path / 'nowhere'}" in doubts[1]

            # A mistake changes nothing.
            _config(config, "[tenants.web]\nwieght = 2\n")
            server.send(signal.SIGHUP)
            told = server.wait_for("not reloaded: the settings stay as they were")
            assert "line 4" in told["error"]
            assert "wieght" in told["error"]
            with pytest.raises(queryard.Refused, match="tenant 'web'"):
                other.sql("FROM later")

            # A token that is revoked.
            store.revoke("web")
            with pytest.raises(TokenRefused):
                other.sql("SELECT 1")

            # The end: what runs goes on, and nothing else begins.
            unread = admin.submit("SELECT 5")
            running = admin.submit(WHILE)
            _wait_running(admin)
            server.send(signal.SIGTERM)
            server.wait_for("stopping")
            with pytest.raises(ServerError, match="about to stop"):
                admin.sql("SELECT 1")
            assert running.result("60 s").fetchall() == [(133333334,)]
            assert unread.result().fetchall() == [(5,)]
        assert server.end() == 0
        assert server.events()[-1]["event"] == "stopped"


def test_what_runs_beyond_the_grace_time_is_cancelled_and_told(data: Path, tmp_path: Path):
    errors: list[BaseException] = []
    with a_process(tmp_path, data, "--postgres", "off", "--grace", "0.3 s") as server:
        qy = queryard.connect(server.url, token=server.token, patience=0)

        def ask() -> None:
            try:
                qy.sql(ENDLESS).fetchall()
            except QueryardError as error:
                errors.append(error)

        asking = threading.Thread(target=ask)
        asking.start()
        _wait_running(qy)
        server.send(signal.SIGTERM)
        asking.join(20)
        assert server.end() == 0
        qy.close()
    assert server.wait_for("grace time is over")["cancelled"] == 1
    [error] = errors
    assert isinstance(error, ServerError)
    assert "the server stops" in str(error)


def test_after_a_kill_the_history_is_whole_and_keys_hold(data: Path, tmp_path: Path):
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as made:
        made.execute("CREATE TABLE bought (n INTEGER)")
    config = tmp_path / "yard.toml"
    config.write_text(
        '[folders]\nfiles = "data"\n[databases]\nshop = "shop.duckdb"\n'
        '[tenants.default]\nwrite = ["shop"]\n[service]\npostgres = false\n'
    )
    insert = "INSERT INTO shop.bought VALUES (1)"
    with a_process(tmp_path, "--config", config) as server:
        token = server.token
        qy = queryard.connect(server.url, token=token, patience=0)
        qy.sql(insert, idempotency_key="order-7")
        done = qy.sql("SELECT count(*) FROM shop.bought").fetchall()
        assert done == [(1,)]
        lost = qy.submit(ENDLESS, idempotency_key="report")
        _wait_running(qy)
        time.sleep(1.0)  # the history is written twice per second
        server.send(signal.SIGKILL)
        server.end()
        with pytest.raises(ServerError):
            qy.sql("SELECT 1")
        qy.close()
    with HistoryReader(tmp_path / ".queryard" / "history.sqlite") as reader:
        outcomes = {row.query: row.outcome for row in reader.queries()}
        assert outcomes[lost.id] == "lost"
        assert sorted(outcomes.values()) == ["finished", "finished", "lost"]
    with a_process(tmp_path, "--config", config) as server:
        assert "  token " not in server.told
        assert server.wait_for("query lost")["query"] == lost.id
        with queryard.connect(server.url, token=token) as qy:
            with pytest.raises(AlreadyRan, match="has run already"):
                qy.sql(insert, idempotency_key="order-7")
            assert qy.sql("SELECT count(*) FROM shop.bought").fetchall() == [(1,)]
            assert qy.past_query(lost.id).outcome == "lost"
            again = qy.submit(ENDLESS, idempotency_key="report")
            assert again.status in ("waiting", "running")
            again.cancel()
        server.send(signal.SIGTERM)
        assert server.end() == 0


def test_both_listeners_with_tls(data: Path, tmp_path: Path):
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed, which makes the certificate")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    wanted = ["-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost"]
    subject = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", *wanted, *subject]
    subprocess.run(command, check=True, capture_output=True)
    tls = ("--tls-cert", cert, "--tls-key", key)
    with a_process(tmp_path, data, "--postgres", "0", *tls) as server:
        assert server.url.startswith("https://")
        with queryard.connect(server.url, token=server.token, ca=str(cert)) as qy:
            assert qy.sql("SELECT sum(n) FROM t").fetchall() == [(3,)]
        assert f"TLS         by {cert}" in server.told
        assert f"QUERYARD_CA={cert}" in server.told
        assert f"--cacert {cert}" in server.told
        with pytest.raises(ServerError, match=r"certificate .* is not trusted .* QUERYARD_CA"):
            queryard.connect(server.url, token=server.token)
        with pytest.raises(QueryardError, match=r"ca: nothing\.pem: no certificates can be read"):
            queryard.connect(server.url, token=server.token, ca="nothing.pem")
        with pytest.raises(QueryardError, match="no certificates can be read"):
            queryard.connect(server.url, token=server.token, ca=str(key))
        psycopg = pytest.importorskip("psycopg")
        port = server.find(r"PostgreSQL +\S+:(\d+)")
        with psycopg.connect(
            host="127.0.0.1",
            port=port,
            user="admin",
            password=server.token,
            dbname="queryard",
            sslmode="verify-ca",
            sslrootcert=str(cert),
            autocommit=True,
        ) as connection:
            assert connection.execute("SELECT sum(n) FROM t").fetchall() == [(3,)]
            server.send(signal.SIGTERM)
            server.wait_for("stopping")
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        assert server.end() == 0


def test_a_server_without_tls_says_so_to_clients_that_want_it(data: Path, tmp_path: Path):
    broken = tmp_path / "data" / "broken.parquet"
    broken.write_bytes(b"PAR1 and nothing more")
    with a_process(tmp_path, data, "--postgres", "off") as server:
        with pytest.raises(ServerError, match=r"no TLS at this address .* http://"):
            queryard.connect(server.url.replace("http:", "https:"), token=server.token)
        # What a client is not told is in the log, with the id of its query.
        with queryard.connect(server.url, token=server.token) as qy:
            failed = qy.submit("SELECT * FROM broken")
            with pytest.raises(QueryardError) as told:
                failed.result()
        assert str(tmp_path) not in str(told.value)
        event = server.wait_for("query failed")
        assert event["query"] == failed.id
        assert str(broken) in event["reason"]
        server.send(signal.SIGTERM)
        assert server.end() == 0


def test_what_cannot_be_started_says_why(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from typer.testing import CliRunner

    from queryard.cli.app import app

    def said(*arguments: str | Path) -> str:
        ended = CliRunner().invoke(app, ["serve", *map(str, arguments)])
        assert isinstance(ended.exception, QueryardError)
        return str(ended.exception)

    # Else the log of later tests goes to a stream that is closed.
    monkeypatch.setattr("queryard.service.logs.set_up", lambda form: None)
    assert "can be reached from other machines" in said(data, "--http", "0.0.0.0:0")
    assert "TLS needs --tls-key as well" in said(data, "--tls-cert", "x.pem")
    assert "none is named" in said()
    assert "no such file" in said(tmp_path / "nowhere")
    assert "a port is a number" in said(data, "--http", "localhost:x")
    both = _config(tmp_path / "both.toml", '[tables]\nt = "data/t.csv"\n')
    assert "names tables, and so does" in said(data, "--config", both)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        small = ("--slots", "1", "--memory", "300MB", "--postgres", "off")
        told = said(data, "--http", str(port), *small)
        assert f"127.0.0.1:{port} cannot be listened on" in told
        assert "--http" in told
    assert "all listeners are off" in said(data, "--http", "off", "--postgres", "off")


def test_a_missing_extra_is_named(data: Path, monkeypatch: pytest.MonkeyPatch):
    from queryard.cli.server_place import needing_server

    monkeypatch.setitem(sys.modules, "fastapi", None)
    remedy = r"fastapi.*pip install 'queryard\[server\]'"
    with pytest.raises(QueryardError, match=remedy), needing_server():
        import fastapi  # noqa: F401


def test_a_paused_server_stops_without_the_grace_time(data: Path, tmp_path: Path):
    with a_process(tmp_path, data, "--postgres", "off", "--grace", "10 min") as server:
        with queryard.connect(server.url, token=server.token, patience=0) as qy:
            qy.controls.pause()
            waiting = qy.submit("SELECT sum(n) FROM t")
            server.send(signal.SIGTERM)
            with pytest.raises(ServerError, match="stops while it is paused"):
                waiting.result("60 s").fetchall()
        assert server.end() == 0
        assert not [event for event in server.events() if event["event"] == "grace time is over"]


def test_a_table_is_there_once_its_grants_are(data: Path, tmp_path: Path):
    (data / "secret.csv").write_text("n\n7\n")
    config = tmp_path / "yard.toml"
    tables = '[tables]\nt = "data/t.csv"\n'
    config.write_text(f"{tables}[service]\npostgres = false\n")
    with a_process(tmp_path, "--config", config) as server:
        tokens = tmp_path / ".queryard" / "tokens.json"
        web = TokenStore(tokens).add("web", "web")
        with (
            queryard.connect(server.url, token=server.token) as admin,
            queryard.connect(server.url, token=web) as other,
        ):

            def is_unknown(qy: queryard.remote.RemoteSession, table: str) -> bool:  # type: ignore[name-defined]
                with pytest.raises(QueryardError, match=f"{table} does not exist"):
                    qy.sql(f"FROM {table}")
                return True

            more = 'secret = "data/secret.csv"\n'
            config.write_text(
                f'{tables}{more}[tenants.web]\ntables = ["t"]\n[service]\npostgres = false\n'
            )
            assert is_unknown(other, "secret")
            server.send(signal.SIGHUP)
            assert server.wait_for("reloaded")["tables"] == 2
            assert admin.sql("FROM secret").fetchall() == [(7,)]
            assert other.sql("SELECT sum(n) FROM t").fetchall() == [(3,)]
            assert is_unknown(other, "secret")

            # If anything is wrong, nothing is followed.
            third = f'{tables}{more}third = "data/t.csv"\n'
            config.write_text(f'{third}[session]\nprofile = "none"\n[service]\npostgres = false\n')
            server.send(signal.SIGHUP)
            server.wait_for("not reloaded: the settings stay as they were", 1)
            config.write_text(f"{third}[service]\npostgres = false\n")
            tokens.chmod(0o644)
            server.send(signal.SIGHUP)
            server.wait_for("not reloaded: the settings stay as they were", 2)
            tokens.chmod(0o600)
            assert is_unknown(admin, "third")
            assert is_unknown(other, "secret")

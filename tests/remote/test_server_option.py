"""`queryard --server URL …`, and where the address and the token come from."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from cli.conftest import call
from service.anywhere import served, token_of

import queryard
from queryard.cli.server_option import name_server
from queryard.core.errors import QueryardError
from queryard.remote.credentials import Credentials, credentials, server_named

__all__ = ["call"]
ENDLESS = "SELECT sum(a.range * b.range) FROM range(1000000000) a, range(1000000) b"


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Nothing of the person who runs the tests."""
    for name in ("QUERYARD_SERVER", "QUERYARD_TOKEN", "QUERYARD_DATA", "QUERYARD_SERVER_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    yield
    name_server(None)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    folder = tmp_path_factory.mktemp("server")
    data = folder / "data"
    data.mkdir()
    duckdb.sql(f"COPY (SELECT range AS n FROM range(5)) TO '{data / 'few.parquet'}'")
    with (
        queryard.connect(data, slots=2, memory="512 MB") as session,
        served(session, folder) as url,
    ):
        yield url, token_of(folder)


def _write(text: str, mode: int = 0o600) -> Path:
    file = Path(os.environ["XDG_CONFIG_HOME"]) / "queryard" / "server.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
    return file


def test_statements_on_a_server(call, server, monkeypatch: pytest.MonkeyPatch):
    url, token = server
    monkeypatch.setenv("QUERYARD_TOKEN", token)
    ended = call("--server", url, "sql", "SELECT sum(n) AS s FROM few", "--format", "json")
    assert (ended.code, json.loads(ended.out)) == (0, [{"s": 10}])
    ended = call("--server", url, "sql", "SELECT nothing FROM few")
    assert ended.code == 1
    assert "nothing" in ended.err
    ended = call("--server", url, "sql", "SELECT avg(n) FROM few", "--online")
    assert ended.code == 0
    assert "2.0" in ended.out
    ended = call("--server", url, "sql", "SELECT 1", "--slots", "2")
    assert ended.code == 2
    assert "--slots: is a setting of the server" in ended.err
    ended = call("--server", url, "sql", "SELECT 1", "--data", ".")
    assert "--server and --data: name a server or data, not both" in ended.err


def test_looking_on_and_cancelling(call, server, monkeypatch: pytest.MonkeyPatch):
    url, token = server
    monkeypatch.setenv("QUERYARD_SERVER", url)
    monkeypatch.setenv("QUERYARD_TOKEN", token)
    with queryard.connect(url, token=token) as qy:
        running = qy.submit(ENDLESS)
        listed = call("why", "--json")
        assert [row["id"] for row in json.loads(listed.out)] == [running.id]
        assert running.id in call("why").out
        assert running.id in call("why", running.id).out
        assert f"{running.id} cancelled" in call("cancel", running.id).out
        assert running.wait("20 s")
    told = call("history", "--json", "--failed")
    assert running.id in [row["query"] for row in json.loads(told.out)]
    assert "few" in call("history", "--by", "template").out or told.code == 0
    ended = call("history", "--sessions")
    assert "--sessions: is told on the machine of the server" in ended.err
    assert "unknown query" in call("cancel", "5f0c2a91b7de-14").err


def test_why_the_server_follows_its_policy(call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from queryard.service.tokens import TokenStore

    (tmp_path / "t.csv").write_text("n\n1\n")
    portfolio = {"portfolio": {"objective": "throughput", "candidates": ["fifo", "fair"]}}
    with (
        queryard.connect(tmp_path, slots=1, memory="300 MB", profile=portfolio) as session,
        served(session, tmp_path) as url,
    ):
        monkeypatch.setenv("QUERYARD_SERVER", url)
        monkeypatch.setenv("QUERYARD_TOKEN", token_of(tmp_path))
        ended = call("why", "--policy")
        assert ended.code == 0, ended.err
        assert f"{url} follows fifo, since" in ended.out
        assert 'A portfolio chooses it, for "throughput"' in ended.out
        (told,) = json.loads(call("why", "--policy", "--json").out)
        assert told["portfolio"]["candidates"] == ["fifo", "fair"]
        # Reasons and decisions are for admins.
        user = TokenStore(tmp_path / "tokens.json").add("eve", "default")
        monkeypatch.setenv("QUERYARD_TOKEN", user)
        ended = call("why", "--policy")
        assert (ended.code, f"{url} follows fifo" in ended.out) == (0, True)
        assert "throughput" not in ended.out
        assert "for an admin's token" in ended.out


def test_the_shell_on_a_server(call, server, monkeypatch: pytest.MonkeyPatch):
    import io
    import sys

    url, token = server
    _write(f'server = "{url}"\ntoken = "{token}"\n')
    lines = "CREATE TEMP TABLE mine AS FROM few;\nSELECT count(*) AS c FROM mine;\n.tables\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines + ".schema few\n.explain FROM few\n"))
    ended = call("shell")
    assert ended.code == 0
    assert "few" in ended.out
    assert "bigint" in ended.out


def test_a_query_in_a_session_of_this_machine_is_cancelled(call, tmp_path: Path):
    (tmp_path / "t.csv").write_text("n\n1\n")
    with queryard.connect(tmp_path, slots=1, memory="300 MB") as qy:
        running = qy.submit(ENDLESS)
        ended = call("cancel", running.id, "--data", tmp_path)
        assert (ended.code, running.id in ended.out) == (0, True)
        assert running.wait("20 s")
        assert running.status == "cancelled"
        again = call("cancel", running.id, "--data", tmp_path)
        assert again.code == 2


# --- where they come from ------------------------------------------------------------------------


def test_what_is_given_counts_first_then_the_environment_then_the_file(
    monkeypatch: pytest.MonkeyPatch,
):
    assert server_named() is None
    _write('server = "http://file:1"\ntoken = "qy_file"\nca = "ca.pem"\n')
    assert credentials(None) == Credentials("http://file:1", "qy_file", "ca.pem")
    assert server_named() == "http://file:1"
    monkeypatch.setenv("QUERYARD_TOKEN", "qy_env")
    assert credentials(None).token == "qy_env"
    monkeypatch.setenv("QUERYARD_SERVER", "http://env:1")
    assert credentials(None) == Credentials("http://env:1", "qy_env", None)
    assert credentials("http://given:1", "qy_given") == Credentials(
        "http://given:1", "qy_given", None
    )


def test_a_token_of_the_file_is_not_shown_to_another_server(monkeypatch: pytest.MonkeyPatch):
    _write('server = "http://file:1"\ntoken = "qy_file"\n')
    with pytest.raises(QueryardError, match=r"http://other:1: a token is needed.*QUERYARD_TOKEN"):
        credentials("http://other:1")
    assert credentials("http://file:1/").token == "qy_file"


def test_a_file_that_others_may_read_is_refused():
    file = _write('token = "qy_file"\n', 0o644)
    with pytest.raises(QueryardError, match=rf"mode 644.*chmod 600 {file}"):
        credentials("http://any:1")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tokn = 'x'", "unknown key 'tokn'"),
        ("token = 3", "must be a text"),
        ("[", "not valid TOML"),
    ],
)
def test_mistakes_in_the_file_are_told(text: str, problem: str):
    _write(text)
    with pytest.raises(QueryardError, match=problem):
        credentials("http://any:1")


def test_no_server_is_told_with_all_ways_to_name_one():
    with pytest.raises(QueryardError, match=r"no server is named.*QUERYARD_SERVER.*server\.toml"):
        credentials(None)

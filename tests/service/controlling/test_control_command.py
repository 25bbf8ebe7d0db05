"""`queryard control` against a server that is a process: by its address, and by its data."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
if sys.platform == "win32":
    pytest.skip("signals are those of POSIX", allow_module_level=True)

from click.testing import CliRunner
from typer.main import get_command

import queryard
from queryard import QueryardError
from queryard.cli.app import app
from service.processes import a_process

FILE = """[service]
postgres = false

[session]
profile = "{}"

[tenants.web]
weight = {}
"""


COMMAND = get_command(app)


class Terminal:
    """Runs commands as a user with a token would."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._environment = {"QUERYARD_TOKEN": token, "COLUMNS": "200"}

    def __call__(self, *arguments: str) -> str:
        return run("--server", self._url, "control", *arguments, env=self._environment)

    def show(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self("show", "--json"))
        return found


def run(*arguments: str, env: dict[str, str] | None = None) -> str:
    ended = CliRunner().invoke(COMMAND, list(arguments), env=env)
    if ended.exception is not None:
        raise ended.exception
    return ended.output


def test_changes_by_commands_outlive_reloads_and_restarts(tmp_path: Path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "t.csv").write_text("n\n1\n2\n")
    config = tmp_path / "yard.toml"
    config.write_text(FILE.format("fair", 2))
    with a_process(tmp_path, data, "--config", config) as server:
        token = server.token
        control = Terminal(server.url, token)
        assert control("profile", "fifo") == "change 1: policy fair → fifo\n"
        told = control("tenant", "web", "--weight", "5", "--waiting", "0", "--reason", "too many")
        assert (
            told == "change 2: tenant 'web': weight 2 → 5, limit of the waiting queries: none → 0\n"
        )
        assert control("tenant", "web", "--waiting", "none").startswith("change 3: tenant 'web'")
        assert control("pause") == "change 4: paused: no query starts\n"
        assert control("resume").startswith("change 5: resumed")
        assert control("drain").startswith("change 6: draining")
        with pytest.raises(QueryardError, match="set to drain by admin"):
            queryard.connect(server.url, token=token, patience=0).sql("SELECT 1")
        assert control("open").startswith("change 7: open")
        assert control("cancel-tenant", "web") == "change 8: cancelled 0 queries of tenant 'web'\n"
        assert control("reset-models", "prices") == "change 9: reset what was learnt: prices\n"
        with pytest.raises(QueryardError, match="change 8 cannot be undone"):
            control("undo", "8")
        assert control("undo", "3", "--reason", "no").startswith("change 10: undid change 3")

        shown = control("show")
        for said in ("policy   fifo", "state    open", "web", "can be undone", "undone by 10"):
            assert said in shown
        # On the machine of the server, its user needs no token.
        here = run("control", "tenant", "web", "--cap", "0.5", "--data", str(data))
        assert here == "change 11: tenant 'web': cap 1 → 0.5\n"
        assert control.show()["changes"][0]["by"].endswith("(on this machine)")
        assert "follows fair" in run("profile", "fair", "--data", str(data))
        assert control.show()["changes"][0]["text"] == "policy fifo → fair"
        control("undo", "12")
        here = run("control", "tenant", "web", "--cap", "default", "--data", str(data))
        assert here == "change 14: tenant 'web': cap 0.5 → 1\n"
        control("undo", "14")
        with pytest.raises(QueryardError, match="--weight much: must be a number, or default"):
            control("tenant", "web", "--weight", "much")

        # The file says nothing new of the policy, and something new of the weight.
        config.write_text(FILE.format("fair", 3))
        server.send(signal.SIGHUP)
        server.wait_for("reloaded")
        found = control.show()
        (web,) = [tenant for tenant in found["tenants"] if tenant["name"] == "web"]
        assert (found["profile"], web["weight"], web["cap"]) == ("fifo", 3, 0.5)
        assert web["limits"]["waiting"] == 0
        events = [event for event in server.events() if event["event"] == "control"]
        assert (events[0]["by"], events[0]["what"]) == ("admin", "profile")
        assert events[1]["reason"] == "too many"
        control("pause", "--reason", "over night")
        before = control.show()
        server.send(signal.SIGKILL)
    with a_process(tmp_path, data, "--config", config) as server:
        control = Terminal(server.url, token)
        assert control.show() == before
        with queryard.connect(server.url, token=token) as qy:
            waiting = qy.submit("SELECT sum(n) FROM t")
            (reason,) = qy.why(waiting.id).reasons
            assert reason == "no query starts: paused by admin (over night)"
            controls = qy.controls
            assert controls.show()["state"] == "paused"
            controls.undo(before["last"])
            assert waiting.result().fetchall() == [(3,)]
            assert controls.tenant("web", guarantee=0.25, seen=before["last"] + 1)["undoable"]
            with pytest.raises(QueryardError, match="is not the last change"):
                controls.profile("tls", seen=3)


def test_a_session_without_a_server_has_no_controls(tmp_path: Path):
    (tmp_path / "t.csv").write_text("n\n1\n")
    with pytest.raises(QueryardError, match="no session is open"):
        run("control", "pause", "--data", str(tmp_path))
    with (
        queryard.connect(tmp_path, slots=1, memory="300 MB"),
        pytest.raises(QueryardError, match="the session is not served"),
    ):
        run("control", "pause", "--data", str(tmp_path))
    with pytest.raises(QueryardError, match="must be a whole number, or none"):
        run("control", "tenant", "web", "--waiting", "many", "--data", str(tmp_path))

"""`queryard top`: the present of sessions and of servers, in a terminal."""

from __future__ import annotations

import io
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from waiting import wait_until

import queryard
from queryard.cli.top_screen import of_server, screen

LONG = "SELECT sum(hash(n, r)::HUGEINT), {} FROM numbers, range(1000000) t(r)"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("QUERYARD_SERVER", "QUERYARD_TOKEN", "QUERYARD_DATA", "QUERYARD_SERVER_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "160")
    data = tmp_path / "data"
    data.mkdir()
    pq.write_table(pa.table({"n": list(range(10_000))}), data / "numbers.parquet")
    return data


def drawn(told: dict, height: int | None = None, width: int = 160) -> str:
    sheet = io.StringIO()
    shown = screen(of_server("yard", told), width, height)
    Console(file=sheet, width=width, highlight=False).print(shown)
    return sheet.getvalue()


def a_query(number: int, status: str = "waiting", **more: object) -> dict:
    return {
        "id": f"5f0c2a91b7de-{number}",
        "sql": f"SELECT\n  {number}",
        "tenant": "sales[/red]",
        "status": status,
        "slots": 0,
        "progress": 0.0,
        "started_at": None,
        "deadline_at": None,
        "waited_s": 2.0,
        "starts_in_s": 4.5,
        "eta_s": 6.5,
        "why": "It is next in its pool.",
        **more,
    }


def a_present(waiting: int = 1) -> dict:
    running = a_query(
        1,
        "running",
        slots=2,
        progress=0.5,
        started_at=97.0,
        deadline_at=101.0,
        starts_in_s=None,
        eta_s=3.0,
    )
    return {
        "at": 100.0,
        "policy": {"name": "marshal"},
        "state": "paused",
        "slots": {"total": 2, "busy": 2},
        "memory": {"pool_bytes": 8e9, "reserved_bytes": 1e9},
        "tenants": [{"name": "sales[/red]", "running": 1, "waiting": waiting, "slots": 2}],
        "running": [running],
        "waiting": [a_query(number) for number in range(2, waiting + 2)],
        "more_waiting": 7,
        "ended": [
            a_query(number, status, submitted_at=90.0, ended_at=91.5)
            for number, status in ((900, "finished"), (901, "failed"))
        ],
    }


def test_a_server_at_one_moment():
    text = drawn(a_present())
    assert "paused  policy marshal  slots 2 of 2  running 1  waiting 1  memory 1" in text
    running = next(line for line in text.splitlines() if "b7de-1 " in line)
    for part in ("sales[/red]", "2.0 s", "~3.0 s", "1.0 s", "50%", "SELECT 1"):
        assert part in running
    waiting = next(line for line in text.splitlines() if "b7de-2 " in line)
    assert "~4.5 s" in waiting
    assert "~6.5 s" in waiting
    assert "It is next in its pool." in text
    failed = next(line for line in text.splitlines() if "b7de-901 " in line)
    for part in ("sales[/red]", "failed", "1.5 s", "SELECT 901"):
        assert part in failed
    assert "7 more" in text


def test_a_small_terminal_has_the_names_of_queries_and_as_many_lines_as_fit():
    text = drawn(a_present(waiting=50), height=30, width=80)
    assert len(text.splitlines()) <= 30
    assert "b7de-901 " in text
    text = drawn(a_present(waiting=50), height=16, width=80)
    assert len(text.splitlines()) <= 16
    assert "b7de-901 " not in text
    text = drawn(a_present(waiting=50), height=20, width=80)
    assert "5f0c2a91b7de-1 " in text
    assert len(text.splitlines()) <= 20
    assert "more" in text


def test_sessions_that_are_open_on_data(call, place: Path):
    ended = call("top", "--data", place, "--once")
    assert ended.code != 0
    assert "no session is open" in ended.err
    with queryard.connect(place, slots=1, memory="1 GB", profile="fifo") as session:
        first = session.submit(LONG.format(1), tenant="web")
        second = session.submit(LONG.format(2), tenant="night", deadline="10 min")
        wait_until(
            lambda: first.status == "running" and session.overview().queries[1].hold != "entering"
        )
        ended = call("top", "--data", place, "--once")
        assert ended.code == 0
        assert "open  policy fifo  slots 1 of 1  running 1  waiting 1" in ended.out
        assert first.id in ended.out
        waiting = next(line for line in ended.out.splitlines() if second.id in line)
        assert "night" in waiting
        assert "599" in waiting or "600" in waiting
        assert waiting.count("~") == 2  # its start and its end
        first.cancel()
        second.cancel()


def test_a_server_by_its_address(call, place: Path, tmp_path: Path, monkeypatch):
    pytest.importorskip("fastapi")
    pytest.importorskip("httpx")
    pytest.importorskip("uvicorn")
    from service.anywhere import served, token_of

    from queryard.cli.server_option import name_server

    with (
        queryard.connect(place, slots=2, memory="512 MB") as session,
        served(session, tmp_path) as url,
    ):
        monkeypatch.setenv("QUERYARD_TOKEN", token_of(tmp_path))
        try:
            ended = call("--server", url, "top", "--once")
        finally:
            name_server(None)
    assert ended.code == 0
    assert f"{url}  open  policy marshal  slots 0 of 2" in ended.out


@pytest.mark.skipif(sys.platform == "win32", reason="there is no pseudo-terminal")
def test_in_a_terminal_it_is_drawn_again_and_again_until_it_is_interrupted(place: Path):
    """The session of before has ended, and another one is there: the same program shows both."""
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "queryard.cli", "top", "--data", str(place), "--every", "0.2"]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "160", "LINES": "24"}
    seen = Seen(ours)
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    try:
        seen.wait_for("no session is open")
        for profile in ("fifo", "fair"):
            with queryard.connect(place, slots=1, memory="500 MB", profile=profile):
                seen.wait_for(f"policy {profile}")
        process.send_signal(signal.SIGINT)
        seen.wait_for("\x1b[?1049l")  # the screen of before is back
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


class Seen:
    """What a program writes to a terminal."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._text = ""

    def wait_for(self, text: str) -> None:
        """Read on until a text is there; what was before it is not looked at again."""
        until_s = time.monotonic() + 40
        while text not in self._text:
            left_s = until_s - time.monotonic()
            assert left_s > 0, self._text[-2000:]
            if select.select([self._terminal], [], [], left_s)[0]:
                self._text += os.read(self._terminal, 1 << 16).decode(errors="replace")
        self._text = self._text.partition(text)[2]

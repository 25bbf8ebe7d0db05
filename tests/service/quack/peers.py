"""DuckDB 1.5.5 as a client and as a server, in processes of an environment of their own."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tools.quack_environment import Unavailable, environment

SCRIPT = str(Path(__file__).with_name("real_duckdb.py"))


def python_of_peer() -> str:
    """The Python of the environment; the test is skipped where there is none."""
    try:
        return str(environment())
    except Unavailable as reason:
        pytest.skip(str(reason))


class PeerError(Exception):
    """What DuckDB says, with the name of its error."""


class Peer:
    """A client: statements go in, columns and rows come out as texts."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def tell(self, sql: str) -> None:
        """Send a statement, and wait for nothing."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(sql) + "\n")
        self.process.stdin.flush()

    def ask(self, sql: str) -> dict[str, Any]:
        self.tell(sql)
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        if "error" in found:
            raise PeerError(found["error"])
        return found

    def rows(self, sql: str) -> list[str]:
        found: list[str] = self.ask(sql)["rows"]
        return found

    def texts(self, query: str) -> tuple[list[str], list[str]]:
        """The types and the values of a query, both as DuckDB writes them."""
        kinds = self.rows(f"SELECT column_type FROM (DESCRIBE {query})")
        values = self.rows(f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({query})")
        return kinds, values


@contextmanager
def a_peer() -> Iterator[Peer]:
    """A client in a process of its own."""
    with _process("talk") as process:
        yield Peer(process)


@contextmanager
def a_real_server(token: str) -> Iterator[str]:
    """DuckDB's own server: where it is."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with _process("serve", str(port), token):
        yield f"quack:127.0.0.1:{port}"


@contextmanager
def _process(*words: str) -> Iterator[subprocess.Popen[str]]:
    command = [python_of_peer(), SCRIPT, *words]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()


def asked_there(place: str, token: str, sql: str) -> str:
    """A query that asks a server."""
    text = sql.replace("'", "''")
    return f"FROM quack_query('{place}', '{text}', token := '{token}')"

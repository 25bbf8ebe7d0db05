"""Records what real clients send, as fixtures for the tests of messages.

python tests/service/postgres/record_clients.py FOLDER writes one file per client: the bytes of
each of its connections, in hexadecimal digits.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from tests.service.postgres.served_postgres import Login, a_server

FIXTURES = Path(__file__).parent / "fixtures"
SQL = "SELECT a, b FROM small ORDER BY a"


class Tap:
    """Forwards connections to a server, and keeps what clients send."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.heard: list[bytearray] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._listening.accept()
            server = socket.create_connection(("127.0.0.1", self._target))
            heard = bytearray()
            self.heard.append(heard)
            for source, sink, kept in ((client, server, heard), (server, client, None)):
                threading.Thread(target=_forward, args=(source, sink, kept), daemon=True).start()


def _forward(source: socket.socket, sink: socket.socket, kept: bytearray | None) -> None:
    while data := source.recv(65536):
        if kept is not None:
            kept += data
        sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def with_psycopg(login: Login) -> None:
    import psycopg

    with psycopg.connect(login.dsn()) as made:
        made.execute(SQL).fetchall()
        made.execute("SELECT %s::INT, %b", [1, 2.5]).fetchall()
        with made.cursor(name="c") as cursor:
            cursor.execute(SQL)
            cursor.fetchmany(2)
        with made.cursor().copy(f"COPY ({SQL}) TO STDOUT (FORMAT binary)") as copy:
            list(copy)
    with psycopg.connect(login.dsn(), autocommit=True) as made, made.pipeline():
        made.execute("SELECT 1")
        made.execute("SELECT 2", prepare=True)


def with_asyncpg(login: Login) -> None:
    import asyncpg

    async def main() -> None:
        made = await asyncpg.connect(login.url())
        await made.fetch(SQL)
        await made.fetchrow("SELECT $1::INT, $2::DATE[]", 1, [])
        async with made.transaction():
            async for _ in made.cursor(SQL, prefetch=1):
                pass
        await made.close()

    asyncio.run(main())


def with_psql(login: Login) -> None:
    for word in (SQL, "\\d small", f"\\copy ({SQL}) TO STDOUT CSV"):
        subprocess.run(["psql", "-X", login.dsn(), "-c", word], check=True, capture_output=True)


def with_adbc(login: Login) -> None:
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(login.url()) as made, made.cursor() as cursor:
        cursor.execute(SQL)
        cursor.fetch_arrow_table()


def with_connectorx(login: Login) -> None:
    import connectorx

    connectorx.read_sql(login.url(), SQL, return_type="arrow")


CLIENTS: dict[str, Callable[[Login], None]] = {
    "psycopg": with_psycopg,
    "asyncpg": with_asyncpg,
    "psql": with_psql,
    "adbc": with_adbc,
    "connectorx": with_connectorx,
}


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    name = sys.argv[2] if len(sys.argv) > 2 else ""
    if name:  # a process of its own: some clients hold the interpreter's lock
        CLIENTS[name](Login(int(sys.argv[3]), {"ann": sys.argv[4]}))
        return
    with tempfile.TemporaryDirectory() as place, a_server(Path(place)) as served:
        for name in CLIENTS:
            tap = Tap(served.port)
            words = [sys.executable, __file__, str(folder), name, str(tap.port)]
            subprocess.run([*words, served.secrets["ann"]], check=True)
            heard = [bytes(each).hex() for each in tap.heard]
            (folder / f"{name}.json").write_text(json.dumps(heard, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FIXTURES)

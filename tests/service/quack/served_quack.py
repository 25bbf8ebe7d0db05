"""A server that speaks Quack on a free port of this machine, for the time of a test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import uvicorn
from waiting import wait_until

from queryard.engine.sealing.access import Access
from queryard.service.http.protocol import bounded_protocol
from queryard.service.quack.listener import QuackListener
from tests.service.quack.plain_client import Client
from tests.service.yard_ground import Ground, a_ground, write_data

SHOP = """
CREATE TABLE orders(id INTEGER PRIMARY KEY, item VARCHAR DEFAULT 'thing');
INSERT INTO orders VALUES (1, 'pen');
CREATE VIEW pens AS SELECT * FROM orders WHERE item = 'pen';
CREATE TABLE small(z INTEGER);
CREATE TABLE stamped(i INTEGER, made TIMESTAMP DEFAULT now());
CREATE TABLE later(t TIMESTAMPTZ_NS);
CREATE TABLE "Odd name"("a b" INTEGER, "select" VARCHAR);
INSERT INTO "Odd name" VALUES (1, 'x');
CREATE SCHEMA old;
CREATE TABLE old.deep(x INTEGER);
INSERT INTO old.deep VALUES (7);
"""
GRANTS = {
    "sales": Access(sealed=True, writes=frozenset({"shop"})),
    "web": Access(frozenset({"small"}), sealed=True),
}


class Served(Ground):
    """The ground with a port."""

    port: int
    listener: QuackListener
    folder: Path

    def client(self, name: str = "ann") -> Client:
        return Client(self.port, self.secrets[name])


def write_shop(folder: Path) -> dict[str, Any]:
    """Tables of files, and a database that `ann` may write; `eve` sees one table of all."""
    data = folder / "data"
    data.mkdir()
    write_data(data)
    with duckdb.connect(str(folder / "shop.duckdb")) as shop:
        shop.execute(SHOP)
    return {"numbers": str(data / "numbers.parquet"), "small": str(data / "small.parquet")}


@contextmanager
def a_server(
    folder: Path, *, certificate: tuple[Path, Path] | None = None, **options: Any
) -> Iterator[Served]:
    """Options are those of the ground; with a certificate and its key, over TLS."""
    folder.mkdir(exist_ok=True)
    tables = write_shop(folder)
    catalog = folder / "yard.toml"
    lines = ["[tables]", *(f'{name} = "{path}"' for name, path in tables.items())]
    lines += ["[databases]", f'shop = "{folder / "shop.duckdb"}"']
    catalog.write_text("\n".join(lines) + "\n")
    with a_ground(folder, place=catalog, grants=GRANTS, **options) as ground:
        listener = QuackListener(ground.yard)
        config = uvicorn.Config(
            listener,
            http=bounded_protocol(ground.yard),
            host="127.0.0.1",
            port=0,
            log_level="warning",
            timeout_graceful_shutdown=2,
            ssl_certfile=None if certificate is None else certificate[0],
            ssl_keyfile=None if certificate is None else certificate[1],
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            wait_until(lambda: server.started or not thread.is_alive())
            assert server.started
            made = Served(ground.yard, ground.secrets)
            made.port = server.servers[0].sockets[0].getsockname()[1]
            made.listener, made.folder = listener, folder
            yield made
        finally:
            server.should_exit = True
            thread.join()
            listener.close()

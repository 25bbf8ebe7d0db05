"""DuckDB's own server and its client, in an environment of their own (DuckDB 1.5.5).

This file is run by that environment's Python, so it imports nothing of Queryard:

quack_peer.py serve PORT TOKEN TABLES.json
quack_peer.py ask PORT TOKEN REQUESTS.json OUTCOMES.json
quack_peer.py measure SERVERS.json SECONDS.json
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

CONNECTIONS_PER_TENANT = 10


def main() -> None:
    what = sys.argv[1]
    import duckdb
    from duckdb_extensions import import_extension

    database = duckdb.connect()
    for extension in ("httpfs", "quack"):
        import_extension(extension)
        database.load_extension(extension)
    if what == "measure":
        wanted, out = map(Path, sys.argv[2:])
        out.write_text(json.dumps(measure(database, **json.loads(wanted.read_text()))))
        return
    port, token, *files = sys.argv[2:]
    place = f"quack:127.0.0.1:{port}"
    if what == "serve":
        serve(database, place, token, json.loads(Path(files[0]).read_text()))
    else:
        # The client only fetches: it must not compete for the cores.
        database.execute("SET threads = 1")
        database.execute("SET httpfs_connection_caching = true")
        asked = json.loads(Path(files[0]).read_text())
        Path(files[1]).write_text(json.dumps(ask(database, place, token, asked)))


def serve(database: Any, place: str, token: str, tables: dict[str, str]) -> None:
    for name, path in tables.items():
        schema, _, table = name.rpartition(".")
        if schema:
            database.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        full = f'"{schema}"."{table}"' if schema else f'"{table}"'
        database.execute(f"CREATE VIEW {full} AS FROM '{path}'")
    database.execute(f"CALL quack_serve('{place}', token := '{token}')")
    print("ready", flush=True)
    sys.stdin.read()  # until the bench closes it


def ask(database: Any, place: str, token: str, asked: list[dict[str, Any]]) -> dict[str, Any]:
    """Send every request at its time, ten connections per tenant; seconds from the start."""
    free = {one["tenant"]: threading.Semaphore(CONNECTIONS_PER_TENANT) for one in asked}
    outcomes: dict[str, Any] = {}
    began = time.perf_counter()

    def send(one: dict[str, Any]) -> None:
        with free[one["tenant"]]:
            rows, error = 0, ""
            sql = one["sql"].replace("'", "''")
            try:
                cursor = database.cursor()
                asked_there = f"FROM quack_query('{place}', '{sql}', token := '{token}')"
                rows = len(cursor.execute(asked_there).fetchall())
            except Exception as raised:
                error = str(raised)
            outcomes[one["id"]] = (time.perf_counter() - began, rows, error)

    threads = []
    for one in asked:
        time.sleep(max(0.0, one["time_s"] - (time.perf_counter() - began)))
        thread = threading.Thread(target=send, args=(one,), daemon=True)
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    return outcomes


def measure(
    database: Any, servers: dict[str, list[str]], large: str, times: int, trivial: int
) -> dict[str, Any]:
    """Seconds of each server, by what is measured; servers take turns."""
    database.execute("SET httpfs_connection_caching = true")
    found: dict[str, Any] = {name: {"rows": [], "attached": [], "alone": []} for name in servers}
    for name, (place, token) in servers.items():
        database.execute(f"ATTACH '{place}' AS {name} (TOKEN '{token}')")

    def timed(sql: str) -> float:
        began = time.perf_counter()
        database.execute(sql).fetchall()
        return time.perf_counter() - began

    for turn in range(times + 1):
        for name, (place, token) in servers.items():
            asked = f"FROM quack_query('{place}', '{large}', token := '{token}')"
            took = timed(f"SELECT count(*), max(COLUMNS(*)) FROM ({asked})")
            if turn:  # the first is not counted
                found[name]["rows"].append(took)
    for turn in range(trivial + 10):
        for name, (place, token) in servers.items():
            attached = timed(f"FROM {name}.query('SELECT {turn}')")
            alone = timed(f"FROM quack_query('{place}', 'SELECT {turn}', token := '{token}')")
            if turn >= 10:
                found[name]["attached"].append(attached)
                found[name]["alone"].append(alone)
    return found


if __name__ == "__main__":
    main()

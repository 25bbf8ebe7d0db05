"""DuckDB 1.5.5 with Quack, run by the Python of an environment of its own; it imports no Queryard.

real_duckdb.py serve PORT TOKEN: DuckDB's own server, until there is no more to read.
real_duckdb.py talk: a client; every line that it reads is SQL in JSON, every line that it writes
what came of it.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    import duckdb
    from duckdb_extensions import import_extension

    database = duckdb.connect()
    for extension in ("httpfs", "quack"):
        import_extension(extension)
        database.load_extension(extension)
    if sys.argv[1] == "serve":
        port, token = sys.argv[2:]
        place = f"quack:127.0.0.1:{port}"
        database.execute(f"CALL quack_serve('{place}', token := '{token}')")
        print("ready", flush=True)
        sys.stdin.read()
        return
    database.execute("SET httpfs_connection_caching = true")
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(database, json.loads(line))), flush=True)


def answer(database: Any, sql: str) -> dict[str, Any]:
    """Columns with their types, and rows, as texts."""
    try:
        cursor = database.execute(sql)
        columns = [[column[0], str(column[1])] for column in cursor.description or []]
        return {"columns": columns, "rows": [repr(row) for row in cursor.fetchall()]}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main()

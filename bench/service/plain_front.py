"""Plain DuckDB behind the same kind of HTTP front: FastAPI on uvicorn, a cursor per request.

python -m bench.service.plain_front PORT TABLES.json: one POST of a statement answers with all its
rows as an Arrow stream. As many statements run at once as there are requests, as in plain DuckDB.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio.to_thread
import duckdb
import pyarrow as pa
import uvicorn
from fastapi import FastAPI, Request, Response

# More than there are connections, so that the front is not what makes requests wait.
THREADS = 256


def application(tables: dict[str, str]) -> FastAPI:
    database = duckdb.connect()
    for name, path in tables.items():
        schema, _, table = name.rpartition(".")
        if schema:
            database.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        place = f'"{schema}"."{table}"' if schema else f'"{table}"'
        database.execute(f"CREATE VIEW {place} AS FROM '{path}'")
    made = FastAPI()

    def run(sql: str) -> bytes:
        rows: Any = database.cursor().execute(sql).to_arrow_table()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        return bytes(sink.getvalue())

    @made.get("/readyz")
    async def ready() -> dict[str, bool]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        return {"ready": True}

    @made.post("/query")
    async def query(request: Request) -> Response:
        sql = (await request.body()).decode()
        return Response(
            await anyio.to_thread.run_sync(run, sql),
            media_type="application/vnd.apache.arrow.stream",
        )

    return made


def main() -> None:
    port, tables = int(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    uvicorn.run(application(tables), host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    main()

"""Whether an object that a CREATE makes would be lost with the session."""

from __future__ import annotations

from ..errors import NotAllowed
from ..instances.instance import Connection
from ..syntax.classify import Classified

# Indexes lie where their table does.
_MADE = ("table", "view", "schema", "sequence", "type")
_BEFORE = ("or", "replace", "unlogged", "recursive")
_TEMPORARY = ("temp", "temporary", "local")
_DATABASES = """
SELECT database_name AS name, path IS NULL AS lost, database_name = current_database() AS current
FROM duckdb_databases()
"""


def check_durable(statement: Classified, connection: Connection) -> None:
    """Refuse to create an object in memory, where it would be lost; naming a database allows it."""
    made = _made(statement.explained or statement if statement.kind == "EXPLAIN" else statement)
    if made is None:
        return
    what, parts = made
    rows = connection.rows(_DATABASES)
    named = len(parts) > 1 and parts[0] in {str(row["name"]).lower() for row in rows}
    if named or not any(row["current"] and row["lost"] for row in rows):
        return
    files = sorted(str(row["name"]) for row in rows if not row["lost"])
    where = (
        f"put it into a database file: CREATE {what.upper()} {files[0]}.{parts[-1]} …"
        if files
        else "open the session on a database file, or ATTACH one and name it"
    )
    temporary = "" if what == "schema" else f"; CREATE TEMP {what.upper()}, if that is meant"
    rows_out = "; COPY (…) TO 'file.parquet' keeps rows" if what == "table" else ""
    raise NotAllowed(
        f"the {what} {'.'.join(parts)} would lie in memory and be lost with the session; "
        f"{where}{temporary}{rows_out}"
    )


def _made(statement: Classified) -> tuple[str, list[str]] | None:
    """What a statement makes that is not temporary, and the parts of its name."""
    if statement.kind != "CREATE":
        return None
    words = [word for word in statement.words[1:] if word not in _BEFORE]
    if not words or words[0] in _TEMPORARY or words[0] not in _MADE:
        return None
    at = 4 if words[1:4] == ["if", "not", "exists"] else 1
    parts = [words[at].strip('"')]
    while words[at + 1 : at + 2] == ["."]:
        at += 2
        parts.append(words[at].strip('"'))
    return words[0], parts

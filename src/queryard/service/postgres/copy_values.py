"""Values that a client brings by COPY: texts of PostgreSQL's, as SQL of DuckDB's reads them."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from . import oids
from .catalog.types import array_elements
from .errors import not_supported
from .types import wire_type


def text_of(value: Any, oid: int) -> str | None:
    """A value as a text that `cell` reads.

    >>> text_of(True, oids.BOOL), text_of(b"\\x0a", oids.BYTEA), text_of([1, None], 1007)
    ('true', '0a', '["1", null]')
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return format(value, "f") if value.is_finite() else str(value)
    if isinstance(value, list):
        return json.dumps([text_of(one, oids.ELEMENTS[oid]) for one in value])
    return str(value)


def needs_reading(kind: str) -> bool:
    """Whether PostgreSQL's texts of a type of DuckDB's mean nothing to DuckDB."""
    oid = wire_type(kind).oid
    return oid == oids.BYTEA or oid in oids.ELEMENTS


def read(text: str | None, kind: str) -> str | None:
    """A text of PostgreSQL's as one that `cell` reads.

    >>> read("\\\\x0A", "BLOB"), read('{1,NULL,"a b"}', "VARCHAR[]")
    ('0a', '["1", null, "a b"]')
    """
    if text is None:
        return None
    oid = wire_type(kind).oid
    if oid == oids.BYTEA:
        if not text.startswith("\\x"):
            raise not_supported("bytea is read in hex format only, as '\\x0a'")
        return bytes.fromhex(text[2:]).hex()
    if oids.ELEMENTS[oid] == oids.BYTEA:
        raise not_supported("COPY FROM STDIN: arrays of bytea")
    return json.dumps(list(array_elements(text)))


def cell(column: str, kind: str, cast: str = "CAST") -> str:
    """SQL that makes a value of a type of a text; `cast` may be TRY_CAST.

    >>> cell("c0", "INTEGER"), cell("c0", "VARCHAR")
    ('CAST(c0 AS INTEGER)', 'c0')
    """
    found = wire_type(kind)
    if kind == "VARCHAR":
        return column
    if found.oid == oids.BYTEA:
        return f"from_hex({column})"
    if found.oid in oids.ELEMENTS or (found.oid == oids.JSON and kind != "JSON"):
        return f"{cast}({cast}({column} AS JSON) AS {kind})"
    return f"{cast}({column} AS {kind})"

"""Values of parameters: from a client's bytes to Python's values, and to SQL.

A parameter becomes a literal of the statement, with a cast to its type. A text, and a parameter
whose type is not known, is a plain string literal, which DuckDB takes for whatever fits, as
PostgreSQL does with its type unknown.
"""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from queryard.sql.catalog.quoting import literal

from . import oids
from .catalog.types import array_elements
from .errors import BadMessage, PostgresError, not_supported
from .types import DUCKDB

# Of a DECIMAL of DuckDB's.
MOST_DIGITS = 38
_EPOCH = dt.datetime(2000, 1, 1)
_TRUE, _FALSE = ("t", "true", "y", "yes", "on", "1"), ("f", "false", "n", "no", "off", "0")


def value_of(raw: bytes | None, oid: int, form: int) -> Any:
    """A parameter as Python's value; dates and times are texts where the client sent texts.

    >>> value_of(b"7", oids.INT4, 0), value_of(b"\\0\\0\\0\\x07", oids.INT4, 1)
    (7, 7)
    """
    if raw is None:
        return None
    try:
        return _from_binary(raw, oid) if form else _from_text(_decoded(raw), oid)
    except (ValueError, struct.error, InvalidOperation, OverflowError, IndexError):
        form_name = "binary" if form else "text"
        shown = raw[:40].hex() if form else raw[:40].decode("utf-8", "replace")
        raise PostgresError(
            "22P03" if form else "22P02",
            f"invalid {form_name} value of a parameter of type {oid}: {shown!r}",
        ) from None


def _decoded(raw: bytes) -> str:
    try:
        found = raw.decode()
    except UnicodeDecodeError:
        raise PostgresError("22021", "a parameter is no valid UTF-8") from None
    if "\0" in found:
        raise PostgresError("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
    return found


def _from_text(text: str, oid: int) -> Any:
    if oid in oids.SIGNED or oid == oids.OID:
        return int(text)
    if oid in (oids.FLOAT4, oids.FLOAT8):
        return float(text)
    if oid == oids.NUMERIC:
        return Decimal(text.strip())
    if oid == oids.BOOL:
        word = text.strip().lower()
        if word not in (*_TRUE, *_FALSE):
            raise ValueError(text)
        return word in _TRUE
    if oid == oids.UUID:
        return uuid.UUID(text)
    if oid == oids.BYTEA:
        if not text.startswith("\\x"):
            raise not_supported("bytea is read in hex format only, as '\\x0a'")
        return bytes.fromhex(text[2:])
    if oid in oids.ELEMENTS:
        element = oids.ELEMENTS[oid]
        return [None if one is None else _from_text(one, element) for one in array_elements(text)]
    return text


def _from_binary(raw: bytes, oid: int) -> Any:
    layout = _LAYOUTS.get(oid)
    if layout is not None:
        return struct.unpack(layout, raw)[0]
    if oid in oids.ELEMENTS:
        return _binary_array(raw, oids.ELEMENTS[oid])
    reader = _BINARY.get(oid)
    if reader is not None:
        return reader(raw)
    if oid in oids.TEXTS or oid == 0:
        return _decoded(raw)
    raise not_supported(f"parameters of type {oid} are not taken in binary format")


_LAYOUTS = {
    oids.INT2: "!h",
    oids.INT4: "!i",
    oids.INT8: "!q",
    oids.OID: "!I",
    oids.FLOAT4: "!f",
    oids.FLOAT8: "!d",
    oids.BOOL: "!?",
}


def _numeric(raw: bytes) -> Decimal:
    count, weight, sign, scale = struct.unpack_from("!HhHH", raw)
    if sign == 0xC000:
        return Decimal("NaN")
    if sign in (0xD000, 0xF000):
        return Decimal("Infinity" if sign == 0xD000 else "-Infinity")
    groups = struct.unpack(f"!{count}H", raw[8:])
    whole = 0
    for group in groups:
        whole = whole * 10_000 + group
    # The last group has this power of ten thousand.
    power = (weight - count + 1) * 4
    digits = tuple(map(int, str(whole)))
    value = Decimal((int(sign == 0x4000), digits, power))
    places = -scale
    if power < places:  # zeros that fill the last group
        digits = digits[: len(digits) - (places - power)] or (0,)
        value = Decimal((int(sign == 0x4000), digits, places))
    return value


def _date(raw: bytes) -> str:
    (days,) = struct.unpack("!i", raw)
    if days in (2**31 - 1, -(2**31)):
        return "infinity" if days > 0 else "-infinity"
    return (_EPOCH.date() + dt.timedelta(days)).isoformat()


def _timestamp(raw: bytes) -> str:
    (moment,) = struct.unpack("!q", raw)
    if moment in (2**63 - 1, -(2**63)):
        return "infinity" if moment > 0 else "-infinity"
    return (_EPOCH + dt.timedelta(microseconds=moment)).isoformat(" ")


def _timestamptz(raw: bytes) -> str:
    written = _timestamp(raw)
    return written if written.endswith("infinity") else f"{written}+00"


def _time(raw: bytes) -> str:
    (moment,) = struct.unpack("!q", raw)
    if moment == 86_400_000_000:
        return "24:00:00"
    return (_EPOCH + dt.timedelta(microseconds=moment)).time().isoformat()


def _timetz(raw: bytes) -> str:
    west = struct.unpack("!i", raw[8:])[0]
    offset, sign = abs(west), "-" if west > 0 else "+"
    return f"{_time(raw[:8])}{sign}{offset // 3600:02d}:{offset // 60 % 60:02d}"


def _interval(raw: bytes) -> str:
    moment, days, months = struct.unpack("!qii", raw)
    return f"{months} months {days} days {moment} microseconds"


def _json_binary(raw: bytes) -> str:
    if raw[:1] != b"\1":
        raise ValueError("jsonb")
    return _decoded(raw[1:])


_BINARY: dict[int, Callable[[bytes], Any]] = {
    oids.NUMERIC: _numeric,
    oids.DATE: _date,
    oids.TIME: _time,
    oids.TIMETZ: _timetz,
    oids.TIMESTAMP: _timestamp,
    oids.TIMESTAMPTZ: _timestamptz,
    oids.INTERVAL: _interval,
    oids.UUID: lambda raw: uuid.UUID(bytes=raw),
    oids.BYTEA: bytes,
    oids.JSONB: _json_binary,
}


def _binary_array(raw: bytes, expected: int) -> list[Any]:
    dimensions, _, element = struct.unpack_from("!iiI", raw)
    if dimensions == 0:
        return []
    if dimensions != 1:
        raise not_supported("arrays of more than one dimension are not taken as parameters")
    if element != expected and element not in DUCKDB:
        raise ValueError("element type")
    (count,) = struct.unpack_from("!i", raw, 12)
    at, found = 20, []
    for _ in range(count):
        (length,) = struct.unpack_from("!i", raw, at)
        at += 4
        if length < -1 or at + max(length, 0) > len(raw):
            raise ValueError("length of an element")
        found.append(None if length < 0 else _from_binary(raw[at : at + length], element))
        at += max(length, 0)
    return found


# --- SQL -----------------------------------------------------------------------------------------


def duckdb_type(oid: int) -> str:
    """DuckDB's name of a type; "" if any text will do."""
    if oid in oids.ELEMENTS:
        element = DUCKDB.get(oids.ELEMENTS[oid])
        if element:
            return f"{element}[]"
    if oid not in DUCKDB:
        raise not_supported(f"parameters of type {oid} are not known here")
    return DUCKDB[oid]


def as_sql(value: Any, oid: int) -> str:
    """A value as SQL.

    >>> as_sql(7, oids.INT8), as_sql("it's", 0), as_sql(None, oids.DATE)
    ('CAST(7 AS BIGINT)', "'it''s'", 'CAST(NULL AS DATE)')
    >>> as_sql(Decimal("-5"), oids.NUMERIC), as_sql(Decimal("1.50"), oids.NUMERIC)
    ('CAST(-5 AS DECIMAL(1,0))', '(1.50)')
    """
    kind = duckdb_type(oid)
    if value is None:
        return f"CAST(NULL AS {kind})" if kind else "NULL"
    if isinstance(value, list):
        inner = ", ".join(as_sql(one, oids.ELEMENTS[oid]) for one in value)
        return f"CAST([{inner}] AS {kind})"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise PostgresError("22003", f"DuckDB's DECIMAL has no {value}")
        written = format(value, "f")
        digits = written.lstrip("-")
        if digits.isdigit() and len(digits) <= MOST_DIGITS:  # else it would be an INTEGER
            return f"CAST({written} AS DECIMAL({len(digits)},0))"
        return f"({written})"
    if isinstance(value, int):
        return f"CAST({value} AS {kind})"
    if isinstance(value, bytes):
        written = "".join(f"\\x{byte:02X}" for byte in value)
        return f"CAST('{written}' AS BLOB)"
    if kind in ("", "VARCHAR"):
        return literal(str(value))
    return f"CAST({literal(str(value))} AS {kind})"


def null_of(oid: int) -> str:
    """What stands for a parameter while its value is not known."""
    return as_sql(None, 0 if oid in oids.TEXTS and oid != oids.JSON else oid)


def values_of(
    raw: Sequence[bytes | None], types: Sequence[int], formats: Sequence[int]
) -> list[Any]:
    """All parameters of a message."""
    if len(raw) != len(types):
        raise BadMessage(
            f"bind message supplies {len(raw)} parameters, but the statement requires {len(types)}"
        )
    forms = list(formats) * len(raw) if len(formats) == 1 else list(formats) or [0] * len(raw)
    return [value_of(*each) for each in zip(raw, types, forms, strict=True)]
